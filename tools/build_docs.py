# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the API reference from the docstrings: `make docs`.

    python -m tools.build_docs FOLDER

One HTML page for each public module; FOLDER/index.html leads to them.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pathlib
import re
import sys

# Platform modules ask `uname` and the like, which pdoc forbids by default.
os.environ['PDOC_ALLOW_EXEC'] = '1'

import pdoc

from experiments.common import quiet

del quiet  # Imported for its side effect.

PROJECT = pathlib.Path(__file__).parent.parent
PACKAGE = 'tff_autotune_secagg'

# A section of a docstring that pdoc does not know, such as "State: empty."
_SECTION = re.compile(r'^( *)([A-Z][a-z]+(?: [a-z]+)?): (?=\S)', re.MULTILINE)


def module_names() -> list[str]:
  """Names of the package's public modules."""
  stems = sorted(path.stem for path in (PROJECT / PACKAGE).glob('*.py'))
  return [f'{PACKAGE}.{stem}' for stem in stems if not stem.startswith('_')]


def set_out(docstring: str) -> str:
  """Gives each section of a docstring a paragraph and a heading of its own."""
  return _SECTION.sub(r'\n\1**\2.** ', docstring)


def build(folder: pathlib.Path) -> None:
  """Writes the pages into `folder`."""
  package = importlib.import_module(PACKAGE)
  names = module_names()
  for name in names:
    for member in vars(importlib.import_module(name)).values():
      if inspect.isclass(member) and member.__module__ == name:
        member.__doc__ = set_out(member.__doc__ or '')
  # pdoc finds the modules in the package's __all__ by itself, and only those.
  exported = {f'{PACKAGE}.{name}' for name in package.__all__}
  pdoc.render.configure(docformat='google', show_source=False)
  pdoc.pdoc(
    PACKAGE,
    *(name for name in names if name not in exported),
    output_directory=folder,
  )


def main(argv: list[str]) -> None:
  if len(argv) != 2:
    sys.exit('Usage: python -m tools.build_docs FOLDER')
  build(pathlib.Path(argv[1]))
  print(f'Wrote {argv[1]}/index.html')


if __name__ == '__main__':
  main(sys.argv)

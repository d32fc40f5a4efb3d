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
  names = set()
  for path in (PROJECT / PACKAGE).rglob('*.py'):
    parts = path.relative_to(PROJECT).with_suffix('').parts
    names.add('.'.join(parts[:-1] if parts[-1] == '__init__' else parts))
  return sorted(name for name in names - {PACKAGE} if '._' not in name)


def set_out(docstring: str) -> str:
  """Gives each section of a docstring a paragraph and a heading of its own."""
  return _SECTION.sub(r'\n\1**\2.** ', docstring)


def build(folder: pathlib.Path) -> None:
  """Writes the pages into `folder`."""
  specs = [PACKAGE]
  for name in module_names():
    for member in vars(importlib.import_module(name)).values():
      if inspect.isclass(member) and member.__module__ == name:
        member.__doc__ = set_out(member.__doc__ or '')
    # pdoc finds some by itself: those in an __all__, and those below a package
    # that has none.
    if name not in pdoc.extract.walk_specs(specs):
      specs.append(name)
  pdoc.render.configure(docformat='google', show_source=False)
  pdoc.pdoc(*specs, output_directory=folder)


def main(argv: list[str]) -> None:
  if len(argv) != 2:
    sys.exit('Usage: python -m tools.build_docs FOLDER')
  build(pathlib.Path(argv[1]))
  print(f'Wrote {argv[1]}/index.html')


if __name__ == '__main__':
  main(sys.argv)

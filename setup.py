# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Builds the package that pyproject.toml describes: `pip install .`.

Adds what pyproject.toml cannot say: README.md without the links that lead
nowhere from a package index, and the license, for which setuptools would need a
newer `packaging` than TFF's stack allows. It builds in a folder of its own,
since `build/` would keep modules that have been removed and install them again.
"""

import pathlib
import re
import tempfile

import setuptools

_PROJECT = pathlib.Path(__file__).parent


def _description() -> str:
  """README.md for a package index, where its links would lead nowhere.

  What links to a file of the project is its words alone, and a picture is what
  it shows.
  """
  text = (_PROJECT / 'README.md').read_text(encoding='utf-8')
  relative = r'\((?!https?:|#)[^)]*\)'
  text = re.sub(rf'!\[([^\]]*)\]{relative}', r'*Picture: \1.*', text)
  return re.sub(rf'\[([^\]]*)\]{relative}', r'\1', text)


with tempfile.TemporaryDirectory() as folder:
  setuptools.setup(
    license='Apache-2.0',
    long_description=_description(),
    long_description_content_type='text/markdown',
    options={'build': {'build_base': folder}, 'egg_info': {'egg_base': folder}},
  )

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `make env`, on projects whose lock is empty: nothing is fetched."""

import os
import pathlib
import shutil
import subprocess
import sys

from absl.testing import absltest
from absl.testing import parameterized
import pytest

# Builds what stands for the checkout, as setuptools does in a true environment.
_BUILD_BACKEND = """
import os, zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
  info = 'checkout-0.dist-info'
  name = 'checkout-0-py3-none-any.whl'
  with zipfile.ZipFile(os.path.join(folder, name), 'w') as wheel:
    wheel.writestr('checkout.pth', os.getcwd())
    wheel.writestr(
      f'{info}/METADATA', 'Metadata-Version: 2.1\\nName: checkout\\nVersion: 0'
    )
    wheel.writestr(
      f'{info}/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true'
    )
    wheel.writestr(f'{info}/RECORD', '')
  return name
"""
_PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""

_PROJECT = pathlib.Path(__file__).parents[2]
_SUPPORTED = (
  'tff_autotune_secagg runs on Linux (x86-64 with AVX, glibc 2.31 or newer) '
  'with CPython 3.9, 3.10 or 3.11'
)
_VERSION = '.'.join(str(part) for part in sys.version_info[:3])
_MINOR_VERSION = '.'.join(str(part) for part in sys.version_info[:2])


class _MakeTestCase(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self._folder = pathlib.Path(self.create_tempdir().full_path)
    self._commands = self._folder / 'commands'
    self._commands.mkdir()
    shutil.copytree(_PROJECT / 'tools', self._folder / 'tools')
    shutil.copy(_PROJECT / 'Makefile', self._folder / 'Makefile')
    (self._folder / 'backend.py').write_text(_BUILD_BACKEND)
    (self._folder / 'pyproject.toml').write_text(_PYPROJECT)
    self._write_lock('# Empty.\n')

  def _write_lock(self, text: str) -> None:
    (self._folder / 'requirements.txt').write_text(text)

  def _write_command(self, name: str, script: str) -> None:
    path = self._commands / name
    path.write_text(f'#!/bin/sh\n{script}\n')
    path.chmod(0o755)

  def _write_python(self, name: str, *, broken_modules=(), answer='') -> None:
    """Adds a Python: this one, without some modules, or one that only talks."""
    if answer:
      self._write_command(name, f'echo "{answer}"')
      return
    missing = self._folder / 'missing'
    missing.mkdir(exist_ok=True)
    for module in broken_modules:
      (missing / f'{module}.py').write_text('raise ImportError\n')
    self._write_command(
      name,
      f'PYTHONPATH={missing} exec {os.path.realpath(sys.executable)} "$@"',
    )

  def _make(self, *arguments: str, **environ: str):
    kept = {
      name: value
      for name, value in os.environ.items()
      if name not in ('PYTHON', 'PYTHONPATH', 'MAKEFLAGS', 'MAKELEVEL')
    }
    return subprocess.run(
      ['make', '--no-print-directory', *arguments],
      cwd=self._folder,
      env={
        **kept,
        'PATH': f'{self._commands}{os.pathsep}{os.environ["PATH"]}',
        **environ,
      },
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      text=True,
      timeout=120,
      check=False,
    )

  def _assert_refused(self, process, sentence: str) -> None:
    self.assertNotEqual(process.returncode, 0)
    self.assertEqual(process.stdout, '')
    # Make adds its own last line.
    self.assertEqual(process.stderr.splitlines()[:-1], [sentence])
    self.assertFalse((self._folder / '.venv').exists())


class RefusalTest(_MakeTestCase):
  @parameterized.named_parameters(
    ('macos', 'Darwin', 'x86_64', 'this is Darwin'),
    ('arm', 'Linux', 'aarch64', 'this processor is aarch64'),
  )
  def test_machine(self, system, processor, found):
    self._write_command(
      'uname', f'[ "$1" = -s ] && echo {system} || echo {processor}'
    )
    self._assert_refused(self._make('env'), f'{_SUPPORTED}; {found}.')

  @parameterized.named_parameters(
    ('demo', 'demo'), ('test', 'test'), ('lint', 'lint'), ('env', 'env')
  )
  def test_named_python_of_another_version(self, target):
    self._write_python('other', answer='it is Python 3.12')
    self._assert_refused(
      self._make(target, 'PYTHON=other'),
      f'{_SUPPORTED}; PYTHON=other will not do, it is Python 3.12.',
    )

  def test_named_python_that_does_not_run(self):
    self._assert_refused(
      self._make('env', PYTHON='/nowhere/python'),
      f'{_SUPPORTED}; PYTHON=/nowhere/python will not do, it does not run.',
    )

  def test_no_python_found(self):
    self._write_python('python3', answer='it is Python 3.6')
    for name in ('python3.9', 'python3.10', 'python3.11'):
      self._write_command(name, 'exit 127')  # As a pyenv shim without one.
    self._assert_refused(
      self._make('env'),
      f'{_SUPPORTED}; found python3 (it is Python 3.6). Install one of these, '
      'or name it with PYTHON=/path/to/python.',
    )

  def test_neither_ensurepip_nor_pip(self):
    self._write_python('bare', broken_modules=['ensurepip', 'pip'])
    self._assert_refused(
      self._make('env', 'PYTHON=bare'),
      f'{self._commands}/bare (Python {_VERSION}) can make no environment: '
      'install its venv module with ensurepip (on Debian and Ubuntu the '
      f'package python{_MINOR_VERSION}-venv), or pip 22.3 or newer.',
    )

  def test_foreign_environment_is_left_alone(self):
    foreign = self._folder / '.venv' / 'mine'
    foreign.mkdir(parents=True)
    process = self._make('env', f'PYTHON={sys.executable}')
    self.assertNotEqual(process.returncode, 0)
    self.assertIn(
      'There is a .venv that `make` has not made: move it out of the way.\n',
      process.stderr,
    )
    self.assertEqual(self._make('clean').returncode, 0)
    self.assertTrue(foreign.exists())


@pytest.mark.slow
class EnvironmentTest(_MakeTestCase):
  def _make_env(self, **environ: str) -> bool:
    """Runs `make env`; returns whether it made an environment."""
    process = self._make('env', **environ)
    self.assertEqual(process.returncode, 0, process.stderr)
    made = f'Making .venv with Python {_VERSION}: about 2.7 GB, some minutes'
    return made in process.stdout

  def test_made_once_and_again_when_needed_without_ensurepip(self):
    # The path without it: the other one takes seconds longer, and is the one by
    # which the tests' own environment is made.
    for name in ('python3.11', 'python3'):
      self._write_python(name, broken_modules=['ensurepip'])
    with self.subTest('first'):
      self.assertTrue(self._make_env())
    with self.subTest('nothing_changed'):
      self.assertFalse(self._make_env())
    with self.subTest('same_python_named'):
      self.assertFalse(self._make_env(PYTHON='python3'))
    with self.subTest('finds_the_checkout_from_anywhere'):
      (self._folder / 'here.py').write_text('')
      subprocess.run(
        [self._folder / '.venv' / 'bin' / 'python', '-c', 'import here'],
        cwd='/',
        check=True,
      )
    with self.subTest('lock_changed_and_not_installable'):
      self._write_lock('no-such-package @ file:///nowhere\n')
      self.assertNotEqual(self._make('env').returncode, 0)
      self.assertNotEqual(self._make('env').returncode, 0)
    with self.subTest('lock_mended'):
      self._write_lock('# Empty, but another.\n')
      self.assertTrue(self._make_env())
      self.assertFalse(self._make_env())
    with self.subTest('cleaned'):
      self.assertEqual(self._make('clean').returncode, 0)
      self.assertFalse((self._folder / '.venv').exists())


class HelpTest(_MakeTestCase):
  def test_help_is_the_default_and_needs_no_environment(self):
    process = self._make()
    self.assertEqual(process.stdout, self._make('help').stdout)
    for target in ('env', 'demo', 'test', 'lint', 'lock', 'clean'):
      self.assertRegex(process.stdout, rf'(?m)^make {target} +\S')
    self.assertFalse((self._folder / '.venv').exists())


if __name__ == '__main__':
  absltest.main()

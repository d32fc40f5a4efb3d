# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the check of TFF's version, and of its agreement with the pins."""

from importlib import metadata
import pathlib
import re
import subprocess
import sys
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized

from tff_autotune_secagg import _tff_version

_PROJECT = pathlib.Path(__file__).parent.parent

# Imports the package with nothing but the standard library and the folders
# given, and tells on stdout whether TensorFlow was touched on the way.
_IMPORT = """
import sys
sys.path[:0] = sys.argv[1:]
try:
  import tff_autotune_secagg
finally:
  print('tensorflow' in sys.modules, 'tensorflow_federated' in sys.modules)
"""


def _message(found: str) -> str:
  return (
    'tff_autotune_secagg needs tensorflow-federated 0.87.0, found '
    f'{found}. docs/install.md of the project says how to install it.'
  )


def _import_package(*folders: pathlib.Path) -> subprocess.CompletedProcess:
  return subprocess.run(
    # -I -S: no packages of this environment.
    [sys.executable, '-I', '-S', '-c', _IMPORT, str(_PROJECT)]
    + [str(folder) for folder in folders],
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
    timeout=60,
    check=False,
  )


class CheckTffVersionTest(parameterized.TestCase):
  def test_accepts_this_environment(self):
    _tff_version.check_tff_version()

  @parameterized.named_parameters(
    ('older', '0.86.0'), ('newer', '0.88.0'), ('longer', '0.87.0.1')
  )
  def test_refuses_another_version(self, version):
    with mock.patch.object(metadata, 'version', return_value=version):
      with self.assertRaisesWithLiteralMatch(ImportError, _message(version)):
        _tff_version.check_tff_version()

  def test_refuses_when_there_is_none(self):
    with mock.patch.object(
      metadata, 'version', side_effect=metadata.PackageNotFoundError
    ):
      with self.assertRaisesWithLiteralMatch(ImportError, _message('none')):
        _tff_version.check_tff_version()


class ImportTest(absltest.TestCase):
  def test_import_without_tff_is_one_error(self):
    process = _import_package()
    self.assertEqual(process.stdout, 'False False\n')
    self.assertEqual(process.stderr.count('Traceback'), 1)
    self.assertEndsWith(process.stderr, f'ImportError: {_message("none")}\n')

  def test_import_with_another_tff_is_one_error(self):
    site = pathlib.Path(self.create_tempdir().full_path)
    dist_info = site / 'tensorflow_federated-0.50.0.dist-info'
    dist_info.mkdir()
    (dist_info / 'METADATA').write_text(
      'Metadata-Version: 2.1\nName: tensorflow_federated\nVersion: 0.50.0\n'
    )
    process = _import_package(site)
    self.assertEqual(process.stdout, 'False False\n')
    self.assertEqual(process.stderr.count('Traceback'), 1)
    self.assertEndsWith(process.stderr, f'ImportError: {_message("0.50.0")}\n')


class PinsTest(absltest.TestCase):
  """All places that name TFF's version name the same."""

  def test_direct_requirement(self):
    self.assertIn(
      f'tensorflow-federated=={_tff_version.TFF_VERSION}\n',
      (_PROJECT / 'requirements.in').read_text(),
    )

  def test_lock(self):
    self.assertRegex(
      (_PROJECT / 'requirements.txt').read_text(),
      rf'(?m)^tensorflow-federated=={re.escape(_tff_version.TFF_VERSION)}$',
    )

  def test_package_metadata(self):
    self.assertIn(
      f'"tensorflow-federated=={_tff_version.TFF_VERSION}",\n',
      (_PROJECT / 'pyproject.toml').read_text(),
    )


if __name__ == '__main__':
  absltest.main()

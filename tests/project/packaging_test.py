# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the sdist and of the wheel that is built from it."""

import ast
import email
import importlib.util
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
import zipfile

from absl.testing import absltest

from tff_autotune_secagg import _tff_version
from tff_autotune_secagg import _version

_PROJECT = pathlib.Path(__file__).parents[2]
_NAME = f'tff_autotune_secagg-{_version.__version__}'


def _is_standard(module: str) -> bool:
  """Whether a top-level module is one of Python's own."""
  spec = importlib.util.find_spec(module)
  origin = (spec and spec.origin) or ''
  return origin in ('built-in', 'frozen') or (
    origin.startswith(sysconfig.get_path('stdlib'))
    and '-packages' not in origin
  )


class PackagingTest(absltest.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    # In a copy, which has none of the repository's other files.
    folder = pathlib.Path(absltest.get_default_test_tmpdir()) / 'packaging'
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(
      _PROJECT / 'tff_autotune_secagg',
      folder / 'tff_autotune_secagg',
      ignore=shutil.ignore_patterns('__pycache__'),
    )
    for name in ('LICENSE', 'README.md', 'pyproject.toml'):
      shutil.copy(_PROJECT / name, folder / name)
    cls.addClassCleanup(shutil.rmtree, folder)
    process = subprocess.run(
      # Without isolation nothing is fetched. The wheel is made from the sdist.
      [sys.executable, '-m', 'build', '--no-isolation'],
      cwd=folder,
      stdout=subprocess.PIPE,
      stderr=subprocess.STDOUT,
      text=True,
      check=False,
    )
    if process.returncode:
      raise AssertionError(process.stdout)
    cls._output = process.stdout
    with tarfile.open(folder / 'dist' / f'{_NAME}.tar.gz') as sdist:
      cls._sdist_names = set(sdist.getnames())
    with zipfile.ZipFile(
      folder / 'dist' / f'{_NAME}-py3-none-any.whl'
    ) as wheel:
      cls._wheel_names = set(wheel.namelist())
      cls._wheel_folder = str(folder / 'unpacked')
      wheel.extractall(cls._wheel_folder)
      cls._metadata = email.message_from_bytes(
        wheel.read(f'{_NAME}.dist-info/METADATA')
      )

  def test_wheel_holds_the_package_and_nothing_else(self):
    modules = {
      str(path.relative_to(_PROJECT))
      for path in (_PROJECT / 'tff_autotune_secagg').rglob('*.py')
    }
    installed = {
      name for name in self._wheel_names if '.dist-info/' not in name
    }
    self.assertEqual(installed, modules | {'tff_autotune_secagg/py.typed'})

  def test_wheel_can_be_imported_without_the_checkout(self):
    # Each module by its own name, as the public face does not need them all.
    names = sorted(
      name[: -len('.py')].replace('/', '.').removesuffix('.__init__')
      for name in self._wheel_names
      if name.endswith('.py')
    )
    code = (
      'import importlib, sys\n'
      'sys.path.insert(0, sys.argv[1])\n'
      'for name in sys.argv[2:]:\n'
      '  print(importlib.import_module(name).__file__)\n'
    )
    # With -I, Python looks neither into this folder nor into PYTHONPATH. To a
    # file: whatever a process leaves behind would keep a pipe open.
    with tempfile.TemporaryFile('w+') as output:
      status = subprocess.run(
        [sys.executable, '-I', '-c', code, self._wheel_folder, *names],
        stdout=output,
        check=False,
      ).returncode
      output.seek(0)
      files = output.read().splitlines()
    self.assertEqual(status, 0)
    self.assertLen(files, len(names))
    for file in files:
      self.assertStartsWith(file, self._wheel_folder)

  def test_wheel_and_sdist_hold_the_license(self):
    self.assertIn(f'{_NAME}.dist-info/licenses/LICENSE', self._wheel_names)
    self.assertIn(f'{_NAME}/LICENSE', self._sdist_names)

  def test_sdist_holds_what_the_wheel_is_built_from(self):
    for name in (
      'README.md',
      'pyproject.toml',
      'tff_autotune_secagg/_version.py',
      'tff_autotune_secagg/py.typed',
    ):
      self.assertIn(f'{_NAME}/{name}', self._sdist_names)

  def test_metadata(self):
    self.assertEqual(self._metadata['Name'], 'tff_autotune_secagg')
    self.assertEqual(self._metadata['Version'], _version.__version__)
    self.assertEqual(
      set(self._metadata['Requires-Python'].split(',')), {'>=3.9', '<3.12'}
    )
    self.assertEqual(self._metadata['License-Expression'], 'Apache-2.0')
    self.assertIn(
      f'tensorflow-federated=={_tff_version.TFF_VERSION}',
      self._metadata.get_all('Requires-Dist'),
    )

  def test_description_is_the_readme_with_links_that_lead_out(self):
    urls = dict(
      url.split(', ') for url in self._metadata.get_all('Project-URL')
    )
    for name in ('Documentation', 'Changelog', 'Issues'):
      self.assertStartsWith(urls[name], urls['Source'] + '/')
    description = self._metadata.get_payload(decode=True).decode('utf-8')
    for target in re.findall(r'\]\((?!#)([^)]*)\)', description):
      self.assertStartsWith(target, 'https://')
    # Without the address it is the README again, of which another test follows
    # the links.
    address = re.escape(urls['Source']) + '/(?:blob|raw)/main/'
    self.assertEqual(
      re.sub(rf'\]\({address}', '](', description),
      (_PROJECT / 'README.md').read_text(encoding='utf-8'),
    )

  def test_wheel_installs_the_planner_as_a_command(self):
    path = pathlib.Path(
      self._wheel_folder, f'{_NAME}.dist-info', 'entry_points.txt'
    )
    self.assertEqual(
      path.read_text().split(),
      '[console_scripts] tff-autotune-planner ='
      ' tff_autotune_secagg.planner:run'.split(),
    )

  def test_build_warns_of_nothing(self):
    self.assertNotIn('Warning', self._output)


class InstallGuideTest(absltest.TestCase):
  def test_the_check_sees_what_is_installed_and_not_the_checkout(self):
    guide = (_PROJECT / 'docs' / 'install.md').read_text(encoding='utf-8')
    checks = re.findall(r"^\.\./my-env/bin/python (.*-c '.*)$", guide, re.M)
    self.assertLen(checks, 2)
    folder = pathlib.Path(self.create_tempdir().full_path)
    venv.create(folder)  # Nothing is installed there.
    for check in checks:
      process = subprocess.run(
        [folder / 'bin' / 'python', *shlex.split(check)],
        cwd=_PROJECT,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
      )
      self.assertIn("No module named 'tff_autotune_secagg'", process.stderr)


class DependencyTest(absltest.TestCase):
  def test_every_foreign_import_is_required_by_the_package(self):
    distributions = {
      'absl': 'absl-py',
      'dp_accounting': 'dp-accounting',
      'grpc': 'grpcio',
      'numpy': 'numpy',
      'scipy': 'scipy',
      'tensorflow': 'tensorflow',
      'tensorflow_federated': 'tensorflow-federated',
      'tensorflow_model_optimization': 'tensorflow-model-optimization',
      'tree': 'dm-tree',
    }
    project = (_PROJECT / 'pyproject.toml').read_text()
    required = project.partition('\ndependencies = [')[2].partition(']')[0]
    for path in sorted((_PROJECT / 'tff_autotune_secagg').rglob('*.py')):
      for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
          modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
          modules = [node.module]
        else:
          continue
        for root in {module.partition('.')[0] for module in modules}:
          if root == 'tff_autotune_secagg' or _is_standard(root):
            continue
          with self.subTest(f'{path.name} imports {root}'):
            self.assertIn(root, distributions)
            self.assertRegex(required, rf'"{distributions[root]}["=]')


if __name__ == '__main__':
  absltest.main()

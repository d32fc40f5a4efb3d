# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the sdist, of the wheel that is built from it, and of pip."""

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
from absl.testing import parameterized

from tff_autotune_secagg import _tff_version
from tff_autotune_secagg import _version

_PROJECT = pathlib.Path(__file__).parents[2]
_NAME = f'tff_autotune_secagg-{_version.__version__}'
_BUILT_FROM = ('LICENSE', 'README.md', 'pyproject.toml', 'setup.py')


def _is_standard(module: str) -> bool:
  """Whether a top-level module is one of Python's own."""
  spec = importlib.util.find_spec(module)
  origin = (spec and spec.origin) or ''
  return origin in ('built-in', 'frozen') or (
    origin.startswith(sysconfig.get_path('stdlib'))
    and '-packages' not in origin
  )


def _package_files() -> set[str]:
  """What of the package is installed."""
  modules = (_PROJECT / 'tff_autotune_secagg').rglob('*.py')
  return {
    'tff_autotune_secagg/__init__.pyi',
    'tff_autotune_secagg/py.typed',
    *(str(path.relative_to(_PROJECT)) for path in modules),
  }


def _copy_project(folder: pathlib.Path) -> None:
  """Makes `folder`, with what the package is built from and a bystander."""
  for package in ('tff_autotune_secagg', 'experiments'):
    shutil.copytree(
      _PROJECT / package,
      folder / package,
      ignore=shutil.ignore_patterns('__pycache__', 'results', 'figures'),
    )
  for name in _BUILT_FROM:
    shutil.copy(_PROJECT / name, folder / name)


class PackagingTest(absltest.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    folder = pathlib.Path(absltest.get_default_test_tmpdir()) / 'packaging'
    shutil.rmtree(folder, ignore_errors=True)
    _copy_project(folder)
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
    cls._left_behind = {path.name for path in folder.iterdir()}
    with tarfile.open(folder / 'dist' / f'{_NAME}.tar.gz') as sdist:
      cls._sdist_names = {
        member.name.partition('/')[2] for member in sdist if member.isfile()
      }
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
    installed = {
      name for name in self._wheel_names if '.dist-info/' not in name
    }
    self.assertEqual(installed, _package_files())

  def test_sdist_holds_what_the_wheel_is_built_from_and_nothing_else(self):
    self.assertEqual(
      # The last two are what setuptools writes into it.
      self._sdist_names,
      _package_files() | {*_BUILT_FROM, 'PKG-INFO', 'setup.cfg'},
    )

  def test_build_leaves_nothing_beside_its_result(self):
    self.assertEqual(
      self._left_behind,
      {'tff_autotune_secagg', 'experiments', 'dist', *_BUILT_FROM},
    )

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

  def test_wheel_holds_the_license(self):
    self.assertIn(f'{_NAME}.dist-info/licenses/LICENSE', self._wheel_names)

  def test_metadata(self):
    self.assertEqual(self._metadata['Name'], 'tff_autotune_secagg')
    self.assertEqual(self._metadata['Version'], _version.__version__)
    self.assertEqual(
      set(self._metadata['Requires-Python'].split(',')), {'>=3.9', '<3.12'}
    )
    self.assertEqual(self._metadata['License'], 'Apache-2.0')
    required = self._metadata.get_all('Requires-Dist')
    self.assertIn(f'tensorflow-federated=={_tff_version.TFF_VERSION}', required)
    # Without pkg_resources, which setuptools 82 has not, TensorBoard ends.
    self.assertIn('setuptools<82', required)

  def test_description_is_the_readme_without_links_into_the_project(self):
    description = self._metadata.get_payload(decode=True).decode('utf-8')
    targets = re.findall(r'\]\((?!#)([^)]*)\)', description)
    self.assertNotEmpty(targets)
    for target in targets:
      self.assertStartsWith(target, 'https://')
    self.assertNotIn('![', description)
    # Nothing else is changed: the words are those of the README.
    readme = (_PROJECT / 'README.md').read_text(encoding='utf-8')
    words = re.sub(r'\]\([^)]*\)|[\[\]!*]|Picture: ', '', readme).split()
    shown = re.sub(r'\]\([^)]*\)|[\[\]!*]|Picture: ', '', description).split()
    self.assertEqual(
      [word.rstrip('.') for word in shown], [word.rstrip('.') for word in words]
    )

  def test_the_version_is_stated_once_and_its_changes_are_told(self):
    version = re.escape(_version.__version__)
    # CHANGELOG.md tells of each version; all else asks for it.
    for name in [*_BUILT_FROM, 'CITATION.cff', 'Makefile', 'docs/conf.py']:
      text = (_PROJECT / name).read_text(encoding='utf-8')
      self.assertNotRegex(text, rf'(?<![\d.]){version}(?![\d.])', name)
    changes = (_PROJECT / 'CHANGELOG.md').read_text(encoding='utf-8')
    self.assertRegex(changes, rf'(?m)^## {version} - \d{{4}}-\d{{2}}-\d{{2}}$')

  def test_metadata_leads_to_the_paper_and_to_no_repository(self):
    # There is no address of the project yet.
    self.assertEqual(
      self._metadata.get_all('Project-URL'),
      ['Paper, https://arxiv.org/abs/1912.00131'],
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


class InstallTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    folder = pathlib.Path(self.create_tempdir().full_path)
    self._checkout = folder / 'checkout'
    _copy_project(self._checkout)
    self._env = folder / 'env'
    venv.create(self._env)
    # The dependencies are those of this Python, wherever it finds them, but not
    # its own checkout: of a folder on a .pth file's path, Python reads no .pth
    # files.
    (site_packages,) = self._env.glob('lib/python3*/site-packages')
    setuptools = importlib.util.find_spec('setuptools').origin
    pinned = pathlib.Path(setuptools).parents[1]
    (site_packages / 'pinned.pth').write_text(str(pinned))

  def _install(self, *options: str) -> None:
    process = subprocess.run(
      # Nothing is fetched.
      [sys.executable, '-m', 'pip', '--python', self._env / 'bin' / 'python']
      + ['install', '--no-index', '--no-deps', '--no-build-isolation']
      + ['--ignore-installed', *options, self._checkout],
      stdout=subprocess.PIPE,
      stderr=subprocess.STDOUT,
      text=True,
      check=False,
    )
    self.assertEqual(process.returncode, 0, process.stdout)

  def _find(self, module: str) -> str:
    """Path of `module` as seen from elsewhere; empty if there is none."""
    code = (
      'import importlib.util, sys\n'
      'spec = importlib.util.find_spec(sys.argv[1])\n'
      "print(spec.origin if spec else '')\n"
    )
    return subprocess.check_output(
      [self._env / 'bin' / 'python', '-I', '-c', code, module], text=True
    ).strip()

  def _assert_nothing_is_left_in_the_checkout(self) -> None:
    # A `build` there would keep modules that are removed, and install them.
    self.assertCountEqual(
      [path.name for path in self._checkout.iterdir()],
      ['tff_autotune_secagg', 'experiments', *_BUILT_FROM],
    )

  def test_install_copies_the_package_alone(self):
    self._install()
    self.assertStartsWith(self._find('tff_autotune_secagg'), str(self._env))
    self.assertEmpty(self._find('experiments'))
    self._assert_nothing_is_left_in_the_checkout()
    planner = subprocess.run(
      [self._env / 'bin' / 'tff-autotune-planner', '--help'],
      stdout=subprocess.PIPE,
      text=True,
      check=False,
    )
    self.assertIn('--num_clients', planner.stdout)

  def test_editable_install_is_the_checkout_with_its_experiments(self):
    self._install('--editable')
    for package in ('tff_autotune_secagg', 'experiments'):
      self.assertEqual(
        self._find(package), str(self._checkout / package / '__init__.py')
      )
    self._assert_nothing_is_left_in_the_checkout()


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

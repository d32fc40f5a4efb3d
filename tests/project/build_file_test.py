# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the BUILD files have a target for every module and every test."""

import ast
import collections
import pathlib
import re

from absl.testing import absltest

from tools import write_build

_PROJECT = pathlib.Path(__file__).parents[2]


def _rules(build_text: str) -> list[tuple[str, dict[str, object]]]:
  """Kind and attributes of each rule; BUILD reads as Python expressions."""
  rules = []
  for statement in ast.parse(build_text).body:
    call = statement.value
    if call.func.id.startswith('py_'):
      rules.append(
        (
          call.func.id,
          {
            keyword.arg: ast.literal_eval(keyword.value)
            for keyword in call.keywords
          },
        )
      )
  return rules


def _files_of(build_text: str) -> list[str]:
  """Labels that the filegroup of a BUILD file collects from other folders."""
  return re.findall(r'"(//\w[\w/]*:files)"', build_text)


def _create_project(
  folder: pathlib.Path, files: dict[str, str]
) -> pathlib.Path:
  for name, text in files.items():
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
  return folder


def _differences(project: pathlib.Path) -> list[str]:
  """BUILD files of `project` that are not as the tool writes them."""
  texts = write_build.build_texts(project)
  return sorted(
    str(path)
    for path in {*texts, *write_build.build_files(project)}
    if not (project / path).is_file()
    or (project / path).read_text(encoding='utf-8') != texts.get(path)
  )


class BuildFilesTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._texts = {
      path.parent: (_PROJECT / path).read_text(encoding='utf-8')
      for path in write_build.build_files(_PROJECT)
    }
    self._rules = [
      (folder, kind, attributes)
      for folder, text in self._texts.items()
      for kind, attributes in _rules(text)
    ]

  def test_are_what_the_tool_writes(self):
    self.assertEmpty(
      _differences(_PROJECT), 'Out of date or of no use: run `make build-file`.'
    )

  def test_root_is_short(self):
    text = self._texts[pathlib.PurePath('.')]
    self.assertLess(len(text.splitlines()), 30)

  def test_every_file_has_one_target(self):
    files = {
      path.relative_to(_PROJECT)
      for folder in write_build.FOLDERS
      for path in (_PROJECT / folder).rglob('*.py')
      if path.name != 'conftest.py'
    }
    sources = collections.Counter(
      folder / source
      for folder, _, attributes in self._rules
      for source in attributes['srcs']
    )
    self.assertEqual(sources, dict.fromkeys(files, 1))

  def test_every_test_file_is_a_test(self):
    self.assertCountEqual(
      [
        folder / attributes['srcs'][0]
        for folder, kind, attributes in self._rules
        if kind == 'py_test'
      ],
      [
        path.relative_to(_PROJECT)
        for path in (_PROJECT / 'tests').rglob('*_test.py')
      ],
    )

  def test_names_are_distinct_and_dependencies_exist(self):
    labels = [
      f'//{folder}:{attributes["name"]}'
      for folder, _, attributes in self._rules
    ]
    self.assertLen(set(labels), len(labels))
    for folder, _, attributes in self._rules:
      for dep in attributes.get('deps', []):
        self.assertIn(f'//{folder}{dep}' if dep[0] == ':' else dep, labels)

  def test_files_of_every_folder_reach_the_root(self):
    reached, labels = set(), _files_of(self._texts[pathlib.PurePath('.')])
    while labels:
      folder = pathlib.PurePath(labels.pop()[2 : -len(':files')])
      reached.add(folder)
      labels += _files_of(self._texts[folder])
    self.assertEqual(reached, set(self._texts) - {pathlib.PurePath('.')})

  def test_every_test_file_runs_its_tests_as_a_program(self):
    # Bazel runs the file. Without a main it would do nothing, and pass.
    for path in (_PROJECT / 'tests').rglob('*_test.py'):
      with self.subTest(path.name):
        self.assertRegex(
          path.read_text(encoding='utf-8'),
          r"\nif __name__ == '__main__':\n(  .*\n)*  \w+(\.\w+)*\.main\(\)\n$",
        )


class WriteBuildTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._project = _create_project(
      pathlib.Path(self.create_tempdir().full_path),
      {
        'tff_autotune_secagg/__init__.py': (
          'from tff_autotune_secagg.numerics import a\n'
        ),
        'tff_autotune_secagg/py.typed': '',
        'tff_autotune_secagg/b.py': (
          'from tff_autotune_secagg.numerics import a\n'
        ),
        'tff_autotune_secagg/numerics/__init__.py': '',
        'tff_autotune_secagg/numerics/a.py': 'import os\n',
        'tff_autotune_secagg/numerics/c.py': (
          'from tff_autotune_secagg import b\n'
          'from tff_autotune_secagg.numerics.a import something\n'
        ),
        'experiments/soak/run.py': (
          'def main():\n'
          '  import tff_autotune_secagg as autotune\n'
          '  from tff_autotune_secagg.b import something\n'
          "if __name__ == '__main__':\n"
          '  main()\n'
        ),
        'experiments/soak/configs/soak.flags': '',
        'tests/conftest.py': '',
        'tests/helper.py': '',
        'tests/soak/a_test.py': (
          'from experiments.soak import run\nprint(__file__)\n'
        ),
        'tests/numerics/a_test.py': (
          'from tests import helper\nimport os\nprint(os.__file__)\n'
        ),
      },
    )

  def test_finds_what_a_module_needs(self):
    texts = write_build.build_texts(self._project)
    self.assertEqual(
      {
        (str(path.parent), attributes['name']): (
          kind,
          attributes.get('deps'),
          attributes.get('data'),
        )
        for path, text in texts.items()
        for kind, attributes in _rules(text)
      },
      {
        # What the package's __init__ needs cannot need the __init__.
        ('tff_autotune_secagg', 'tff_autotune_secagg'): (
          'py_library',
          [
            '//tff_autotune_secagg/numerics:a',
            '//tff_autotune_secagg/numerics:numerics',
          ],
          ['py.typed'],
        ),
        ('tff_autotune_secagg/numerics', 'numerics'): (
          'py_library',
          None,
          None,
        ),
        ('tff_autotune_secagg/numerics', 'a'): ('py_library', None, None),
        ('tff_autotune_secagg', 'b'): (
          'py_library',
          [
            ':tff_autotune_secagg',
            '//tff_autotune_secagg/numerics:a',
            '//tff_autotune_secagg/numerics:numerics',
          ],
          None,
        ),
        ('tff_autotune_secagg/numerics', 'c'): (
          'py_library',
          [
            ':a',
            ':numerics',
            '//tff_autotune_secagg:b',
            '//tff_autotune_secagg:tff_autotune_secagg',
          ],
          None,
        ),
        ('experiments/soak', 'run'): (
          'py_binary',
          [
            '//tff_autotune_secagg:b',
            '//tff_autotune_secagg:tff_autotune_secagg',
          ],
          None,
        ),
        ('tests', 'helper'): ('py_library', None, None),
        ('tests/soak', 'a_test'): (
          'py_test',
          ['//experiments/soak:run'],
          ['//:project_files'],
        ),
        ('tests/numerics', 'a_test'): (
          'py_test',
          ['//tests:helper'],
          ['//:project_files'],
        ),
      },
    )

  def test_collects_the_files_of_folders_below(self):
    texts = write_build.build_texts(self._project)
    self.assertEqual(
      {str(path.parent): _files_of(text) for path, text in texts.items()},
      {
        '.': [
          '//experiments:files',
          '//tests:files',
          '//tff_autotune_secagg:files',
        ],
        'experiments': ['//experiments/soak:files'],
        'experiments/soak': [],
        'tests': ['//tests/numerics:files', '//tests/soak:files'],
        'tests/numerics': [],
        'tests/soak': [],
        'tff_autotune_secagg': ['//tff_autotune_secagg/numerics:files'],
        'tff_autotune_secagg/numerics': [],
      },
    )

  def test_differences_are_seen_and_mended(self):
    write_build.write(self._project)
    self.assertEmpty(_differences(self._project))
    package = self._project / 'tff_autotune_secagg'
    with self.subTest('new_module'):
      (package / 'd.py').write_text('')
      self.assertEqual(
        _differences(self._project), ['tff_autotune_secagg/BUILD']
      )
    with self.subTest('new_import'):
      (package / 'numerics' / 'a.py').write_text('import experiments.soak.run')
      self.assertLen(_differences(self._project), 2)
    with self.subTest('folder_without_sources'):
      (self._project / 'tests' / 'soak' / 'a_test.py').unlink()
      self.assertEqual(
        _differences(self._project),
        [
          'tests/BUILD',
          'tests/soak/BUILD',
          'tff_autotune_secagg/BUILD',
          'tff_autotune_secagg/numerics/BUILD',
        ],
      )
    with self.subTest('missing'):
      (self._project / 'BUILD').unlink()
      self.assertIn('BUILD', _differences(self._project))
    write_build.write(self._project)
    self.assertEmpty(_differences(self._project))
    self.assertFalse((self._project / 'tests' / 'soak' / 'BUILD').exists())


if __name__ == '__main__':
  absltest.main()

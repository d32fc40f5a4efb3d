# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that BUILD has a target for every module and every test."""

import ast
import collections
import pathlib

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


def _create_project(folder: pathlib.Path, **files: str) -> pathlib.Path:
  for name, text in files.items():
    path = folder / (name.replace('__in__', '/') + '.py')
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
  return folder


class BuildFileTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._text = (_PROJECT / 'BUILD').read_text(encoding='utf-8')
    self._rules = _rules(self._text)

  def test_is_what_the_tool_writes(self):
    self.assertEqual(
      self._text,
      write_build.build_text(_PROJECT),
      'BUILD is out of date: run `make build-file`.',
    )

  def test_every_file_has_one_target(self):
    files = {
      str(path.relative_to(_PROJECT))
      for folder in write_build.FOLDERS
      for path in (_PROJECT / folder).rglob('*.py')
      if path.name != 'conftest.py'
    }
    sources = collections.Counter(
      source
      for kind, attributes in self._rules
      if kind != 'py_binary'
      for source in attributes['srcs']
    )
    self.assertEqual(sources, dict.fromkeys(files, 1))

  def test_every_test_file_is_a_test(self):
    tests = [
      attributes['srcs']
      for kind, attributes in self._rules
      if kind == 'py_test'
    ]
    self.assertCountEqual(
      tests,
      [
        [str(path.relative_to(_PROJECT))]
        for path in (_PROJECT / 'tests').rglob('*_test.py')
      ],
    )

  def test_names_are_distinct_and_dependencies_exist(self):
    names = [attributes['name'] for _, attributes in self._rules]
    self.assertLen(set(names), len(names))
    for _, attributes in self._rules:
      for label in attributes.get('deps', []):
        self.assertIn(label.removeprefix(':'), names)

  def test_every_test_file_runs_its_tests_as_a_program(self):
    # Bazel runs the file. Without a main it would do nothing, and pass.
    for path in (_PROJECT / 'tests').rglob('*_test.py'):
      with self.subTest(path.name):
        self.assertRegex(
          path.read_text(encoding='utf-8'),
          r"\nif __name__ == '__main__':\n(  .*\n)*  \w+(\.\w+)*\.main\(\)\n$",
        )


class WriteBuildTest(absltest.TestCase):
  def test_finds_what_a_module_needs(self):
    project = _create_project(
      pathlib.Path(self.create_tempdir().full_path),
      tff_autotune_secagg__in____init__='from tff_autotune_secagg import a\n',
      tff_autotune_secagg__in__a='import os\n',
      tff_autotune_secagg__in__b='from tff_autotune_secagg import a\n',
      experiments__in__run_c=(
        'def main():\n'
        '  import tff_autotune_secagg as tas\n'
        '  from tff_autotune_secagg.b import something\n'
        "if __name__ == '__main__':\n"
        '  main()\n'
      ),
      tests__in__d_test='from experiments import run_c\nprint(__file__)\n',
      tests__in__e_test='import os\nprint(os.__file__)\n',
    )
    rules = _rules(write_build.build_text(project))
    self.assertEqual(
      {attributes['name']: attributes.get('deps') for _, attributes in rules},
      {
        'tff_autotune_secagg': [':a'],
        'a': None,
        'b': [':a'],
        'experiments_run_c': [':b', ':tff_autotune_secagg'],
        'run_c': [':experiments_run_c'],
        'd_test': [':experiments_run_c'],
        'e_test': None,
      },
    )
    self.assertEqual(
      [kind for kind, _ in rules],
      ['py_library'] * 4 + ['py_binary', 'py_test', 'py_test'],
    )
    self.assertEqual(
      [attributes.get('data') for _, attributes in rules],
      [['tff_autotune_secagg/py.typed'], None, None, None, None]
      + [[':project_files']] * 2,
    )


if __name__ == '__main__':
  absltest.main()

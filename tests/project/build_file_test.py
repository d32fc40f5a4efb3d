# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that Bazel has a target for every Python file, and runs every test."""

import pathlib

from absl.testing import absltest

_PROJECT = pathlib.Path(__file__).parents[2]
_FOLDERS = ('examples', 'experiments', 'tests', 'tff_autotune_secagg')


def _rules(folder: str) -> list[tuple[str, dict[str, object]]]:
  """Kind and attributes of each target in a folder's BUILD.

  BUILD is a small Python: it runs, with stand-ins for what Bazel defines.
  """
  rules = []

  def glob(include, exclude=()):
    found = set()
    for pattern in include:
      found.update((_PROJECT / folder).glob(pattern))
    for pattern in exclude:
      found.difference_update((_PROJECT / folder).glob(pattern))
    return sorted(
      str(path.relative_to(_PROJECT / folder))
      for path in found
      if path.is_file()
    )

  def rule(kind):
    return lambda **attributes: rules.append((kind, attributes))

  text = (_PROJECT / folder / 'BUILD').read_text(encoding='utf-8')
  kinds = ('filegroup', 'py_binary', 'py_library', 'py_test')
  exec(
    compile(text, f'{folder}/BUILD', 'exec'),
    {
      'glob': glob,
      'load': lambda *names: None,
      'package': lambda **attributes: None,
      **{kind: rule(kind) for kind in kinds},
    },
  )
  return rules


def _sources(folder: str, kind: str) -> list[str]:
  return [
    source
    for rule_kind, attributes in _rules(folder)
    if rule_kind == kind
    for source in attributes['srcs']
  ]


def _python_files(folder: str) -> list[str]:
  return [
    str(path.relative_to(_PROJECT / folder))
    for path in (_PROJECT / folder).rglob('*.py')
  ]


class BuildFilesTest(absltest.TestCase):
  def test_none_hides_files_from_the_globs_of_another(self):
    files = {
      str(path.parent.relative_to(_PROJECT))
      for folder in _FOLDERS
      for path in (_PROJECT / folder).rglob('BUILD*')
    }
    self.assertEqual(files, set(_FOLDERS))

  def test_every_test_file_is_one_test(self):
    self.assertCountEqual(
      _sources('tests', 'py_test'),
      [path for path in _python_files('tests') if path.endswith('_test.py')],
    )

  def test_every_other_file_is_in_one_library(self):
    for folder in _FOLDERS:
      self.assertCountEqual(
        _sources(folder, 'py_library'),
        [path for path in _python_files(folder) if '_test.py' not in path],
      )

  def test_every_program_is_a_binary(self):
    for folder in ('examples', 'experiments', 'tff_autotune_secagg'):
      self.assertCountEqual(
        _sources(folder, 'py_binary'),
        [
          path
          for path in _python_files(folder)
          if "\nif __name__ == '__main__':"
          in (_PROJECT / folder / path).read_text(encoding='utf-8')
        ],
      )

  def test_every_test_file_runs_its_tests_as_a_program(self):
    # Bazel runs the file. Without a main it would do nothing, and pass.
    for path in (_PROJECT / 'tests').rglob('*_test.py'):
      with self.subTest(path.name):
        self.assertRegex(
          path.read_text(encoding='utf-8'),
          r"\nif __name__ == '__main__':\n(  .*\n)*  \w+(\.\w+)*\.main\(\)\n$",
        )


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the examples of README.md and docs/migration.md run as printed."""

import os
import pathlib
import re
import subprocess
import sys

from absl.testing import absltest
import pytest

_PROJECT = pathlib.Path(__file__).parents[2]
_NUMBER = re.compile(r'\d+\.\d+')


def _blocks(document: str, language: str) -> list[str]:
  text = (_PROJECT / document).read_text(encoding='utf-8')
  return re.findall(
    rf'^```{language}\n(.*?)^```', text, re.DOTALL | re.MULTILINE
  )


@pytest.mark.slow
class ExampleTest(absltest.TestCase):
  def _run(self, code: str) -> str:
    """Runs `code` as a reader would and returns what it prints."""
    folder = pathlib.Path(self.create_tempdir().full_path)
    (folder / 'example.py').write_text(code, encoding='utf-8')
    environment = dict(os.environ, PYTHONPATH=str(_PROJECT))
    # To files: whatever a process leaves behind would keep a pipe open.
    with open(folder / 'out', 'w') as out, open(folder / 'err', 'w') as err:
      status = subprocess.run(
        [sys.executable, 'example.py'],
        cwd=folder,
        env=environment,
        stdout=out,
        stderr=err,
        check=False,
      ).returncode
    self.assertEqual(status, 0, (folder / 'err').read_text()[-2000:])
    return (folder / 'out').read_text(encoding='utf-8')

  def test_readme_example_prints_what_readme_says(self):
    code = _blocks('README.md', 'python')[0]
    self.assertLessEqual(len(code.splitlines()), 16)
    printed = self._run(code)
    promised = _blocks('README.md', 'text')[0]
    self.assertEqual(_NUMBER.sub('#', printed), _NUMBER.sub('#', promised))
    for found, said in zip(_NUMBER.findall(printed), _NUMBER.findall(promised)):
      # Rotation and rounding are random: the promise is about the size.
      self.assertBetween(float(found), 0.7 * float(said), 1.4 * float(said))

  def test_migration_example_trains(self):
    printed = self._run(_blocks('docs/migration.md', 'python')[0])
    rounds = re.findall(
      r'round (\d): loss (\d+\.\d+), bin size \d+\.\d+, 1024 bytes', printed
    )
    self.assertEqual([number for number, _ in rounds], ['1', '2', '3'])
    self.assertLess(float(rounds[2][1]), float(rounds[0][1]))


if __name__ == '__main__':
  absltest.main()

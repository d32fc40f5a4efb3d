# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import os
import shutil

from absl.testing import absltest

import experiments
from experiments.common import command_line
from experiments.common import flag_groups
from experiments.common import results_file
from experiments.error_table import plot
from experiments.training import flags as training_flags
from tests import binary_runner

del plot, training_flags  # Imported for their flags.

_PUBLISHED = os.path.join(
  os.path.dirname(experiments.__file__),
  *('error_table', 'results', 'error_table.jsonl'),
)


class SmokeTest(absltest.TestCase):
  """Where a smoke run writes."""

  def setUp(self):
    super().setUp()
    self._folder = self.create_tempdir().full_path
    self._path = os.path.join(self._folder, 'a.jsonl')

  def _held_path(self, *arguments):
    """Path of the file of a run, which adds a row to it."""
    with binary_runner.parsed_flags(*arguments):
      with flag_groups.held_results(is_required=True) as file:
        file.begin('a', {}, {})
        return file.path

  def test_a_temporary_file_unless_the_command_line_names_one(self):
    flag_file = self.create_tempfile('a', f'--results={self._path}').full_path
    for arguments in ([], [f'--flagfile={flag_file}']):
      path = self._held_path('--smoke', *arguments)
      self.assertNotEqual(path, self._path)
      self.assertFalse(os.path.exists(path))
    self.assertFalse(os.path.exists(self._path))
    # The negative controls.
    self.assertEqual(self._held_path(f'--flagfile={flag_file}'), self._path)
    os.remove(self._path)
    given = ['--smoke', f'--results={self._path}']
    self.assertEqual(self._held_path(*given), self._path)
    self.assertTrue(os.path.exists(self._path))

  def test_never_a_published_file(self):
    shutil.copy(_PUBLISHED, self._path)
    before = results_file.ResultsFile(self._path).rows()
    with self.assertRaisesRegex(
      command_line.UserError, '^--smoke must not add to rows of real runs, fo'
    ):
      self._held_path('--smoke', f'--results={self._path}')
    self.assertEqual(results_file.ResultsFile(self._path).rows(), before)

  def test_a_real_run_must_be_told_of_a_file(self):
    with self.assertRaisesRegex(
      command_line.UserError, '^--results must have a value, found none.$'
    ):
      self._held_path()

  def test_a_temporary_folder_unless_the_command_line_names_one(self):
    with binary_runner.parsed_flags('--smoke'):
      folder = flag_groups.output_dir('demo')
    self.addCleanup(os.rmdir, folder)
    self.assertEmpty(os.listdir(folder))
    given = f'--output_dir={self._folder}'
    for arguments in (['--smoke', given], [given]):
      with binary_runner.parsed_flags(*arguments):
        self.assertEqual(flag_groups.output_dir('demo'), self._folder)
    with binary_runner.parsed_flags():
      self.assertRegex(
        flag_groups.output_dir('demo'), r'^results/demo-[\d-]{17}$'
      )


if __name__ == '__main__':
  absltest.main()

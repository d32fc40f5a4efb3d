# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
import os

from absl.testing import absltest

from experiments.common import result_rows
from experiments.common import results_file


def _round(run, number, **extra):
  return {'kind': 'round', 'run': run, 'round': number, **extra}


class ReadTest(absltest.TestCase):
  def test_a_file_that_is_not_there_is_named_and_not_made(self):
    folder = self.create_tempdir().full_path
    path = os.path.join(folder, 'mispelt', 'r.jsonl')
    with self.assertRaisesWithLiteralMatch(
      FileNotFoundError, f'There is no file of result rows {path!r}.'
    ):
      result_rows.read(path)
    self.assertEmpty(os.listdir(folder))

  def test_a_folder_stands_for_its_file(self):
    folder = self.create_tempdir().full_path
    file = results_file.ResultsFile(os.path.join(folder, results_file.NAME))
    list(file.store('a', {}, [dict(round=1)]))
    self.assertLen(result_rows.read(folder), 1)

  def test_a_run_that_is_not_described_is_named(self):
    path = self.create_tempdir().create_file('r.jsonl').full_path
    results_file.ResultsFile(path).append(_round('a', 1))
    with self.assertRaisesRegex(ValueError, "found none for 'a'[.]$"):
      result_rows.read(path)


class SelectTest(absltest.TestCase):
  _ROWS = [
    _round('a', 1, config={'seed': 1, 'aggregator': 'plain_mean'}),
    _round('b', 1, config={'seed': 2, 'aggregator': 'autotuned:modulus=16'}),
    _round('c', 1, config={'seed': 2, 'aggregator': 'autotuned:modulus=256'}),
  ]

  def _runs(self, *conditions):
    return [row['run'] for row in result_rows.select(self._ROWS, conditions)]

  def test_all_conditions_hold_and_prefixes_are_enough(self):
    self.assertEqual(self._runs(), ['a', 'b', 'c'])
    self.assertEqual(
      self._runs('aggregator=plain|autotuned:modulus=16'), ['a', 'b']
    )
    self.assertEqual(self._runs('seed=2', 'aggregator=autotuned'), ['b', 'c'])
    self.assertEqual(self._runs('aggregator=autotuned:modulus=16$'), ['b'])
    with self.assertRaisesRegex(ValueError, 'must leave some rows'):
      self._runs('aggregator=autotuned:modulus=2$')

  def test_none_left_says_what_there_was(self):
    with self.assertRaisesWithLiteralMatch(
      ValueError,
      "`select` must leave some rows, found none with 'seed=9'; the values of "
      "'seed' are 1, 2.",
    ):
      self._runs('seed=9')

  def test_an_unknown_setting_says_which_there_are(self):
    with self.assertRaisesWithLiteralMatch(
      ValueError,
      "`select` must name a setting, found 'seeds'; they are aggregator, seed.",
    ):
      self._runs('seeds=1')


class MeasurementTest(absltest.TestCase):
  def test_takes_the_last_part_of_a_key(self):
    row = {'aggregator': {'x/bin_size': 2.0, 'bin': 1.0}}
    self.assertEqual(result_rows.measurement(row, 'bin_size'), 2.0)
    self.assertIsNone(result_rows.measurement(row, 'size'))


if __name__ == '__main__':
  absltest.main()

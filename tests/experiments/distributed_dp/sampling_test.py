# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import os

from absl.testing import absltest
import numpy as np

from experiments.common import result_rows
from experiments.distributed_dp import sampling
from tff_autotune_secagg import simulation

_FOLDER = os.path.dirname(sampling.__file__)
_FLAG_FILE = os.path.join(_FOLDER, 'configs', 'distributed_dp_sampled.flags')
_RESULTS = os.path.join(_FOLDER, 'results', 'distributed_dp_sampled.jsonl')


def setUpModule():
  simulation.set_local_context()


def tearDownModule():
  simulation.close()


def _published_cells():
  with open(_FLAG_FILE) as f:
    lines = [line.strip() for line in f if line.startswith('--')]
  given = dict(line[2:].split('=') for line in lines)
  numbers = {
    name: [float(text) for text in texts.split(',')]
    for name, texts in given.items()
  }
  return list(
    sampling.cells(
      [int(number) for number in numbers['cohorts']],
      numbers['common'],
      numbers['noise_multipliers'],
      numbers['sampled_fractions'],
      [int(number) for number in numbers['seeds']],
      dim=int(given['dim']),
    )
  )


class CellTest(absltest.TestCase):
  def test_error_is_the_predicted_one(self):
    cell = sampling.Cell(10, 0.9, 0.5, 0.5, dim=2048, seed=1)
    row = sampling.run(cell)
    self.assertEqual(row, {**row, **vars(cell)})
    # 1,024 of 2,048 coordinates: |X|^2 / (D z^2 c^2).
    signal = (10 * row['alignment']) ** 2 / (2048 * 0.25)
    self.assertBetween(row['alignment'], 0.88, 0.95)
    self.assertAlmostEqual(row['predicted_ratio'], 1.0 + signal)
    self.assertBetween(
      row['error_ratio'] / row['predicted_ratio'],
      1.0 - 5.0 * np.sqrt(2.0 / 1024),
      1.0 + 5.0 * np.sqrt(2.0 / 1024),
    )
    self.assertEqual(row['bytes_per_client'], 1024 * row['bits'] // 8)
    self.assertEqual(row['bits_per_value'], row['bits'] / 2)

  def test_refuses_what_cannot_be_measured(self):
    for common, fractions, message in (
      ([0.5], [1.0], '`common` must be a number for each of 2 cohorts'),
      ([0.5, 1.5], [1.0], '`common` must be from 0 to 1'),
      ([0.5, 0.5], [0.0], '`sampled_fraction` must be a finite number above 0'),
    ):
      with self.assertRaisesRegex(ValueError, f'^{message}'):
        sampling.check(
          sampling.cells([5, 6], common, [1.0], fractions, [1], dim=1024)
        )


class SummaryTest(absltest.TestCase):
  def test_means_and_intervals_over_the_seeds(self):
    row = dict(
      num_clients=5,
      common=0.5,
      noise_multiplier=1.0,
      sampled_fraction=0.5,
      dim=2048,
      bits=5,
      bits_per_value=2.5,
      bytes_with_keys=2010,
      predicted_ratio=1.2,
    )
    rows = [
      dict(row, seed=seed, error_ratio=ratio)
      for seed, ratio in ((1, 1.1), (2, 1.3))
    ]
    rows.append(dict(rows[0], sampled_fraction=1.0))
    first, second = sampling.summary(rows)
    self.assertEqual((first['num_seeds'], second['num_seeds']), (2, 1))
    self.assertAlmostEqual(first['error_ratio'], 1.2)
    # 12.7 standard errors of 0.1.
    self.assertAlmostEqual(first['half_width'], 1.2706, places=3)
    self.assertLen(sampling.format_table(rows).splitlines(), 4)


class PublishedTest(absltest.TestCase):
  def test_flag_file_describes_cells_that_can_be_measured(self):
    cells = _published_cells()
    self.assertLen(set(cells), len(cells))
    self.assertEqual({cell.num_clients for cell in cells}, {100, 1000})
    sampling.check(cells)

  def test_rows_are_those_of_the_flag_file_and_near_the_prediction(self):
    rows = result_rows.read(_RESULTS)
    names = list(vars(_published_cells()[0]))
    found = [
      sampling.Cell(**{name: row[name] for name in names}) for row in rows
    ]
    self.assertCountEqual(found, _published_cells())
    for row in sampling.summary(rows):
      num = row['dim'] * row['sampled_fraction'] * row['num_seeds']
      # The clip norm trims samples by up to 1 % of their length.
      tolerance = 5.0 * np.sqrt(2.0 / num) + 0.02
      ratio = row['error_ratio'] / row['predicted_ratio']
      self.assertBetween(ratio, 1.0 - tolerance, 1.0 + tolerance, row)


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import math
import os

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from experiments.common import result_rows
from experiments.common import sum_simulation
from experiments.error_table import figure
from experiments.error_table import table
from tests import reference
from tff_autotune_secagg import modulus_planning
from tff_autotune_secagg.numerics.rounding import modes

_RESULTS = os.path.join(
  os.path.dirname(figure.__file__), 'results', 'error_table.jsonl'
)


class CellTest(parameterized.TestCase):
  @parameterized.parameters('stochastic', 'dither')
  def test_measured_error_is_the_predicted_one(self, rounding):
    row = table.run(
      table.Cell(
        modulus=64, num_clients=3, rounding=rounding, dim=4096, num_rounds=8
      )
    )
    self.assertLess(abs(row['nmse'] / row['predicted_nmse'] - 1), 0.15)
    # A calibration round of dither is decoded to 0: exactly 1.
    self.assertLessEqual(row['largest_nmse'], 1.0)
    self.assertAlmostEqual(
      row['bits_above_bound'],
      reference.lattice_bound_bits(row['nmse'], 3, 64),
    )

  def test_a_cell_repeats_from_its_seed(self):
    # Of six rounds, the tracing would be most.
    tf.config.run_functions_eagerly(True)
    self.addCleanup(tf.config.run_functions_eagerly, False)
    cell = table.Cell(
      modulus=16, num_clients=2, dim=1024, num_rounds=2, warm_up_rounds=1
    )
    self.assertEqual(table.run(cell), table.run(cell))

  def test_cells_hold_every_kind_once(self):
    found = list(table.cells([4, 16], [1], [1e-2, 1e-3], dim=1024))
    self.assertLen(found, 10)
    self.assertLen(set(found), 10)

  @parameterized.parameters(1, 10)
  def test_clients_have_a_sum_of_unit_variance(self, num_clients):
    for draw in table.CLIENT_KINDS.values():
      rows = draw(np.random.default_rng(1), num_clients, 2**14)
      self.assertEqual(rows.shape, (num_clients, 2**14))
      variance = np.mean(rows.sum(axis=0) ** 2)
      self.assertLess(abs(variance - 1), 5 * math.sqrt(2 / 2**14))
    aligned = sum_simulation.aligned_clients(np.random.default_rng(1), 3, 8)
    np.testing.assert_array_equal(aligned[0], aligned[2])


class PublishedTest(absltest.TestCase):
  """The committed rows are what the design promises."""

  def setUp(self):
    super().setUp()
    self._rows = result_rows.read(_RESULTS)

  def _check(self, row, is_wrong=False):
    # Sizes do not change here. A tuner that has seen few of them sets bins for
    # an uncertainty of 0.15, one that has seen a hundred for 0.04.
    least, most = (
      modulus_planning.predicted_nmse(
        num_clients=row['num_clients'],
        modulus=row['modulus'],
        rounding=modes.Rounding(row['rounding']),
        size_uncertainty=uncertainty,
      )
      for uncertainty in (0.04, 0.15)
    )
    nmse = (4.0 if is_wrong else 1.0) * row['nmse']
    sampling = 5 * row['standard_error']
    above = nmse < 1.15 * most + min(sampling, 0.1 * most)
    below = nmse > 0.85 * least - min(sampling, 0.1 * least)
    return above and (below or row['clients'] == 'aligned')

  def test_every_cell_is_there(self):
    keys = {(r['modulus'], r['num_clients']) for r in self._rows}
    self.assertLen(keys, 24)
    # The automatic alpha, aligned clients, dither, and five alphas; of more
    # than one client those that cancel, and two kinds of cohorts that vary.
    self.assertLen(self._rows, 24 * 8 + 18 * 3)

  def test_measured_errors_are_the_predicted_ones(self):
    rows = [
      r
      for r in self._rows
      if r['predicted_nmse'] < 0.5
      and r['wrap_probability'] is None
      and r['fewest_clients'] is None
    ]
    self.assertNotEmpty(rows)
    for row in rows:
      self.assertTrue(self._check(row), row)
      if row['clients'] != 'aligned':
        self.assertFalse(self._check(row, is_wrong=True), row)

  def test_the_server_says_what_clients_that_cancel_err(self):
    rows = [r for r in self._rows if r['clients'] == 'cancelling']
    self.assertLen(rows, 18)
    for row in rows:
      most = 1.05 * row['reported_nmse'] + 5 * row['standard_error']
      self.assertLess(row['nmse'], most)

  def test_cohorts_that_vary_lose_no_round_of_enough_bits(self):
    rows = [r for r in self._rows if r['fewest_clients'] is not None]
    self.assertLen(rows, 36)
    for row in rows:
      if row['modulus'] >= 256 and row['num_clients'] <= 100:
        # Sixteen rounds: a lost round would be 0.06 of the mean by itself.
        self.assertLess(row['nmse'], 0.05)

  def test_bits_above_the_lattice_bound(self):
    automatic = [
      r
      for r in self._rows
      if r['wrap_probability'] is None
      and r['clients'] == 'orthogonal'
      and r['fewest_clients'] is None
    ]
    for row in automatic:
      self.assertLess(row['bits_above_bound'], 2.9)
      if (row['modulus'], row['num_clients']) == (256, 10):
        limit = 2.1 if row['rounding'] == 'stochastic' else 1.7
        self.assertLess(row['bits_above_bound'], limit)

  def test_no_round_is_worse_than_none(self):
    for row in self._rows:
      sampling = 5 * math.sqrt(2 / row['dim'])
      self.assertLess(row['largest_nmse'], 1 + sampling, row)

  def test_picture_has_a_column_for_each_cohort(self):
    self.assertLen(figure.draw(self._rows).axes, 8)


if __name__ == '__main__':
  absltest.main()

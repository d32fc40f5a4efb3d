# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import os

from absl.testing import absltest
from absl.testing import parameterized

from experiments.common import result_rows
from experiments.common import results_file
from experiments.distributed_dp import comparison
from experiments.distributed_dp import figure
from tff_autotune_secagg import simulation

_RESULTS = os.path.join(
  os.path.dirname(figure.__file__), 'results', 'distributed_dp.jsonl'
)


def setUpModule():
  simulation.set_local_context()


def tearDownModule():
  simulation.close()


def _store(file, wanted):
  return file.store_missing('distributed_dp', wanted, comparison.run)


class TffTest(parameterized.TestCase):
  @parameterized.parameters(
    (100, 12, 0.338), (1000, 16, 0.855), (100, 20, 0.99)
  )
  def test_real_multiplier(self, num_clients, bits, expected):
    found = comparison.tff_real_multiplier(1.0, bits, num_clients, 2**20)
    self.assertAlmostEqual(found, expected, delta=1e-3)

  def test_noise_makes_up_for_rounding_or_cannot(self):
    found = comparison.tff_multiplier(1.0, 14, 100, 2**16)
    self.assertGreater(found, 1.1)
    self.assertAlmostEqual(
      comparison.tff_real_multiplier(found, 14, 100, 2**16), 1.0, places=6
    )
    self.assertIsNone(comparison.tff_multiplier(1.0, 10, 100, 2**16))

  def test_too_few_bits_for_the_clients(self):
    self.assertEqual(comparison.tff_real_multiplier(1.0, 3, 100, 2**16), 0.0)


class CellTest(parameterized.TestCase):
  def _run(self, scheme, bits):
    return comparison.run(comparison.Cell(scheme, bits, 10, dim=4096))

  @parameterized.parameters((comparison.CENTRAL, 32), (comparison.THIS, 7))
  def test_error_is_near_the_central_gaussian(self, scheme, bits):
    row = self._run(scheme, bits)
    # The gain is known to 1 / 10 here, and its square divides the error.
    self.assertBetween(row['error_ratio'] * row['gain'] ** 2, 0.88, 1.2)

  def test_tff_is_at_the_same_real_multiplier(self):
    row = self._run(comparison.TFF, 16)
    self.assertAlmostEqual(row['real_multiplier'], 0.9**0.5, delta=1e-3)
    self.assertGreater(row['set_multiplier'], 0.9**0.5)

  def test_privacy_out_of_reach(self):
    row = self._run(comparison.TFF, 7)
    self.assertIsNone(row['error_ratio'])
    self.assertIn('no noise', comparison.format_row(row))

  def test_a_file_is_continued(self):
    path = os.path.join(self.create_tempdir().full_path, 'rows.jsonl')
    file = results_file.ResultsFile(path)
    wanted = [comparison.Cell(comparison.TFF, bits, 10) for bits in (5, 6)]
    self.assertLen(list(_store(file, wanted[:1])), 1)
    self.assertLen(list(_store(file, wanted)), 1)
    self.assertEqual(file.rounds('distributed_dp'), [1, 2])


class ResultsTest(absltest.TestCase):
  """What the README says of the committed rows."""

  def test_error_is_the_central_one_at_the_bits_of_the_noise(self):
    rows = result_rows.read(_RESULTS)
    for num_clients, bits in ((100, 7), (1000, 9)):
      (row,) = [
        row
        for row in rows
        if (row['scheme'], row['num_clients'], row['bits'])
        == (comparison.THIS, num_clients, bits)
      ]
      self.assertBetween(row['error_ratio'], 0.95, 1.05)

  def test_figure_shows_both_cohorts(self):
    drawn = figure.draw(result_rows.read(_RESULTS))
    self.assertLen(drawn.axes, 2)


if __name__ == '__main__':
  absltest.main()

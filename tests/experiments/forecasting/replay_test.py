# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import math
import os

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

import experiments
from experiments.common import result_rows
from experiments.forecasting import figure
from experiments.forecasting import recorded
from experiments.forecasting import replay
from experiments.forecasting import table
from tests import reference

_ROOT = os.path.dirname(os.path.dirname(experiments.__file__))
_UNEVEN = os.path.join(
  _ROOT, 'experiments', 'training', 'results', 'fashion_dirichlet.jsonl'
)
_SETTING = replay.Setting(modulus=256, num_clients=10, num_coordinates=4096)


class ReplayTest(parameterized.TestCase):
  @parameterized.parameters(0.3, 1.0, 4.0, 20.0)
  def test_errors_of_a_round_by_the_slow_references(self, reach):
    bin_size = 2 * reach / 256
    noise = (
      10
      * bin_size**2
      * reference.stochastic_variance(1 / (math.sqrt(10) * bin_size))
    )
    wrap = reference.wrapped_error(reach / math.sqrt(1 + noise), False)
    noise_share = noise / (1 + noise)
    gain = reference.decoding_gain(wrap, 1 - noise_share, 'unbiased')
    expected = reference.error_of_gain(gain, wrap, noise_share)
    found = replay.errors(_SETTING, np.log([bin_size]))
    np.testing.assert_allclose(found, [expected], rtol=0.01)

  def test_reach_is_where_the_mean_cosine_is_five_standard_errors(self):
    half_period = 128 * math.exp(replay.log_reach(_SETTING))
    cosine = math.exp(-2 * math.pi**2 / (2 * half_period) ** 2)
    np.testing.assert_allclose(cosine, 5 / math.sqrt(2 * 4096), rtol=0.05)

  def test_a_size_out_of_reach_costs_its_round_and_a_calibration(self):
    for rule in (replay.Smoothing(_SETTING, 1.0, 0.1), replay.Forecasting):
      rule = rule(_SETTING) if rule is replay.Forecasting else rule
      found = replay.replay(_SETTING, rule, [1.0] * 5 + [1e3] * 4)
      np.testing.assert_array_equal(np.flatnonzero(found.is_blind), [5])
      self.assertEqual(found.errors[5], 1.0)
      calibrations = np.flatnonzero(np.isnan(found.log_bin_sizes))
      np.testing.assert_array_equal(calibrations, [0, 6])
      self.assertBetween(found.errors[6], 0.8, 0.95)
      self.assertLess(found.errors[7], 0.01)

  def test_smoothing(self):
    rule = replay.Smoothing(_SETTING, gain=0.25, stddev=0.1)
    sizes = [1.0, 2.0, 1.0, 0.5]
    found = replay.replay(_SETTING, rule, sizes)
    level = [math.nan, 0.0, 0.25 * math.log(2), 0.1875 * math.log(2)]
    np.testing.assert_allclose(found.means, level)


class RecordedTest(parameterized.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.rows = result_rows.read(_UNEVEN)

  def test_blind_rounds_get_the_size_of_the_run_with_more_bits(self):
    found = recorded.sizes(self.rows, 16)
    self.assertEqual(recorded.num_blind_rounds(self.rows, 16), 1)
    self.assertEqual(found[2][3], recorded.sizes(self.rows)[2][3])
    self.assertEqual([len(found[seed]) for seed in (1, 2, 3)], [40] * 3)
    self.assertTrue(all(x > 0 for run in found.values() for x in run))

  def test_setting(self):
    found = recorded.setting(self.rows, 16)
    self.assertEqual(found, replay.Setting(16, 10, 34560))


class TableTest(parameterized.TestCase):
  def test_the_forecast_is_near_the_best_choice_in_hindsight(self):
    rows = table.rows('uneven', result_rows.read(_UNEVEN), [256])
    for row, limit in zip(rows, (1.25, 1.35)):
      self.assertLess(row['forecast'], limit)
      # The rule before it, as the control.
      self.assertGreater(row['last_round'], 3.0)
    self.assertRegex(table.summary(rows, 5, 'forecast'), r'^1\.\d\d, worst')

  def test_no_round_is_blind(self):
    rows = table.blind_rows('uneven', result_rows.read(_UNEVEN), [8, 16])
    (row,) = rows  # No run had the modulus 8.
    self.assertEqual(row['recorded'], 1)
    self.assertEqual(row['last_round'], 1)
    self.assertEqual(row['forecast'], 0)
    self.assertLess(row['forecast_error'], row['last_round_error'])

  def test_figure(self):
    rows = result_rows.read(_UNEVEN)
    sizes = recorded.sizes(rows)[1][:12]
    drawing = figure.draw(recorded.setting(rows, 256), sizes, 'Title')
    upper, lower = drawing.axes
    np.testing.assert_array_equal(upper.lines[0].get_ydata(), sizes)
    self.assertLen(lower.lines, 2)
    self.assertIn('128 bins', upper.get_legend_handles_labels()[1][-1])


if __name__ == '__main__':
  absltest.main()

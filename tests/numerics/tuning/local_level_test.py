# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `local_level`; learning over many rounds: `forecasting_test`."""

import collections
import math

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
from scipy import stats
import tensorflow as tf

from tff_autotune_secagg.numerics.tuning import forecasting
from tff_autotune_secagg.numerics.tuning import local_level

_GAINS = np.array([1.0, 0.5, 0.25])


def _float64(x):
  return tf.constant(x, tf.float64)


def _state(**fields):
  """A state after some rounds, with these fields."""
  state = collections.OrderedDict(
    forecasting.initial_state(),
    level=_float64([0.1, -0.2, 0.4]),
    squared_errors=_float64([0.2, 0.3, 0.4]),
    num_errors=_float64(5.0),
    log_weights=_float64([0.0, -1.0, -2.0]),
    num_clients=_float64(10.0),
  )
  state.update({name: _float64(value) for name, value in fields.items()})
  return state


class StateTest(absltest.TestCase):
  def test_mean_is_weighted(self):
    weights = np.exp([0.0, -1.0, -2.0])
    expected = weights @ [0.1, -0.2, 0.4] / weights.sum()
    self.assertAlmostEqual(float(local_level.mean(_state())), expected)

  def test_scales_are_never_zero(self):
    state = _state(squared_errors=[0.0, 0.0, 0.0], num_errors=0.0)
    np.testing.assert_allclose(local_level.variances(state), 0.04**2)
    self.assertEqual(float(local_level.degrees(state)), 3.0)


class LearnTest(parameterized.TestCase):
  def _learn(self, state, log_size, error=0.0, level=0.0, is_noise=False):
    return local_level.learn(
      state,
      _float64(log_size),
      _float64(error),
      _float64(level),
      tf.constant(is_noise),
    )

  def test_gains_weigh_by_the_densities_of_what_came(self):
    state = _state()
    learned = self._learn(state, 0.7, error=0.01, level=0.02)
    scale = np.sqrt(local_level.variances(state).numpy() + 0.03)
    density = stats.t.logpdf(0.7, 5.0 + 3.0, [0.1, -0.2, 0.4], scale)
    # Older densities count 0.95 of the newer ones; only differences matter.
    expected = 0.95 * np.array([0.0, -1.0, -2.0]) + density
    np.testing.assert_allclose(
      learned['log_weights'], expected - expected.max(), rtol=1e-9, atol=1e-12
    )

  def test_moves_by_the_gain_where_nothing_else_is_uncertain(self):
    before = _state()
    learned = self._learn(before, 0.7)
    moved = (learned['level'] - before['level']) / (0.7 - before['level'])
    np.testing.assert_allclose(moved, _GAINS)

  def test_moves_less_for_a_poor_observation_and_more_for_poor_levels(self):
    before = _state()
    for error, level, expected in ((1e9, 0.0, 0.0), (0.0, 1e9, 1.0)):
      learned = self._learn(before, 0.7, error, level)
      moved = (learned['level'] - before['level']) / (0.7 - before['level'])
      np.testing.assert_allclose(moved, expected, atol=1e-6)

  def test_a_far_error_teaches_no_more_than_a_bound_unless_it_is_noise(self):
    before = _state()
    variance = local_level.variances(before)
    taught = {}
    for is_noise in (False, True):
      learned = self._learn(before, 1e3, is_noise=is_noise)
      rest = local_level.ERROR_MEMORY * before['squared_errors']
      taught[is_noise] = (learned['squared_errors'] - rest) / variance
    # The weight (d + 1) / (d + e^2 / v) bounds e^2 by (d + 1) v, times 1.2.
    np.testing.assert_allclose(taught[False], 1.2 * (8.0 + 1.0), rtol=1e-3)
    self.assertGreater(float(tf.reduce_min(taught[True])), 1e5)


class ChangeTest(parameterized.TestCase):
  @parameterized.parameters(1.0, 40.0, 0.0)
  def test_a_cohort_moves_the_levels_between_the_root_and_the_ratio(
    self, num_clients
  ):
    before = _state()
    moved, variance = local_level.change_cohort(before, _float64(num_clients))
    log_ratio = math.log(max(num_clients, 1.0) / 10.0)
    # Sums of unlike clients grow with the root of their number, sums of equal
    # ones with the number: half way, and one standard deviation to each.
    np.testing.assert_allclose(
      moved['level'] - before['level'], 0.75 * log_ratio
    )
    self.assertAlmostEqual(float(variance), (0.25 * log_ratio) ** 2)
    self.assertEqual(float(moved['num_clients']), num_clients)

  def test_what_is_not_known_is_not_moved(self):
    before = _state(num_errors=0.0)
    moved, variance = local_level.change_cohort(before, _float64(1000.0))
    np.testing.assert_array_equal(moved['level'], before['level'])
    self.assertEqual(float(variance), 0.0)

  def test_a_jump_moves_all_levels_and_forgets_nothing_but_small_scales(self):
    jumped = local_level.jump(_state(), _float64(3.0))
    np.testing.assert_array_equal(jumped['level'], [3.0, 3.0, 3.0])
    np.testing.assert_array_equal(jumped['log_weights'], [0.0, -1.0, -2.0])
    # (0.2, 0.3, 0.4 + 3 * 0.04^2) / 8 are below 0.2^2 but for the last.
    floor = 3 * 0.04**2
    expected = 3 * np.maximum((np.array([0.2, 0.3, 0.4]) + floor) / 8, 0.04)
    np.testing.assert_allclose(jumped['squared_errors'], expected)
    self.assertEqual(float(jumped['num_errors']), 3.0)


if __name__ == '__main__':
  absltest.main()

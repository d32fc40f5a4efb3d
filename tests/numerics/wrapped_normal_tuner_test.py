# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import math

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
from scipy import optimize
from scipy import stats
import tensorflow as tf

from tests import reference
from tff_autotune_secagg import planning
from tff_autotune_secagg.numerics import fitting
from tff_autotune_secagg.numerics import modes
from tff_autotune_secagg.numerics import tuning
from tff_autotune_secagg.numerics import wrapped_normal_tuner

_STOCHASTIC = modes.Rounding.STOCHASTIC
_DITHER = modes.Rounding.DITHER
_POSTERIOR = modes.Decoding.POSTERIOR_MEAN
_CENTRED = modes.Decoding.CENTRED


def _fitted(sum_stddev=1.0, observed=None, is_blind=False, is_zero=False):
  if observed is None:
    observed = sum_stddev
  return fitting.WrappedNormalFit(
    tf.constant(sum_stddev, tf.float64),
    tf.constant(np.broadcast_to(observed, [16]), tf.float64),
    tf.constant(is_blind),
    tf.constant(is_zero),
  )


def _state(bin_size_value=0.5, calibrating=False):
  state = wrapped_normal_tuner.WrappedNormalTuner(modulus=256).initial_state()
  state['bin_size'] = tf.constant(bin_size_value, tf.float32)
  state['calibrating'] = tf.constant(calibrating)
  return state


def _next(tuner, state, fitted, num_clients=10.0):
  after = tuner.next_state(state, fitted, tf.constant(num_clients, tf.float64))
  assert [(k, v.dtype, v.shape) for k, v in after.items()] == [
    (k, v.dtype, v.shape) for k, v in state.items()
  ]
  return float(after['bin_size']), bool(after['calibrating'])


class StateTest(parameterized.TestCase):
  def test_begins_with_a_ladder_over_thirteen_decades(self):
    tuner = wrapped_normal_tuner.WrappedNormalTuner(modulus=256)
    bins = tuner.bin_sizes(tuner.initial_state()).numpy()
    self.assertEqual(bins.dtype, np.float32)
    np.testing.assert_allclose(bins[1:] / bins[:-1], 8.0, rtol=1e-6)
    self.assertGreater(bins[-1] / bins[0], 1e13)
    # The coarsest reads 1e4 and the finest 1e-9 at 2 bits, 4 bins a period.
    self.assertGreater(4 * bins[-1], 4 * 1e4)
    self.assertLess(bins[0], 1e-9)

  def test_an_ordinary_round_has_one_bin_size(self):
    tuner = wrapped_normal_tuner.WrappedNormalTuner(modulus=256)
    bins = tuner.bin_sizes(_state(0.25)).numpy()
    np.testing.assert_array_equal(bins, np.full(16, 0.25, np.float32))

  @parameterized.product(calibrating=(False, True), clients=(0.0, 10.0))
  def test_what_teaches_nothing_keeps_the_bin_size(self, calibrating, clients):
    tuner = wrapped_normal_tuner.WrappedNormalTuner(modulus=256)
    for fitted in (
      _fitted(0.0, is_blind=True),
      _fitted(0.0, is_zero=True),
      _fitted(0.0, is_blind=True, is_zero=True),
    ):
      found = _next(tuner, _state(0.5, calibrating), fitted, clients)
      # A round without clients says nothing; with them, it asks for the ladder.
      self.assertEqual(found, (0.5, calibrating or clients > 0))

  def test_a_readable_round_ends_the_calibration(self):
    tuner = wrapped_normal_tuner.WrappedNormalTuner(modulus=256)
    _, calibrating = _next(tuner, _state(calibrating=True), _fitted())
    self.assertFalse(calibrating)

  @parameterized.parameters(1e-300, 1e-35, 1e35, 1e300)
  def test_the_bin_size_is_clipped_to_float32(self, stddev):
    for alpha in (None, 1e-3):
      tuner = wrapped_normal_tuner.WrappedNormalTuner(
        modulus=256, wrap_probability=alpha
      )
      found, _ = _next(tuner, _state(), _fitted(stddev))
      self.assertTrue(math.isfinite(found))
      self.assertBetween(found, 0.99e-30, 1.01e30)


class RuleTest(parameterized.TestCase):
  @parameterized.parameters((1e-2, 256), (1e-3, 64), (1e-4, 4096), (0.3, 17))
  def test_a_float_keeps_the_papers_rule_exactly(self, alpha, modulus):
    tuner = wrapped_normal_tuner.WrappedNormalTuner(
      modulus=modulus, wrap_probability=alpha
    )
    # From far off its fixed point too: noise may dominate what is observed.
    for observed in (1.0, 1.7, 300.0):
      found, _ = _next(tuner, _state(), _fitted(1.0, observed))
      z = stats.norm.isf(alpha / 2)
      np.testing.assert_allclose(
        found, 2 * z * observed / (modulus - 1), rtol=1e-6
      )

  def test_after_a_ladder_the_rules_fixed_point_stands_in(self):
    alpha, modulus, clients = 1e-3, 64, 10.0
    tuner = wrapped_normal_tuner.WrappedNormalTuner(
      modulus=modulus, wrap_probability=alpha
    )
    ladder = np.linspace(1, 5, 16)
    found, _ = _next(
      tuner, _state(calibrating=True), _fitted(1.0, ladder), clients
    )
    observed = math.sqrt(1.0 + clients / 6 * found**2)
    again, _ = _next(tuner, _state(found), _fitted(1.0, observed), clients)
    np.testing.assert_allclose(again, found, rtol=1e-5)

  @parameterized.parameters(_STOCHASTIC, _DITHER)
  def test_where_it_diverges_the_bin_is_bounded_and_flagged(self, rounding):
    alpha, modulus, clients = 1e-4, 16, 1000.0
    tuner = wrapped_normal_tuner.WrappedNormalTuner(
      modulus=modulus, wrap_probability=alpha, rounding=rounding
    )
    found, _ = _next(tuner, _state(), _fitted(1.0, 1e12), clients)
    self.assertLess(found, 100.0)
    for decoding in (_POSTERIOR, _CENTRED):
      tuner = wrapped_normal_tuner.WrappedNormalTuner(
        modulus=modulus,
        wrap_probability=alpha,
        rounding=rounding,
        decoding=decoding,
      )
      is_too_small = tuner.modulus_is_too_small(
        tf.constant(clients, tf.float64)
      )
      self.assertTrue(bool(is_too_small))

  @parameterized.parameters(
    (16, 1, 0.1, _STOCHASTIC, _POSTERIOR),
    (64, 10, 0.1, _STOCHASTIC, _POSTERIOR),
    (256, 10, 0.0, _STOCHASTIC, _CENTRED),
    (256, 30, 0.3, _STOCHASTIC, _POSTERIOR),
    (256, 10, 0.1, _DITHER, _POSTERIOR),
    (4096, 100, 0.1, _DITHER, _CENTRED),
  )
  def test_automatic_bins_are_the_numerically_best_ones(
    self, modulus, clients, drift, rounding, decoding
  ):
    tuner = wrapped_normal_tuner.WrappedNormalTuner(
      modulus=modulus, rounding=rounding, decoding=decoding, drift=drift
    )

    def error(log_bin):
      return reference.drifted_error(
        math.exp(log_bin),
        num_clients=clients,
        modulus=modulus,
        drift=drift,
        is_dither=rounding is _DITHER,
        is_centred=decoding is _CENTRED,
      )

    guess = math.log(8 / modulus)
    best = optimize.minimize_scalar(
      error, bounds=(guess - 1.5, guess + 1.5), method='bounded'
    )
    # Twice as large a sum wants twice the bin.
    for size in (1.0, 2.0):
      found, _ = _next(tuner, _state(), _fitted(size), float(clients))
      found = math.log(found / size)
      # Its candidates for half the period are 0.05 standard deviations apart,
      # which is 1 % of the bin or less, and an error near its minimum is flat.
      self.assertLess(abs(found - best.x), 0.012)
      self.assertLess(error(found), 1.001 * best.fun)
      # Negative control: bins 5 % off are told apart.
      for other in (found - 0.05, found + 0.05):
        self.assertGreater(error(other), 1.01 * best.fun)

  @parameterized.product(rounding=(_STOCHASTIC, _DITHER), clients=(1.0, 30.0))
  def test_automatic_bins_have_the_planned_wrap_probability(
    self, rounding, clients
  ):
    modulus = 256
    tuner = wrapped_normal_tuner.WrappedNormalTuner(
      modulus=modulus, rounding=rounding
    )
    found, _ = _next(tuner, _state(), _fitted(2.0), clients)
    variance = 1 / 6 if rounding is _STOCHASTIC else 1 / 12
    observed = math.sqrt(4.0 + clients * variance * found**2)
    alpha = 2 * stats.norm.sf(modulus * found / 2 / observed)
    planned = planning.optimal_wrap_probability(
      num_clients=int(clients), modulus=modulus, rounding=rounding
    )
    np.testing.assert_allclose(alpha, planned, rtol=1e-3)

  def test_the_next_bin_follows_the_cohort(self):
    tuner = wrapped_normal_tuner.WrappedNormalTuner(modulus=256)
    few, _ = _next(tuner, _state(), _fitted(), 1.0)
    many, _ = _next(tuner, _state(), _fitted(), 1000.0)
    self.assertLess(many, few)  # More rounding noise, so more wraps for less.

  def test_properties_and_rejections(self):
    tuner = wrapped_normal_tuner.WrappedNormalTuner(
      modulus=17, rounding=_DITHER, wrap_probability=0.01
    )
    self.assertEqual(
      (tuner.modulus, tuner.rounding, tuner.wrap_probability),
      (17, _DITHER, 0.01),
    )
    with self.assertRaisesRegex(ValueError, '^`modulus` must be an int'):
      wrapped_normal_tuner.WrappedNormalTuner(modulus=1)
    with self.assertRaisesRegex(ValueError, '^`wrap_probability` must be'):
      wrapped_normal_tuner.WrappedNormalTuner(modulus=16, wrap_probability=0.0)
    with self.assertRaisesRegex(ValueError, '^`drift` must be'):
      wrapped_normal_tuner.WrappedNormalTuner(modulus=16, drift=3.0)


class TooSmallTest(parameterized.TestCase):
  @parameterized.parameters(
    (256, 10.0, _STOCHASTIC, False),
    (16, 100.0, _STOCHASTIC, True),
    (256, 0.0, _STOCHASTIC, False),
    (256, 10.0, _DITHER, False),
    (64, 100.0, _DITHER, True),  # Predicted 0.12, but for independent clients.
    (4, 1.0, _DITHER, False),
  )
  def test_automatic(self, modulus, clients, rounding, expected):
    num_clients = tf.constant(clients, tf.float64)
    options = dict(modulus=modulus, rounding=rounding, decoding=_POSTERIOR)
    # A fixed bin size may serve, but the best one would not: flagged as well.
    for tuner in (
      wrapped_normal_tuner.WrappedNormalTuner(**options),
      tuning.FixedBinSize(bin_size=0.1, **options),
    ):
      found = tuner.modulus_is_too_small(num_clients)
      self.assertEqual(bool(found), expected)


if __name__ == '__main__':
  absltest.main()

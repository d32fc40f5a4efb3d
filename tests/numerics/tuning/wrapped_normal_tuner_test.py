# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import math

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
from scipy import optimize
from scipy import stats
import tensorflow as tf

from tests import fits
from tests import reference
from tests import traced
from tff_autotune_secagg import modulus_planning
from tff_autotune_secagg.numerics.reading import stripes
from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.tuning import forecasting
from tff_autotune_secagg.numerics.tuning import operating_point
from tff_autotune_secagg.numerics.tuning import tuners
from tff_autotune_secagg.numerics.tuning import wrapped_normal_tuner

_STOCHASTIC = modes.Rounding.STOCHASTIC
_DITHER = modes.Rounding.DITHER
_UNBIASED = modes.Decoding.UNBIASED
_POSTERIOR = modes.Decoding.POSTERIOR_MEAN
_CENTRED = modes.Decoding.CENTRED


def _float64(x):
  return tf.constant(x, tf.float64)


def _state(bin_size_value=0.5, calibrating=False, rung=0, tuner=None):
  tuner = tuner or wrapped_normal_tuner.WrappedNormalTuner(modulus=256)
  state = tuner.initial_state()
  state['bin_size'] = tf.constant(bin_size_value, tf.float32)
  state['calibrating'] = tf.constant(calibrating)
  state['rung'] = tf.constant(rung)
  return state


def _state_that_forecasts(size, stddev, num_clients):
  """After ten rounds of one cohort, each of which was off by e^stddev."""
  state = _state()
  forecast = state['forecast']
  # Whatever the exponent, such a cohort has such a sum.
  exponents = np.tile([0.0, 0.5, 1.0], 3)
  forecast['level'] = _float64(
    math.log(size) - exponents * math.log(num_clients)
  )
  forecast['squared_errors'] = _float64(np.full(9, 10 * stddev**2))
  forecast['num_errors'] = _float64(10.0)
  forecast['cohorts'] = _float64([num_clients] * 10 + [0.0, 0.0])
  return state


def _next_state(tuner, state, fitted, num_clients=10.0):
  after = tuner.next_state(state, fitted, tf.constant(num_clients, tf.float64))
  tf.nest.assert_same_structure(after, state)
  for part, before in zip(tf.nest.flatten(after), tf.nest.flatten(state)):
    assert (part.dtype, part.shape) == (before.dtype, before.shape)
  return after


def _next(tuner, state, fitted, num_clients=10.0):
  after = _next_state(tuner, state, fitted, num_clients)
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
      fits.fitted(0.0, is_blind=True),
      fits.fitted(0.0, is_zero=True),
      fits.fitted(0.0, is_blind=True, is_zero=True),
    ):
      found = _next(tuner, _state(0.5, calibrating), fitted, clients)
      # A round without clients says nothing; with them, it asks for the ladder.
      self.assertEqual(found, (0.5, calibrating or clients > 0))

  def test_a_round_without_clients_changes_nothing(self):
    tuner = wrapped_normal_tuner.WrappedNormalTuner(modulus=256)
    for calibrating in (False, True):
      state = _state_that_forecasts(2.0, 0.3, 10.0)
      state['calibrating'] = tf.constant(calibrating)
      after = _next_state(
        tuner, state, fits.fitted(0.0, is_blind=True, is_zero=True), 0.0
      )
      for part, before in zip(tf.nest.flatten(after), tf.nest.flatten(state)):
        np.testing.assert_array_equal(part, before)

  def test_a_readable_round_ends_the_calibration(self):
    tuner = wrapped_normal_tuner.WrappedNormalTuner(modulus=256)
    _, calibrating = _next(tuner, _state(calibrating=True), fits.fitted())
    self.assertFalse(calibrating)

  @parameterized.parameters(1e-300, 1e-38, 1e-35, 1e35, 1e300)
  def test_the_bin_size_is_clipped_to_float32(self, stddev):
    for alpha in (None, 1e-3):
      tuner = wrapped_normal_tuner.WrappedNormalTuner(
        modulus=256, wrap_probability=alpha
      )
      found, _ = _next(tuner, _state(tuner=tuner), fits.fitted(stddev))
      self.assertTrue(math.isfinite(found))
      # So many clients' bins, and sums of them, are within float32.
      self.assertBetween(found, 0.99e-37, 1.01e37)


class LadderTest(parameterized.TestCase):
  """Where the ladder stands."""

  def test_a_guess_is_tried_once_and_then_the_whole_ladder(self):
    tuner = wrapped_normal_tuner.WrappedNormalTuner(
      modulus=256, expected_size=1e3
    )
    state = tuner.initial_state()
    guess = tuner.bin_sizes(state).numpy()
    # Half of the stripes have the bin of the guess.
    self.assertEqual(np.unique(guess, return_counts=True)[1].max(), 8)
    for fitted in (fits.fitted(0.0, is_blind=True), fits.fitted(is_zero=True)):
      missed = _next_state(tuner, state, fitted, 10.0)
      self.assertTrue(bool(missed['calibrating']))
      np.testing.assert_array_equal(
        tuner.bin_sizes(missed), stripes.ladder(tf.constant(0))
      )
    found = _next_state(tuner, state, fits.fitted(2.0), 10.0)
    lost = _next_state(tuner, found, fits.fitted(0.0, is_blind=True), 10.0)
    np.testing.assert_array_equal(
      tuner.bin_sizes(lost), stripes.ladder(tf.constant(0))
    )

  def _rung(self, fitted, rung=0, calibrating=True, clients=10.0, alpha=None):
    tuner = wrapped_normal_tuner.WrappedNormalTuner(
      modulus=256, wrap_probability=alpha
    )
    state = _state(calibrating=calibrating, rung=rung, tuner=tuner)
    return int(_next_state(tuner, state, fitted, clients)['rung'])

  @parameterized.parameters(None, 1e-3)
  def test_a_calibration_that_finds_nothing_moves_it(self, alpha):
    for fitted, step in (
      (fits.fitted(0.0, is_blind=True), stripes.RUNGS_AT_ONCE),
      (fits.fitted(0.0, is_zero=True), -stripes.RUNGS_AT_ONCE),
      (fits.fitted(0.0, 2.0), -stripes.RUNGS_AT_ONCE),  # Rounding alone.
    ):
      self.assertEqual(self._rung(fitted, alpha=alpha), step)
      # Ordinary rounds and empty ones do not move it.
      self.assertEqual(self._rung(fitted, calibrating=False, alpha=alpha), 0)
      self.assertEqual(self._rung(fitted, 12, clients=0.0, alpha=alpha), 12)

  def test_a_calibration_that_finds_the_sum_puts_it_back(self):
    for rung in (stripes.LOWEST_RUNG, -12, 0, 24):
      self.assertEqual(self._rung(fits.fitted(), rung), 0)

  def test_it_ends_where_float32_does(self):
    up, down = fits.fitted(0.0, is_blind=True), fits.fitted(0.0, is_zero=True)
    for rung in range(stripes.LOWEST_RUNG, stripes.HIGHEST_RUNG + 1, 6):
      for fitted in (up, down):
        self.assertBetween(
          self._rung(fitted, rung), stripes.LOWEST_RUNG, stripes.HIGHEST_RUNG
        )
    # It can turn back at both ends.
    self.assertLess(self._rung(down, stripes.HIGHEST_RUNG), 36)
    self.assertGreater(self._rung(up, stripes.LOWEST_RUNG), -30)


class ForecastTest(parameterized.TestCase):
  """What the tuner passes on to the forecast and what it shows of it."""

  def test_before_anything_is_known_it_says_so(self):
    tuner = wrapped_normal_tuner.WrappedNormalTuner(modulus=256)
    size, uncertainty = tuner.size_forecast(tuner.initial_state())
    self.assertEqual((float(size), float(uncertainty)), (0.0, 30.0))

  def test_shows_the_forecast(self):
    tuner = wrapped_normal_tuner.WrappedNormalTuner(modulus=256)
    size, uncertainty = tuner.size_forecast(
      _state_that_forecasts(2.0, 0.3, 10.0)
    )
    np.testing.assert_allclose(size, 2.0, rtol=1e-6)
    self.assertBetween(float(uncertainty), 0.25, 0.45)

  def test_the_papers_rule_forecasts_nothing(self):
    tuner = wrapped_normal_tuner.WrappedNormalTuner(
      modulus=256, wrap_probability=0.01
    )
    state = tuner.initial_state()
    self.assertNotIn('forecast', state)
    found = [float(x) for x in tuner.size_forecast(state)]
    self.assertEqual(found, [0.0, 0.0])

  def test_a_lost_round_teaches_and_a_lost_calibration_does_not(self):
    tuner = wrapped_normal_tuner.WrappedNormalTuner(modulus=256)
    lost = fits.fitted(0.0, is_blind=True, readable_to=3.0)
    for calibrating in (False, True):
      state = _state_that_forecasts(2.0, 0.3, 10.0)
      state['calibrating'] = tf.constant(calibrating)
      after = _next_state(tuner, state, lost)
      is_same = all(
        np.array_equal(part, before)
        for part, before in zip(
          tf.nest.flatten(after['forecast']),
          tf.nest.flatten(state['forecast']),
        )
      )
      self.assertEqual(is_same, calibrating)

  def test_an_inaccurate_fit_moves_it_less(self):
    tuner = wrapped_normal_tuner.WrappedNormalTuner(modulus=256)
    moves = []
    for error in (0.0, 0.3, 1.0):
      after = _next_state(
        tuner,
        _state_that_forecasts(2.0, 0.3, 10.0),
        fits.fitted(2.6, log_stddev_error=error),
      )
      moves.append(float(tuner.size_forecast(after)[0]) / 2.0)
    self.assertGreater(moves[0], moves[1])
    self.assertGreater(moves[1], moves[2])
    self.assertGreater(moves[2], 1.0)


class RuleTest(parameterized.TestCase):
  @parameterized.parameters((1e-2, 256), (1e-3, 64), (1e-4, 4096), (0.3, 17))
  def test_a_float_keeps_the_papers_rule_exactly(self, alpha, modulus):
    tuner = wrapped_normal_tuner.WrappedNormalTuner(
      modulus=modulus, wrap_probability=alpha
    )
    # From far off its fixed point too: noise may dominate what is observed.
    for observed in (1.0, 1.7, 300.0):
      found, _ = _next(tuner, _state(tuner=tuner), fits.fitted(1.0, observed))
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
      tuner,
      _state(calibrating=True, tuner=tuner),
      fits.fitted(1.0, ladder),
      clients,
    )
    observed = math.sqrt(1.0 + clients / 6 * found**2)
    again, _ = _next(
      tuner, _state(found, tuner=tuner), fits.fitted(1.0, observed), clients
    )
    np.testing.assert_allclose(again, found, rtol=1e-5)

  @parameterized.parameters(_STOCHASTIC, _DITHER)
  def test_where_it_diverges_the_bin_is_bounded_and_flagged(self, rounding):
    alpha, modulus, clients = 1e-4, 16, 1000.0
    tuner = wrapped_normal_tuner.WrappedNormalTuner(
      modulus=modulus, wrap_probability=alpha, rounding=rounding
    )
    found, _ = _next(
      tuner, _state(tuner=tuner), fits.fitted(1.0, 1e12), clients
    )
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
    (64, 10, 0.1, _STOCHASTIC, _UNBIASED),
    (256, 10, 0.0, _STOCHASTIC, _CENTRED),
    (256, 30, 0.3, _STOCHASTIC, _UNBIASED),
    (256, 30, 0.3, _STOCHASTIC, _POSTERIOR),
    (256, 10, 0.1, _DITHER, _UNBIASED),
    (4096, 100, 0.1, _DITHER, _CENTRED),
  )
  def test_automatic_bins_are_the_numerically_best_ones(
    self, modulus, clients, stddev, rounding, decoding
  ):
    tuner = wrapped_normal_tuner.WrappedNormalTuner(
      modulus=modulus, rounding=rounding, decoding=decoding
    )
    criterion = _POSTERIOR if decoding is _UNBIASED else decoding
    # Twice as large a sum wants twice the bin.
    for size in (1.0, 2.0):
      after = _next_state(
        tuner,
        _state_that_forecasts(size, stddev, float(clients)),
        fits.fitted(size),
        float(clients),
      )
      predicted = forecasting.forecast(after['forecast'])

      def error(log_bin, predicted=predicted):
        return reference.expected_error(
          math.exp(log_bin),
          num_clients=clients,
          modulus=modulus,
          sizes=np.exp(predicted.log_sizes),
          weights=predicted.weights.numpy(),
          is_dither=rounding is _DITHER,
          decoding=criterion.value,
        )

      guess = math.log(size * 8 / modulus)
      best = optimize.minimize_scalar(
        error, bounds=(guess - 1.5, guess + 1.5), method='bounded'
      )
      found = math.log(float(after['bin_size']))
      # Errors are interpolated in steps of 4 % of the bin, and near their
      # minimum they are flat.
      self.assertLess(abs(found - best.x), 0.025)
      self.assertLess(error(found), 1.002 * best.fun)
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
    after = _next_state(
      tuner,
      _state_that_forecasts(2.0, 0.1, clients),
      fits.fitted(2.0),
      clients,
    )
    found = float(after['bin_size'])
    variance = 1 / 6 if rounding is _STOCHASTIC else 1 / 12
    observed = math.sqrt(4.0 + clients * variance * found**2)
    half_period = modulus * found / 2 / observed
    _, uncertainty = tuner.size_forecast(after)
    planned, other = (
      operating_point.normal_quantile(
        modulus_planning.optimal_wrap_probability(
          num_clients=int(clients),
          modulus=modulus,
          rounding=rounding,
          size_uncertainty=factor * float(uncertainty),
        )
      )
      for factor in (1.0, 1.5)
    )
    # The forecast is taken at five nodes, the planner's normal at nine: 2 % of
    # the bin, to which the error is flat.
    np.testing.assert_allclose(half_period, planned, rtol=0.02)
    # Negative control: a size that is half as uncertain again.
    self.assertGreater(abs(other / half_period - 1), 0.03)

  def test_the_next_bin_follows_the_cohort(self):
    tuner = wrapped_normal_tuner.WrappedNormalTuner(modulus=256)
    few, _ = _next(tuner, _state(), fits.fitted(), 1.0)
    many, _ = _next(tuner, _state(), fits.fitted(), 1000.0)
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


class BestBinSizeTest(parameterized.TestCase):
  def _forecast(self, stddev, mean=0.0):
    nodes, weights = np.polynomial.hermite_e.hermegauss(45)
    return forecasting.Forecast(
      _float64(mean + stddev * nodes),
      _float64(weights / weights.sum()),
      _float64(mean),
      _float64(stddev),
    )

  @parameterized.product(
    modulus=(16, 256, 65536),
    stddev=(0.05, 0.4, 1.5),
    mean=(0.0, -20.0),
    decoding=(_UNBIASED, _POSTERIOR),
  )
  def test_has_the_least_expected_error(self, modulus, stddev, mean, decoding):
    predicted = self._forecast(stddev, mean)
    found, error = traced.best_bin_size(modulus, decoding=decoding)(
      predicted, _float64(10.0)
    )

    def nmse(log_ratio, decoding=_POSTERIOR):
      # The best bin has the least error of the posterior mean, in both modes.
      return reference.nmse(log_ratio, modulus, decoding=decoding.value)

    nodes = predicted.log_sizes.numpy()
    log_bins = mean + math.log(2 / modulus) + np.linspace(-0.7, 5, 800)
    expected = nmse(log_bins[:, np.newaxis] - nodes)
    expected = expected @ predicted.weights.numpy()
    mine = nmse(math.log(float(found)) - nodes)
    mine = float(mine @ predicted.weights.numpy())
    # A factor: tables are interpolated. An error of a round that costs nothing
    # is of no interest.
    self.assertLess(mine, 1.01 * expected.min() + 1e-9)
    # What is expected is the error of what is decoded.
    mine = nmse(math.log(float(found)) - nodes, decoding)
    mine = float(mine @ predicted.weights.numpy())
    np.testing.assert_allclose(float(error), mine, rtol=0.02, atol=1e-9)

  def test_a_narrow_forecast_gives_the_bin_of_before(self):
    for rounding in modes.Rounding:
      for decoding in modes.Decoding:
        best = operating_point.best_operating_point(
          _float64(10.0),
          256,
          rounding,
          decoding,
          *operating_point.normal_nodes(0.1),
        )
        found, _ = traced.best_bin_size(256, rounding, decoding)(
          self._forecast(0.1), _float64(10.0)
        )
        np.testing.assert_allclose(
          float(found), float(best.bin_per_stddev), rtol=0.02
        )

  def test_a_wide_forecast_reaches_beyond_sixty_standard_deviations(self):
    found, error = traced.best_bin_size(2**20)(
      self._forecast(1.5), _float64(10.0)
    )
    self.assertGreater(float(found) * 2**19, 60.0)
    # Half periods that end at 9, as before, lose far more.
    nodes, weights = self._forecast(1.5)[:2]
    before = reference.nmse(math.log(9.0 / 2**19) - nodes.numpy(), 2**20)
    self.assertGreater(float(before @ weights.numpy()), 30 * float(error))


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
      tuners.FixedBinSize(bin_size=0.1, **options),
    ):
      found = tuner.modulus_is_too_small(num_clients)
      self.assertEqual(bool(found), expected)


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import functools
import math

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
from scipy import stats
import tensorflow as tf

from tests import reference
from tests import traced
from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.tuning import forecasting
from tff_autotune_secagg.numerics.tuning import operating_point

_STOCHASTIC = modes.Rounding.STOCHASTIC
_POSTERIOR = modes.Decoding.POSTERIOR_MEAN
_GAINS = np.array([1.0, 0.5, 0.25])

_update = tf.function(forecasting.update, autograph=False)
_forecast = tf.function(forecasting.forecast, autograph=False)


def _float64(x):
  return tf.constant(x, tf.float64)


class _Learner:
  """The module under test, on Python numbers."""

  def __init__(self, num_clients=10.0):
    self.state = forecasting.initial_state()
    self._num_clients = num_clients

  def see(self, log_size, log_size_stddev=0.0, num_clients=None):
    self._observe(log_size, log_size_stddev, True, 0.0, True, num_clients)

  def miss(self, log_limit, is_above=True, num_clients=None):
    self._observe(0.0, 0.0, False, log_limit, is_above, num_clients)

  def _observe(self, size, error, is_readable, limit, is_above, clients):
    self.state = _update(
      self.state,
      forecasting.Observation(
        _float64(self._num_clients if clients is None else clients),
        _float64(size),
        _float64(error),
        tf.constant(is_readable),
        _float64(limit),
        tf.constant(is_above),
      ),
    )

  @property
  def mean(self):
    return float(_forecast(self.state).mean)

  @property
  def stddev(self):
    return float(_forecast(self.state).stddev)

  def log_bin_size(self, modulus):
    found, _ = traced.best_bin_size(modulus)(
      _forecast(self.state), _float64(self._num_clients)
    )
    return math.log(float(found))


class _LastRound:
  """The rule before: the last round's size, off by 0.1. A negative control."""

  stddev = 0.1
  mean = None

  def see(self, log_size):
    self.mean = log_size

  def miss(self, log_limit):
    del log_limit

  def log_bin_size(self, modulus):
    return self.mean + _old_log_ratio(modulus)


@functools.lru_cache(maxsize=None)
def _old_log_ratio(modulus):
  best = operating_point.best_operating_point(
    _float64(10.0),
    modulus,
    _STOCHASTIC,
    _POSTERIOR,
    *operating_point.normal_nodes(_LastRound.stddev),
  )
  return math.log(float(best.bin_per_stddev))


# Half a period over the size below which 4096 coordinates read as uniform:
# the mean cosine is five standard errors of 1 / sqrt(2 * 4096).
_READABLE = 1 / (2 * math.sqrt(math.log(math.sqrt(2 * 4096) / 5) / 2) / math.pi)


def _play(rule, log_sizes, modulus=256):
  """Errors of rounds whose unreadable sums are followed by a calibration."""
  errors, is_calibration = [], True
  for log_size in log_sizes:
    if is_calibration:
      errors.append(0.9)
      rule.see(log_size)
      is_calibration = False
      continue
    log_bin = rule.log_bin_size(modulus)
    log_limit = log_bin + math.log(modulus / 2 / _READABLE)
    is_calibration = log_size > log_limit
    if is_calibration:
      errors.append(1.0)
      rule.miss(log_limit)
    else:
      errors.append(reference.posterior_nmse(log_bin - log_size, modulus))
      rule.see(log_size)
  return np.array(errors)


def _local_level(rng, rounds, level_stddev, noise_stddev):
  level = np.cumsum(level_stddev * rng.standard_normal(rounds))
  return level + noise_stddev * rng.standard_normal(rounds)


def _kalman_errors(log_sizes, level_stddev, noise_stddev):
  """One-step errors of the optimal filter, which knows both variances."""
  mean, variance, errors = log_sizes[0], noise_stddev**2, []
  for x in log_sizes[1:]:
    variance += level_stddev**2
    errors.append(x - mean)
    gain = variance / (variance + noise_stddev**2)
    mean, variance = mean + gain * errors[-1], (1 - gain) * variance
  return np.array(errors)


def _forecast_errors(rule, log_sizes):
  """One-step errors and what was believed of their standard deviation."""
  errors, stddevs = [], []
  rule.see(log_sizes[0])
  for x in log_sizes[1:]:
    errors.append(x - rule.mean)
    stddevs.append(rule.stddev)
    rule.see(x)
  return np.array(errors), np.array(stddevs)


def _rms(x):
  return math.sqrt(np.mean(np.square(x)))


class NoiseTest(parameterized.TestCase):
  @parameterized.parameters((0.05, 0.3), (0.1, 0.4), (0.02, 0.15))
  def test_level_and_noise_are_learned(self, level_stddev, noise_stddev):
    rng = np.random.default_rng(1)
    sizes = _local_level(rng, 300, level_stddev, noise_stddev)
    optimal = _rms(_kalman_errors(sizes, level_stddev, noise_stddev)[10:])
    errors, stddevs = _forecast_errors(_Learner(), sizes)
    self.assertLess(_rms(errors[10:]), 1.1 * optimal)
    # It knows how far off it is, where the old rule is sure of itself.
    self.assertBetween(_rms(errors[10:] / stddevs[10:]), 0.9, 1.15)
    errors, stddevs = _forecast_errors(_LastRound(), sizes)
    self.assertGreater(_rms(errors[10:]), 1.2 * optimal)
    self.assertGreater(_rms(errors[10:] / stddevs[10:]), 1.9)

  def test_a_random_walk_is_followed(self):
    sizes = _local_level(np.random.default_rng(2), 300, 0.3, 0.0)
    errors, _ = _forecast_errors(_Learner(), sizes)
    self.assertLess(_rms(errors[10:]), 1.15 * 0.3)
    # A level as slow as the slowest gain is far off there.
    level, slow = sizes[0], []
    for x in sizes[1:]:
      slow.append(x - level)
      level += 0.25 * slow[-1]
    self.assertGreater(_rms(slow[10:]), 1.4 * 0.3)

  def test_fresh_noise_costs_a_third_of_what_it_did(self):
    errors, before = [], []
    for seed in range(4):
      sizes = 0.4 * np.random.default_rng(seed).standard_normal(60)
      errors.append(_play(_Learner(), sizes)[8:].mean())
      before.append(_play(_LastRound(), sizes)[8:].mean())
    self.assertLess(np.mean(errors), np.mean(before) / 3)

  def test_constant_sizes_cost_no_more_than_before(self):
    sizes = np.zeros(40)
    error = _play(_Learner(), sizes)[8:].mean()
    self.assertLess(error, 1.02 * _play(_LastRound(), sizes)[8:].mean())

  def test_the_first_ten_rounds_of_a_training(self):
    # Sizes fall sevenfold in three rounds, come back halfway, and go on with
    # noise: the old rule is blind in the fourth round.
    sizes = np.log([120, 67, 17, 48, 31, 22, 12, 15, 18, 34])
    errors = _play(_Learner(), sizes)[1:]
    self.assertLess(errors.max(), 0.2)
    self.assertLess(errors.mean(), 0.05)
    before = _play(_LastRound(), sizes)[1:]
    self.assertGreater(before.max(), 0.7)
    self.assertGreater(before.mean(), 0.1)


class OracleTest(parameterized.TestCase):
  @parameterized.parameters(0.05, 0.3)
  def test_recursion_by_scipy(self, noise_stddev):
    rng = np.random.default_rng(3)
    sizes = noise_stddev * rng.standard_normal(40) - 7.0
    learner = _Learner()
    learner.see(sizes[0])
    level = np.full(3, sizes[0])
    squares, count, log_weights = np.full(3, 3 * 0.2**2), 3.0, np.zeros(3)
    for x in sizes[1:]:
      degrees = count + 3
      scale = np.sqrt((squares + 3 * 0.04**2) / degrees)
      weights = np.exp(log_weights) / np.exp(log_weights).sum()
      mean = np.sum(weights * level)
      variance = weights @ (stats.t(degrees, level, scale).var() + level**2)
      np.testing.assert_allclose(learner.mean, mean, rtol=1e-12)
      np.testing.assert_allclose(
        learner.stddev, math.sqrt(variance - mean**2), rtol=1e-9
      )
      error = x - level
      log_weights *= 0.95
      log_weights += stats.t.logpdf(x, degrees, level, scale)
      robust = 1.2 * (degrees + 1) / (degrees + (error / scale) ** 2)
      squares = 0.9 * squares + robust * error**2
      count = 0.9 * count + 1
      level = level + _GAINS * error
      learner.see(x)

  def test_nodes_have_the_mixtures_moments(self):
    learner = _Learner()
    for x in (0.0, 1.0, 0.2, -0.5, 0.4):
      learner.see(x)
    found = _forecast(learner.state)
    weights, nodes = found.weights.numpy(), found.log_sizes.numpy()
    np.testing.assert_allclose(weights.sum(), 1.0, rtol=1e-12)
    np.testing.assert_allclose(weights @ nodes, float(found.mean), rtol=1e-9)
    np.testing.assert_allclose(
      math.sqrt(weights @ (nodes - weights @ nodes) ** 2), float(found.stddev)
    )

  def test_units_do_not_matter(self):
    steps = np.cumsum(np.random.default_rng(4).standard_normal(30))
    one, other = _Learner(), _Learner()
    for x in steps:
      one.see(x)
      other.see(x - 20.0)
      np.testing.assert_allclose(one.mean, other.mean + 20.0, atol=1e-9)
      np.testing.assert_allclose(one.stddev, other.stddev, rtol=1e-9)


def _settled(noise_stddev=0.05, rounds=30, seed=5):
  learner = _Learner()
  rng = np.random.default_rng(seed)
  for x in noise_stddev * rng.standard_normal(rounds):
    learner.see(x)
  return learner


class JumpTest(parameterized.TestCase):
  @parameterized.parameters(1e3, 1e-5, 10.0, 0.1)
  def test_is_followed_and_teaches_no_noise(self, factor):
    learner, jump = _settled(), math.log(factor)
    learner.see(jump)
    np.testing.assert_allclose(learner.mean, jump, atol=1e-9)
    # As unsure as at the start, not as unsure as the jump is far.
    self.assertLess(learner.stddev, 0.3)
    for _ in range(8):
      learner.see(jump)
    self.assertLess(learner.stddev, 0.13)

  @parameterized.product(modulus=(64, 256), factor=(1e3, 1e-5, 10.0, 0.1))
  def test_costs_one_round_or_two(self, modulus, factor):
    sizes = np.append(np.zeros(8), np.full(8, math.log(factor)))
    errors = _play(_Learner(), sizes, modulus)
    lost = 2 if factor > 1 else 1  # One more to calibrate.
    self.assertLess(errors[8 + lost], 1.5 * errors[7])

  @parameterized.parameters(math.log(100.0), -math.log(100.0))
  def test_that_comes_back_is_no_noise(self, jump):
    learner = _settled()
    learner.see(jump)
    learner.see(0.0)
    self.assertLess(abs(learner.mean), 0.01)
    for _ in range(8):
      learner.see(0.0)
    self.assertLess(learner.stddev, 0.13)

  def test_a_step_below_a_surprise_is_followed_too(self):
    learner = _settled()
    for _ in range(4):
      learner.see(1.5)
    self.assertLess(abs(learner.mean - 1.5), 0.1)
    self.assertLess(learner.stddev, 0.5)


class AlternationTest(parameterized.TestCase):
  @parameterized.product(
    case=((3.0, 0.03, 0.3), (6.0, 0.1, 0.5), (10.0, 0.3, 0.5)),
    starts_large=(False, True),
  )
  def test_two_populations_are_one_wide_level(self, case, starts_large):
    factor, limit, before = case
    sizes = math.log(factor) * ((np.arange(60) + starts_large) % 2)
    errors = _play(_Learner(), sizes)
    self.assertLess(errors[9:].mean(), limit)
    self.assertLess(errors[9:].max(), 0.9)  # None is blind.
    # The old rule loses every large one.
    self.assertGreater(_play(_LastRound(), sizes)[9:].mean(), before)

  @parameterized.parameters(2**12, 2**16)
  def test_bits_to_spare_serve_both(self, modulus):
    sizes = math.log(10) * (np.arange(60) % 2)
    self.assertLess(_play(_Learner(), sizes, modulus)[9:].max(), 0.03)
    self.assertGreater(_play(_LastRound(), sizes, modulus)[9:].mean(), 0.3)


class LittleToLearnTest(parameterized.TestCase):
  def _assert_same(self, one, other):
    for key in one:
      np.testing.assert_array_equal(one[key], other[key], err_msg=key)

  def test_a_round_without_clients_changes_nothing(self):
    learner = _settled()
    before = learner.state
    learner.see(3.0, num_clients=0.0)
    learner.miss(3.0, num_clients=0.0)
    self._assert_same(learner.state, before)
    learner.see(3.0)
    self.assertGreater(learner.mean, 2.9)

  @parameterized.parameters(math.nan, math.inf, -math.inf)
  def test_neither_does_one_without_numbers(self, number):
    learner = _settled()
    before = learner.state
    learner.see(number)
    learner.miss(number)
    learner.see(0.0, log_size_stddev=number)
    self._assert_same(learner.state, before)

  def test_nothing_is_known_before_the_first_size(self):
    learner = _Learner()
    learner.miss(5.0)
    self.assertGreaterEqual(learner.stddev, 30.0)
    learner.see(-4.0)
    np.testing.assert_allclose(learner.mean, -4.0)
    self.assertLess(learner.stddev, 0.3)

  def test_a_blind_round_within_reason_keeps_the_means_and_widens(self):
    learner = _settled(noise_stddev=0.4)
    mean, stddev = learner.mean, learner.stddev
    learner.miss(mean + 0.8)
    np.testing.assert_allclose(learner.mean, mean)
    self.assertGreater(learner.stddev, 1.1 * stddev)

  def test_a_blind_round_far_out_waits_for_the_next(self):
    for size, is_jump in ((0.0, False), (5.0, True)):
      learner = _settled()
      mean, stddev = learner.mean, learner.stddev
      learner.miss(3.0)
      np.testing.assert_allclose(learner.mean, mean)
      np.testing.assert_allclose(learner.stddev, stddev)
      learner.see(size)
      self.assertLess(abs(learner.mean - size), 0.05)
      self.assertEqual(learner.stddev > 2 * stddev, is_jump)
      self.assertLess(learner.stddev, 0.3)

  def test_blind_rounds_that_repeat_are_learned(self):
    learner = _settled()
    stddevs = []
    for _ in range(4):
      learner.miss(2.0)
      learner.see(0.0)
      stddevs.append(learner.stddev)
    self.assertLess(max(stddevs[:2]), 0.1)
    self.assertGreater(stddevs[2], 0.5)
    self.assertGreater(stddevs[3], stddevs[2])

  def test_a_step_out_of_reach_is_followed_once_it_is_read(self):
    for size, is_step in ((1.2, True), (0.4, False)):
      learner = _settled()
      learner.miss(0.6)
      learner.see(size, log_size_stddev=0.1)
      self.assertEqual(abs(learner.mean - size) < 0.05, is_step)

  def test_a_jump_after_one_that_came_back_is_a_jump(self):
    learner = _settled()
    learner.miss(5.0)
    learner.see(0.0)
    learner.miss(3.0)
    learner.see(4.0)  # Has stayed.
    self.assertLess(abs(learner.mean - 4.0), 0.05)
    self.assertLess(learner.stddev, 0.3)

  def test_a_sum_of_zero_is_a_jump_down(self):
    learner = _settled()
    stddev = learner.stddev
    learner.miss(-16.0, is_above=False)
    np.testing.assert_allclose(learner.stddev, stddev)
    learner.see(-16.0)
    np.testing.assert_allclose(learner.mean, -16.0)
    self.assertLess(learner.stddev, 0.3)

  def test_errors_of_an_observation_are_not_learned(self):
    errors = 0.3 * np.random.default_rng(6).standard_normal(60)
    told, untold = _settled(), _settled()
    for error in errors:
      told.see(error, log_size_stddev=0.3)
      untold.see(error)
    self.assertLess(told.stddev, 0.12)
    self.assertLess(abs(told.mean), 0.15)
    self.assertGreater(untold.stddev, 0.25)


class CohortTest(parameterized.TestCase):
  # Sizes of sums of independent and of equal clients.
  @parameterized.parameters(0.5, 1.0)
  def test_changes_move_the_forecast_and_teach_no_noise(self, power):
    told, untold = _Learner(), _Learner()
    errors = []
    for clients in (10.0, 40.0, 20.0, 80.0, 10.0, 10.0, 100.0) * 4:
      size = power * math.log(clients)
      expected = _forecast(told.state, _float64(clients))
      errors.append(size - float(expected.mean))
      told.see(size, num_clients=clients)
      untold.see(size)
    self.assertLess(told.stddev, 0.25)
    self.assertGreater(untold.stddev, 2.5 * told.stddev)
    # At most a quarter of ln(10), where the last round is off by half or all.
    self.assertLess(max(np.abs(errors[7:])), 0.7)

  def test_a_change_known_before_widens(self):
    learner = _settled()
    same = _forecast(learner.state, _float64(10.0))
    more = _forecast(learner.state, _float64(160.0))
    np.testing.assert_allclose(float(same.mean), learner.mean)
    np.testing.assert_allclose(float(same.stddev), learner.stddev)
    change = float(more.mean) - learner.mean
    np.testing.assert_allclose(change, 0.75 * math.log(16.0))
    np.testing.assert_allclose(
      float(more.stddev) ** 2,
      learner.stddev**2 + (math.log(16.0) / 4) ** 2,
      rtol=1e-6,
    )
    fewer = _forecast(learner.state, _float64(10.0 / 16))
    self.assertLess(float(fewer.mean), learner.mean + 1e-9)


class AnyInputTest(parameterized.TestCase):
  def test_state_and_forecast_stay_finite_and_of_their_types(self):
    learner = _Learner()
    signature = [(k, v.dtype, v.shape) for k, v in learner.state.items()]
    rng = np.random.default_rng(7)
    numbers = (0.0, 1e-300, -700.0, 709.0, 1e9, -1e300, math.nan, math.inf, 1.0)
    for _ in range(300):
      size, limit = rng.choice(numbers, 2)
      clients = rng.choice([0.0, 1.0, 10.0, 1e9])
      if rng.random() < 0.7:
        error = rng.choice([0.0, 0.1, 1e6])
        learner.see(size, error, num_clients=clients)
      else:
        learner.miss(limit, bool(rng.random() < 0.5), num_clients=clients)
      found = [(k, v.dtype, v.shape) for k, v in learner.state.items()]
      self.assertEqual(found, signature)
      for value in learner.state.values():
        self.assertTrue(np.all(np.isfinite(value)), learner.state)
      for value in _forecast(learner.state):
        self.assertTrue(np.all(np.isfinite(value)), learner.state)
    self.assertEqual(sum(int(np.prod(shape)) for _, _, shape in signature), 13)

  def test_recovers_from_any_input(self):
    learner = _Learner()
    for size in (700.0, -700.0, 0.0, 300.0, -10.0, 650.0, 3.0):
      learner.see(size)
      learner.miss(size + 100.0)
    for _ in range(20):
      learner.see(-2.0)
    np.testing.assert_allclose(learner.mean, -2.0, atol=0.02)
    self.assertLess(learner.stddev, 0.15)


if __name__ == '__main__':
  absltest.main()

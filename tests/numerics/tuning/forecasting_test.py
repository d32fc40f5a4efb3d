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
_UNBIASED = modes.Decoding.UNBIASED
# Of the nine forecasters.
_GAINS = np.repeat([1.0, 0.5, 0.25], 3)
_EXPONENTS = np.tile([0.0, 0.5, 1.0], 3)

_update = tf.function(forecasting.update, autograph=False)
_forecast = tf.function(forecasting.forecast, autograph=False)


def _float64(x):
  return tf.constant(x, tf.float64)


class _Learner:
  """The module under test, on Python numbers."""

  def __init__(self, num_clients=10.0):
    self.state = forecasting.initial_state()
    self._num_clients = num_clients

  def see(
    self, log_size, log_size_stddev=0.0, num_clients=None, is_rounding=False
  ):
    self._observe(
      log_size, log_size_stddev, True, 0.0, True, num_clients, is_rounding
    )

  def miss(self, log_limit, is_above=True, num_clients=None):
    self._observe(0.0, 0.0, False, log_limit, is_above, num_clients)

  def _observe(
    self,
    size,
    error,
    is_readable,
    limit,
    is_above,
    clients,
    is_rounding=False,
  ):
    self.state = _update(
      self.state,
      forecasting.Observation(
        _float64(self._num_clients if clients is None else clients),
        _float64(size),
        _float64(error),
        tf.constant(is_readable),
        _float64(limit),
        tf.constant(is_above),
        tf.constant(is_rounding),
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
    _UNBIASED,
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
      errors.append(reference.nmse(log_bin - log_size, modulus))
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


class _Port:
  """The forecasters by SciPy, for sizes that are read and are no surprises."""

  def __init__(self, size, num_clients):
    self.level = size - _EXPONENTS * math.log(num_clients)
    self.squares, self.num_errors = np.full(9, 3 * 0.2**2), 3.0
    self.log_weights = np.zeros(9)
    self.cohorts = [num_clients]

  @property
  def degrees(self):
    return self.num_errors + 3

  @property
  def scales(self):
    return np.sqrt((self.squares + 3 * 0.04**2) / self.degrees)

  @property
  def weights(self):
    weights = np.exp(self.log_weights - self.log_weights.max())
    return weights / weights.sum()

  def see(self, size, num_clients, error=0.0):
    sizes = size - _EXPONENTS * math.log(num_clients)
    total = np.sqrt(self.scales**2 + error**2)
    density = stats.t.logpdf(sizes, self.degrees, self.level, total)
    self.log_weights = 0.95 * self.log_weights + density
    error, share = sizes - self.level, (self.scales / total) ** 2
    robust = self.degrees + 1
    robust = 1.2 * robust / (self.degrees + (error / total) ** 2)
    self.squares = 0.9 * self.squares + robust * share * error**2
    self.num_errors = 0.9 * self.num_errors + 1
    self.level = self.level + _GAINS * share * error
    self.cohorts = [num_clients] + self.cohorts[:11]

  def moments(self):
    """Mean and standard deviation of what is forecast."""
    logs = np.log(self.cohorts)
    chances = _cohort_weights(self.cohorts)
    means = self.level[:, np.newaxis] + _EXPONENTS[:, np.newaxis] * logs
    chances = self.weights[:, np.newaxis] * chances
    mean = np.sum(chances * means)
    variances = stats.t(self.degrees, 0.0, self.scales).var()[:, np.newaxis]
    variance = np.sum(chances * (variances + (means - mean) ** 2))
    return mean, math.sqrt(variance)


def _cohort_weights(cohorts):
  """What the next cohort is, newest first, by von Neumann's ratio."""
  logs = np.log(np.asarray(cohorts, np.float64))
  afresh = 0.0
  if len(logs) > 1 and np.var(logs) > 1e-12:
    afresh = np.mean(np.diff(logs) ** 2) / np.var(logs, ddof=1) / 2
    afresh = min(afresh, 1.0)
  weights = np.full(len(logs), afresh / len(logs))
  weights[0] += 1 - afresh
  return weights


class OracleTest(parameterized.TestCase):
  @parameterized.product(noise_stddev=(0.05, 0.3), power=(0.0, 0.5, 1.0))
  def test_recursion_by_scipy(self, noise_stddev, power):
    rng = np.random.default_rng(3)
    sizes = noise_stddev * rng.standard_normal(40) - 7.0
    cohorts = rng.integers(10, 60, 40).astype(float)
    sizes += power * np.log(cohorts)
    learner = _Learner()
    learner.see(sizes[0], num_clients=cohorts[0])
    port = _Port(sizes[0], cohorts[0])
    for x, n in zip(sizes[1:], cohorts[1:]):
      mean, stddev = port.moments()
      np.testing.assert_allclose(learner.mean, mean, rtol=1e-12)
      np.testing.assert_allclose(learner.stddev, stddev, rtol=1e-9)
      error = rng.choice([0.0, 0.1])
      learner.see(x, error, num_clients=n)
      port.see(x, n, error)

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

  def test_a_size_that_was_out_of_reach_is_doubted_where_it_was(self):
    for limit, is_rounding, is_doubted in (
      (0.8, True, True),
      (0.8, False, False),  # The calibration sees the sum itself.
      (1.5, True, False),  # The round was a surprise, as a large spike is.
    ):
      learner = _settled()
      learner.miss(limit)
      learner.see(0.05, log_size_stddev=0.2, is_rounding=is_rounding)
      expected = limit if is_doubted else 0.0
      self.assertLess(abs(learner.mean - expected), 0.05)

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


def _known(**fields):
  """A state after some rounds, with these fields."""
  state = forecasting.initial_state()
  fields = dict(
    dict(
      level=np.linspace(-0.3, 0.4, 9),
      squared_errors=np.linspace(0.2, 0.4, 9),
      num_errors=5.0,
      log_weights=-np.arange(9.0),
      cohorts=[10.0] + 11 * [0.0],
    ),
    **fields,
  )
  state.update({name: _float64(value) for name, value in fields.items()})
  return state


class LearnTest(parameterized.TestCase):
  """A single update, of a state in the middle."""

  def _learn(self, state, log_size, error=0.0, num_clients=1.0):
    learner = _Learner(num_clients)
    learner.state = state
    learner.see(log_size, error)
    return learner.state

  def test_moves_by_the_gain_where_nothing_else_is_uncertain(self):
    before = _known()
    learned = self._learn(before, 0.7)
    moved = (learned['level'] - before['level']) / (0.7 - before['level'])
    np.testing.assert_allclose(moved, _GAINS)

  def test_moves_less_for_a_poor_observation(self):
    before = _known()
    learned = self._learn(before, 0.7, 1e9)
    np.testing.assert_allclose(learned['level'], before['level'], atol=1e-6)

  def test_scales_are_never_zero(self):
    learner = _Learner()
    learner.state = _known(
      level=np.zeros(9), squared_errors=np.zeros(9), num_errors=0.1
    )
    # A t-distribution of d = 3.1 has d / (d - 2) of its squared scale; the
    # exponents differ by what they make of ten clients.
    weights = np.exp(-np.arange(9.0)) / np.exp(-np.arange(9.0)).sum()
    parts = _EXPONENTS * math.log(10)
    spread = weights @ (parts - weights @ parts) ** 2
    np.testing.assert_allclose(
      learner.stddev**2, 3 * 0.04**2 / 1.1 + spread, rtol=1e-6
    )

  @parameterized.parameters(1.9, 8.0)
  def test_a_far_error_teaches_no_more_than_a_bound_unless_it_is_noise(
    self, error
  ):
    scale2 = (0.2 + 3 * 0.04**2) / 8.0
    taught = {}
    for surprises in (0.0, 3.0):
      before = _known(
        level=np.zeros(9), squared_errors=np.full(9, 0.2), surprises=surprises
      )
      # Not so far as to be a jump that never teaches, of ln 100.
      learned = self._learn(before, min(error, 4.0))
      rest = 0.9 * 0.2
      taught[surprises] = (learned['squared_errors'] - rest) / scale2
    if error > 2.0:
      # A surprise: all levels jump, and what was known of scales is kept.
      self.assertLess(float(tf.reduce_max(taught[0.0])), 1.0)
    else:
      # The weight (d + 1) / (d + e^2 / v) bounds e^2 by (d + 1) v, times 1.2.
      self.assertLess(float(tf.reduce_max(taught[0.0])), 1.2 * 9.0)
    np.testing.assert_allclose(
      taught[3.0], min(error, 4.0) ** 2 / scale2, rtol=1e-6
    )

  def test_a_jump_moves_all_levels_and_forgets_nothing_but_small_scales(self):
    before = _known(squared_errors=[0.2, 0.3, 0.4] * 3)
    clients = 4.0
    jumped = self._learn(before, 9.0, num_clients=clients)
    np.testing.assert_allclose(
      jumped['level'], 9.0 - _EXPONENTS * math.log(clients)
    )
    np.testing.assert_array_equal(jumped['log_weights'], before['log_weights'])
    # (0.2, 0.3, 0.4 + 3 * 0.04^2) / 8 are below 0.2^2 but for the last.
    floor = 3 * 0.04**2
    expected = 3 * np.maximum((np.array([0.2, 0.3, 0.4]) + floor) / 8, 0.04)
    np.testing.assert_allclose(jumped['squared_errors'], np.tile(expected, 3))
    self.assertEqual(float(jumped['num_errors']), 3.0)


class NextCohortTest(parameterized.TestCase):
  """How likely each of the last cohorts is taken to be the next one."""

  def _weights(self, cohorts):
    """By the one forecaster of exponent 1 and of next to no errors."""
    cohorts = np.concatenate([cohorts, np.zeros(12 - len(cohorts))])
    found = _forecast(
      _known(
        level=np.zeros(9),
        squared_errors=np.zeros(9),
        num_errors=1e9,
        log_weights=[-1e9, -1e9, 0.0] + 6 * [-1e9],
        cohorts=cohorts,
      )
    )
    sizes = found.log_sizes.numpy().reshape(9, 12, 15)[2]
    weights = found.weights.numpy().reshape(9, 12, 15)[2].sum(axis=1)
    np.testing.assert_allclose(
      sizes,
      np.log(np.maximum(cohorts, 1.0))[:, np.newaxis] + 0 * sizes,
      atol=1e-4,
    )
    np.testing.assert_allclose(weights.sum(), 1.0)
    return weights

  @parameterized.parameters(1, 2, 3)
  def test_is_von_neumanns_ratio(self, seed):
    rng = np.random.default_rng(seed)
    for length in range(1, 13):
      for cohorts in (
        rng.integers(1, 100, length),
        np.sort(rng.integers(1, 100, length)),
        np.repeat(30, length),
      ):
        found = self._weights(cohorts.astype(float))
        np.testing.assert_allclose(
          found[:length], _cohort_weights(cohorts), atol=1e-12
        )
        np.testing.assert_array_equal(found[length:], np.zeros(12 - length))

  def test_alternating_cohorts_are_as_likely(self):
    found = self._weights(np.tile([10.0, 100.0], 6))
    np.testing.assert_allclose(found, np.full(12, 1 / 12))

  def test_constant_ones_repeat(self):
    found = self._weights(np.full(12, 30.0))
    np.testing.assert_allclose(found, np.arange(12) == 0)

  def test_a_step_is_taken_to_stay_before_long(self):
    newest = [
      self._weights([100.0] * num + [10.0] * (12 - num))[:num].sum()
      for num in range(1, 7)
    ]
    # What is drawn afresh would be the new cohort with its share of rounds.
    self.assertGreater(newest[0], 0.45)
    self.assertGreater(newest[2], 0.75)
    self.assertGreater(newest[5], 0.85)
    self.assertEqual(newest, sorted(newest))

  def test_drifting_ones_stay_where_they_are(self):
    found = self._weights(np.geomspace(100.0, 10.0, 12))
    self.assertGreater(found[0], 0.9)


class CohortTest(parameterized.TestCase):
  """How sums grow with the cohort is learned."""

  _COHORTS = (10.0, 40.0, 20.0, 80.0, 10.0, 10.0, 100.0) * 4

  @parameterized.parameters(0.0, 0.5, 1.0)
  def test_exponents_are_learned(self, power):
    learner = _Learner()
    rng = np.random.default_rng(8)
    for clients in self._COHORTS:
      size = power * math.log(clients) + 0.05 * rng.standard_normal()
      learner.see(size, num_clients=clients)
    weights = tf.nn.softmax(learner.state['log_weights']).numpy()
    self.assertGreater(weights[power == _EXPONENTS].sum(), 0.95)
    # What is left is what is not known of the cohort, and e^0.05.
    logs = np.log(self._COHORTS)
    self.assertLess(learner.stddev, 1.2 * power * np.std(logs) + 0.12)
    self.assertGreater(learner.stddev, 0.8 * power * np.std(logs))

  @parameterized.parameters(0.5, 1.0)
  def test_a_change_is_covered_and_teaches_no_noise(self, power):
    told, untold = _Learner(), _Learner()
    scores = []
    for clients in self._COHORTS:
      size = power * math.log(clients)
      scores.append((size - told.mean) / told.stddev)
      told.see(size, num_clients=clients)
      untold.see(size)
    # None is a surprise, and none of the scales that are believed is wide.
    self.assertLess(max(np.abs(scores[4:])), 3.0)

    def scale(learner):
      state = learner.state
      weights = tf.nn.softmax(state['log_weights']).numpy()
      return math.sqrt(weights @ state['squared_errors'].numpy())

    self.assertLess(scale(told), scale(untold) / 5)

  def test_rounds_without_clients_are_no_cohorts(self):
    learner = _settled()
    before = learner.state['cohorts'].numpy()
    learner.see(0.0, num_clients=0.0)
    np.testing.assert_array_equal(learner.state['cohorts'], before)
    learner.miss(0.5, num_clients=7.0)
    np.testing.assert_array_equal(
      learner.state['cohorts'], np.append(7.0, before[:-1])
    )


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
    self.assertEqual(sum(int(np.prod(shape)) for _, _, shape in signature), 42)

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

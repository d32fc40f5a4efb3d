# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rounds that are predicted: clients in NumPy, the server is the package's."""

import collections
import functools
import math
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests import stat_checks
from tff_autotune_secagg.numerics import round_codec
from tff_autotune_secagg.numerics.prediction import subtraction
from tff_autotune_secagg.numerics.reading import stripes
from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.tuning import tuners

_DIM = 2**14
_MODULUS = 1024
# Standard deviations beyond which nothing is expected.
_HALF_PERIOD = 6.0


class _BinSizeInState(tuners.Tuner):
  """Bins that a test sets, and what the last round showed of the size."""

  def initial_state(self):
    return collections.OrderedDict(
      bin_size=tf.constant(1.0),
      sum_stddev=tf.constant(0.0, tf.float64),
      is_blind=tf.constant(False),
    )

  def bin_sizes(self, state):
    return stripes.level(state['bin_size'])

  def next_state(self, state, fitted, num_clients):
    return collections.OrderedDict(
      state, sum_stddev=fitted.sum_stddev, is_blind=fitted.is_blind
    )


@functools.lru_cache(maxsize=None)
def _server(modulus, decoding, dim, is_predicting):
  """Returns a function that decodes residues [dim], traced once."""
  tuner = _BinSizeInState(modulus=modulus, decoding=decoding)
  codec = round_codec.RoundCodec(tuner, [tf.TensorSpec([dim], tf.float32)])

  @functools.partial(tf.function, autograph=False)
  def decode(residues, num_clients, bin_size, expected):
    counts = collections.OrderedDict(
      contributing=num_clients, rejected=tf.constant(0)
    )
    state = collections.OrderedDict(tuner.initial_state(), bin_size=bin_size)
    return codec.decode(
      [residues],
      counts,
      state,
      tf.constant([1, 2], tf.int64),
      [expected] if is_predicting else None,
    )

  return decode


class _Round:
  """A round of stochastic rounding; what the server makes of it."""

  def __init__(
    self,
    rng,
    clients,
    bin_size,
    expected=None,
    modulus=_MODULUS,
    decoding=modes.Decoding.UNBIASED,
  ):
    num_clients, dim = clients.shape
    bin_size = np.float32(bin_size)
    bins = np.zeros(dim)
    for client in clients:
      bins += np.floor(client / float(bin_size) + rng.random(dim))
    decode = _server(modulus, decoding, dim, expected is not None)
    if expected is None:
      expected = np.zeros(dim)
    (result,), state, self.measured = decode(
      tf.constant(bins % modulus, tf.int32),
      tf.constant(num_clients),
      tf.constant(bin_size),
      tf.constant(expected, tf.float32),
    )
    self.true = clients.sum(axis=0, dtype=np.float64)
    self.result = np.asarray(result, np.float64)
    self.learned = float(state['sum_stddev'])
    self.is_blind = bool(state['is_blind'])
    self.gain = float(self.measured.get('prediction_gain', 1.0))
    squares = np.square(self.result - self.true)
    energy = np.mean(np.square(self.true))
    self.nmse = np.mean(squares) / energy
    self.nmse_error = np.std(squares) / math.sqrt(dim) / energy


def _clients(rng, num_clients, dim=_DIM):
  """Returns independent clients whose sum has a variance of 1."""
  rows = rng.standard_normal((num_clients, dim), np.float32)
  return rows / np.float32(math.sqrt(num_clients))


def _correlated(rng, total, rho, scale=1.0):
  """Returns a prediction of that correlation with a sum of variance 1."""
  other = rng.standard_normal(len(total))
  return scale * (rho * total + math.sqrt(1 - rho**2) * other)


def _rest(total, expected):
  """Returns 1 - rho^2 of the coordinates that are there."""
  rho = total @ expected / np.linalg.norm(total) / np.linalg.norm(expected)
  return 1 - rho**2


class GainTest(parameterized.TestCase):
  """The oracle: a residual's variance is 1 - rho^2 of that of the sum."""

  @parameterized.product(
    rho=[0.0, 0.3, 0.5, 0.7, 0.9, 0.95], num_clients=[10, 100, 1000]
  )
  def test_error_and_size_fall_by_one_minus_rho_squared(self, rho, num_clients):
    rng = np.random.default_rng([int(100 * rho), num_clients])
    clients = _clients(rng, num_clients)
    expected = _correlated(rng, clients.sum(axis=0), rho, scale=0.93)
    share = 1 - rho**2
    bin_size = 2 * _HALF_PERIOD / _MODULUS
    without = _Round(rng, clients, bin_size)
    found = _Round(rng, clients, bin_size * math.sqrt(share), expected)
    # Both are relative to the same sum.
    error = math.hypot(found.nmse_error, share * without.nmse_error)
    # The step of the coefficients leaves a 48th of its square.
    step = 0.05**2 / 12 * 0.93**2
    tolerance = stat_checks.Z * error + step * without.nmse
    self.assertLess(abs(found.nmse - share * without.nmse), tolerance)
    rest = _rest(found.true, expected) if rho else 1.0
    # Rounding has a tenth of the residual's variance, or less.
    error = stat_checks.variance_error(rest, _DIM)
    self.assertTrue(
      abs(found.gain - rest) < stat_checks.Z * error + 4 * step,
      (found.gain, rest, error),
    )
    size = stat_checks.variance_error(1.0, _DIM)
    self.assertLess(
      abs(float(found.measured['sum_stddev']) ** 2 - 1),
      stat_checks.Z * size * 2,
    )
    self.assertLess(
      abs(found.learned**2 / rest - 1), stat_checks.Z * size + 4 * step / rest
    )
    self.assertAlmostEqual(
      float(found.measured['predicted_nmse']) / found.nmse, 1.0, delta=0.1
    )
    if rho:
      # The negative control: the next correlation is another gain.
      self.assertGreater(abs(found.gain - (1 - (rho + 0.04) ** 2)), 2 * error)

  @parameterized.parameters(-1.0, 0.0, 0.01, 30.0, 100.0, 1e9, 1e30)
  def test_a_wrong_sign_or_scale_costs_at_most_a_hundredth(self, scale):
    for seed, rho in ((1, 1.0), (2, 0.7), (3, 0.0)):
      rng = np.random.default_rng(seed)
      clients = _clients(rng, 10)
      with np.errstate(over='ignore'):
        expected = _correlated(rng, clients.sum(axis=0), rho, scale)
      bin_size = 2 * _HALF_PERIOD / _MODULUS
      found, without = (
        _Round(np.random.default_rng(seed), clients, bin_size, p)
        for p in (expected, None)
      )
      self.assertLess(found.nmse, 1.01 * without.nmse)
      self.assertLess(found.learned, 1.01 * without.learned)

  def test_chance_is_not_taken_for_a_prediction(self):
    used = 0
    for seed in range(40):
      rng = np.random.default_rng(seed)
      clients = _clients(rng, 10)
      for rho in (0.0, 0.2):
        expected = _correlated(rng, clients.sum(axis=0), rho)
        found = _Round(rng, clients, 9 / _MODULUS, expected)
        self.assertEqual(found.gain < 1.0, rho > 0.0)
        used += found.gain < 1.0
    self.assertEqual(used, 40)  # The negative control.


class UnbiasedTest(parameterized.TestCase):
  """The mean of rounds is the sum, though c is chosen by the residues."""

  @parameterized.product(
    rho=[0.0, 0.3, 0.5, 0.7, 0.9, 0.95], num_clients=[10, 100]
  )
  def test_mean_of_rounds_is_the_sum(self, rho, num_clients):
    self._check(rho, num_clients, 2 * 3.5 / 64 * math.sqrt(1 - rho**2))

  @parameterized.parameters(0.9, 0.95, 0.99)
  def test_a_residual_below_its_error_is_let_through(self, rho):
    # Bins are those of the sum, as when a prediction has just become good. The
    # rounding has 0.2 of the sum's variance, the residual 0.19, 0.1 and 0.02.
    self._check(rho, 100, 2 * 3.5 / 64)

  def _check(self, rho, num_clients, bin_size):
    modulus = 64
    slopes = {decoding: [] for decoding in _DECODINGS}
    for seed in range(24):
      rng = np.random.default_rng([seed, num_clients])
      clients = _clients(rng, num_clients, 4096)
      total = clients.sum(axis=0, dtype=np.float64)
      expected = _correlated(rng, total, rho)
      for decoding, found in slopes.items():
        seen = _Round(rng, clients, bin_size, expected, modulus, decoding)
        error = seen.result - total
        residual = total - rho * expected
        found.append([error @ x / (x @ x) for x in (total, expected, residual)])
    for decoding, found in slopes.items():
      mean = np.mean(found, axis=0)
      errors = np.std(found, axis=0, ddof=1) / math.sqrt(len(found))
      is_unbiased = np.all(np.abs(mean) < stat_checks.z_for(3) * errors)
      # The negative control: the posterior mean shrinks the residual.
      wanted = decoding is modes.Decoding.UNBIASED
      self.assertEqual(is_unbiased, wanted, (decoding, mean, errors))


_DECODINGS = (modes.Decoding.UNBIASED, modes.Decoding.POSTERIOR_MEAN)


class WorstCaseTest(parameterized.TestCase):
  @parameterized.product(noise=[1.0, 3.0, 10.0], rho=[0.5, 0.9, 0.99])
  def test_no_worse_than_a_dropped_round_where_clients_cancel(self, noise, rho):
    num_clients = 100
    bin_size = math.sqrt(6 * noise / num_clients)
    for seed in range(3):
      rng = np.random.default_rng([seed, int(noise), int(100 * rho)])
      # Each spreads over many bins: the rounding is as large as it can be.
      clients = rng.standard_normal((num_clients, 4096)) * 4 * bin_size
      clients -= clients.mean(axis=0)
      clients += rng.standard_normal(4096) / num_clients
      expected = _correlated(rng, clients.sum(axis=0), rho)
      found = _Round(rng, clients, bin_size, expected, 1024)
      self.assertLess(found.nmse, 1.0 + stat_checks.Z * found.nmse_error)
      self.assertLessEqual(float(found.measured['predicted_nmse']), 1.0)
      if noise > 1.0:
        # The negative control: all of the residual would be worse.
        unshrunk = noise * num_clients * 4096 / np.sum(np.square(found.true))
        self.assertGreater(unshrunk / num_clients, 2.0)


class LostRoundsTest(parameterized.TestCase):
  def test_a_residual_below_the_rounding_is_no_lost_sum(self):
    rng = np.random.default_rng(1)
    clients = _clients(rng, 100, 4096)
    total = clients.sum(axis=0)
    expected = total + 1e-3 * rng.standard_normal(4096)
    for decoding, largest in zip(_DECODINGS, (100 * 0.1**2 / 6, 2e-3)):
      found = _Round(rng, clients, 0.1, expected, 64, decoding)
      self.assertFalse(found.is_blind)
      # That of the rounding, or next to that of the prediction; and the next
      # bins will be finer.
      self.assertLess(found.nmse - largest, stat_checks.Z * found.nmse_error)
      self.assertBetween(found.learned, 1e-3, 0.5)
      predicted = float(found.measured['predicted_nmse'])
      self.assertBetween(predicted, 0.8 * found.nmse, 0.25)
      stddev = float(found.measured['sum_stddev'])
      self.assertAlmostEqual(stddev, 1.0, delta=0.2)

  def test_a_residual_that_looks_like_rounding_is_not_taken_for_nothing(self):
    # Clients that agree are rounded less than the fit assumes, so that for some
    # bins rounding and residual together look like rounding alone.
    rng = np.random.default_rng(7)
    common = rng.standard_normal(4096) / 100
    clients = common + 0.3 * _clients(rng, 100, 4096)
    stddev = np.std(clients.sum(axis=0))
    expected = _correlated(rng, clients.sum(axis=0) / stddev, 0.7, stddev)

    def least_learned():
      found = []
      for bins in np.geomspace(0.2, 0.35, 12):
        seen = _Round(rng, clients, bins * stddev, expected, 64)
        found.append(seen.learned / stddev / math.sqrt(1 - 0.7**2))
      return min(found)

    self.assertGreater(least_learned(), 0.55)
    # The negative control: what could have been told from nothing.
    _server.cache_clear()
    self.addCleanup(_server.cache_clear)
    with mock.patch.object(
      subtraction.Subtraction, '_no_leap', lambda self, fitted: fitted
    ):
      self.assertLess(least_learned(), 0.5)

  def test_a_sum_that_is_not_as_predicted_has_the_size_of_the_prediction(self):
    rng = np.random.default_rng(2)
    clients = _clients(rng, 100, 4096)
    expected = 1.2 * rng.standard_normal(4096)
    found = _Round(rng, clients, 0.01, expected, 64)
    self.assertEqual(found.nmse, 1.0)  # As of a dropped round.
    self.assertTrue(bool(found.measured['blind']))
    self.assertFalse(found.is_blind)
    size = stat_checks.stddev_error(1.2, 4096)
    self.assertLess(abs(found.learned - 1.2), stat_checks.Z * size)
    # The negative control: nothing explains a sum beyond any prediction.
    found = _Round(rng, clients, 0.01, 0.01 * expected, 64)
    self.assertTrue(found.is_blind)

  def test_one_client_is_not_predicted(self):
    rng = np.random.default_rng(3)
    for num_clients, is_predicted in ((1, False), (2, True)):
      clients = _clients(rng, num_clients, 4096)
      found = _Round(rng, clients, 9 / 64, clients.sum(axis=0), 64)
      self.assertEqual(found.gain < 1.0, is_predicted)

  def test_nothing_is_added_where_nothing_was_sent(self):
    rng = np.random.default_rng(4)
    expected = rng.standard_normal(4096)
    for num_clients in (0, 5):
      found = _Round(rng, np.zeros([num_clients, 4096]), 0.1, expected, 64)
      np.testing.assert_array_equal(found.result, np.zeros(4096))
      self.assertTrue(bool(found.measured['zero_sum']))
      self.assertEqual(found.gain, 1.0)


class SampleTest(absltest.TestCase):
  def test_takes_its_part_of_each_leaf(self):
    sizes = [2**18, 1024, 0, 30]
    leaves = [
      stripes.to_stripes(tf.fill([size], float(number))) if size else None
      for number, size in enumerate(sizes, 1)
    ]
    bins, predicted, count = subtraction._sample(leaves, leaves, sizes)
    np.testing.assert_array_equal(bins, predicted)
    self.assertLessEqual(count, subtraction.MAX_SAMPLE + 64)
    found = collections.Counter(bins.numpy().tolist())
    for number, size in ((1, 2**18), (2, 1024)):
      share = found[number] / count
      self.assertAlmostEqual(share, size / sum(sizes), delta=1e-3)
    self.assertGreater(found[4], 0)


if __name__ == '__main__':
  absltest.main()

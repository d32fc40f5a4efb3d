# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `signal_bound`, on sums that NumPy rounds."""

import functools
import math

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests import reference
from tff_autotune_secagg.numerics.reading import signal_bound

_DIM = 2**13
_LADDER = 8.0 ** np.arange(-10.0, 6.0)


def _float64(x):
  return tf.constant(x, tf.float64)


def _independent(rng):
  return rng.standard_normal([10, _DIM])


def _agreeing(rng):
  return np.repeat(rng.standard_normal([1, _DIM]), 10, axis=0)


def _cancelling(rng):
  rows = _independent(rng)
  # The sum is 30 times smaller than that of independent clients.
  return rows - rows.mean(axis=0) + rng.standard_normal(_DIM) / 100


def _opposed(rng):
  row = rng.standard_normal([1, _DIM])
  return np.concatenate([row, -row, 0.01 * row])


def _uneven(rng):
  return _independent(rng) * np.exp(1.5 * rng.standard_normal([10, 1]))


def _single(rng):
  return rng.standard_normal([1, _DIM])


_KINDS = dict(
  independent=_independent,
  agreeing=_agreeing,
  cancelling=_cancelling,
  opposed=_opposed,
  uneven=_uneven,
  single=_single,
)


def _clients(kind, seed):
  """Rows of unit variance in the mean, and the S^2 of their sum."""
  rows = _KINDS[kind](np.random.default_rng(seed))
  rows /= math.sqrt(np.mean(rows**2))
  return rows, np.mean(rows.sum(axis=0) ** 2)


def _sum_of_rounded(rng, rows, bin_sizes):
  """The sum of the rows, rounded at random to bins of each stripe, [_, 16]."""
  scaled = rows.reshape(len(rows), -1, 16) / bin_sizes
  return np.floor(scaled + rng.random(scaled.shape)).sum(axis=0)


def _observe(bins, bin_sizes, modulus):
  """What the stripes show, by NumPy; an ordinary round's are one sample."""
  cosines = np.cos(2 * np.pi * bins / modulus).mean(axis=0)
  num = np.full(16, float(len(bins)))
  if bin_sizes[0] == bin_sizes[-1]:
    cosines, num = np.full(16, cosines.mean()), 16 * num
  is_readable = cosines > 5 / np.sqrt(2 * num)
  safe = np.where(is_readable, np.minimum(cosines, 1.0), 0.5)
  stddev_bins = modulus / (2 * np.pi) * np.sqrt(-2 * np.log(safe))
  # d C / d ln s^2 = C ln C, and var C = (1 - C^2)^2 / 2 N.
  inner = np.minimum(safe, 1 - 1e-9)
  information = 2 * num * (inner * np.log(inner) / (1 - inner**2)) ** 2
  return signal_bound.observe(
    _float64(stddev_bins),
    _float64(bin_sizes),
    _float64(information),
    _float64(num),
    tf.constant(is_readable),
  )


@functools.lru_cache(maxsize=None)
def _traced_bound():
  return tf.function(signal_bound.bound, autograph=False)


def _bound(observed, num_clients, bin_sizes):
  noise = num_clients * np.square(bin_sizes) / 6
  return _traced_bound()(observed, _float64(noise), _float64(bin_sizes))


def _exact(variance, error=0.0, is_readable=True, is_enough=True):
  """An `Observed` of given numbers."""
  return signal_bound.Observed(
    _float64(np.broadcast_to(variance, [16])),
    _float64(np.broadcast_to(error, [16])),
    tf.constant(np.broadcast_to(is_readable, [16])),
    tf.constant(np.broadcast_to(is_enough, [16])),
  )


class ObserveTest(parameterized.TestCase):
  @parameterized.parameters((2.0, 64), (10.0, 64), (20.0, 64), (3.0, 2**16))
  def test_standard_error_is_the_scatter_of_the_estimate(self, stddev, modulus):
    rng = np.random.default_rng(1)
    bin_sizes = np.full(16, 0.5)
    found = []
    for _ in range(200):
      bins = np.rint(rng.normal(0, stddev, [_DIM // 16, 16]))
      found.append(_observe(bins, bin_sizes, modulus))
    variances = np.array([f.variance[0] for f in found])
    # Sheppard's 1/12 of rounding to the nearest.
    np.testing.assert_allclose(
      variances.mean(), 0.25 * (stddev**2 + 1 / 12), rtol=0.02
    )
    # A standard deviation of 200 samples is known to 5 %; a quarter is five.
    # The error of a count of residues that are not 0 comes on top.
    ratio = np.mean([f.error[0] for f in found]) / variances.std()
    self.assertBetween(ratio, 0.75, 1.25 * math.sqrt(1 + 1 / stddev**2))

  def test_of_rare_residues_it_is_that_of_a_count(self):
    rng = np.random.default_rng(2)
    chance = 0.02
    found = []
    for _ in range(200):
      bins = (rng.random([_DIM // 16, 16]) < chance).astype(float)
      found.append(_observe(bins, np.ones(16), 2**16))
    variances = np.array([f.variance[0] for f in found])
    ratio = np.mean([f.error[0] for f in found]) / variances.std()
    self.assertBetween(ratio, 0.75, 1.35)

  def test_what_is_not_readable_shows_nothing(self):
    rng = np.random.default_rng(3)
    bins = rng.integers(-32, 32, [_DIM // 16, 16])
    for bin_sizes in (np.ones(16), _LADDER):
      found = _observe(bins, bin_sizes, 64)
      np.testing.assert_array_equal(found.variance, np.zeros(16))
      np.testing.assert_array_equal(found.is_readable, [False] * 16)
      bounded = _bound(found, 10, bin_sizes)
      self.assertEqual(float(bounded.variance), 0.0)
      self.assertEqual(float(bounded.doubled), 0.0)


class BoundTest(parameterized.TestCase):
  @parameterized.product(
    kind=tuple(_KINDS), client_bins=(0.3, 1.0, 3.0), modulus=(256, 2**16)
  )
  def test_holds_in_an_ordinary_round(self, kind, client_bins, modulus):
    for seed in range(5):
      rows, variance = _clients(kind, seed)
      bin_sizes = np.full(16, 1 / client_bins)
      rng = np.random.default_rng(100 + seed)
      bins = _sum_of_rounded(rng, rows, bin_sizes)
      observed = _observe(bins, bin_sizes, modulus)
      bounded = _bound(observed, len(rows), bin_sizes)
      # Its four standard errors: one in 30,000 that it does not.
      self.assertLessEqual(float(bounded.doubled) / 2, variance)
      self.assertLessEqual(float(bounded.variance), 2 * variance)
      # It is no more than the sum itself where there is much of it, and is not
      # far below. One standard error of 8,192 coordinates is 1.6 %.
      if client_bins > 0.5 and kind in ('independent', 'agreeing', 'single'):
        self.assertBetween(float(bounded.variance) / variance, 0.85, 1.15)

  @parameterized.product(
    kind=tuple(_KINDS), scale=(0.3, 1.0, 2.4), modulus=(16, 256, 2**16)
  )
  def test_holds_in_a_calibration(self, kind, scale, modulus):
    for seed in range(5):
      rows, variance = _clients(kind, seed)
      bin_sizes = scale * _LADDER
      rng = np.random.default_rng(100 + seed)
      bins = _sum_of_rounded(rng, rows, bin_sizes)
      bins -= modulus * np.round(bins / modulus)
      observed = _observe(bins, bin_sizes, modulus)
      bounded = _bound(observed, len(rows), bin_sizes)
      # A stripe has 512 coordinates, whose own S^2 is off by 6 %: five of them.
      tolerance = 5 * math.sqrt(2 / (_DIM / 16))
      self.assertLessEqual(
        float(bounded.doubled) / 2, variance * (1 + tolerance)
      )
      self.assertLessEqual(
        float(bounded.variance), 2 * variance * (1 + tolerance)
      )
      if modulus > 16 and kind in ('independent', 'agreeing', 'single'):
        self.assertBetween(float(bounded.variance) / variance, 0.6, 1.35)

  @parameterized.parameters('cancelling', 'opposed')
  def test_the_size_of_independent_clients_is_no_bound(self, kind):
    """The negative control: what the noise of independent clients leaves."""
    for seed in range(5):
      rows, variance = _clients(kind, seed)
      bin_size = 4.0
      bins = _sum_of_rounded(
        np.random.default_rng(100 + seed), rows, np.full(16, bin_size)
      )
      observed = np.mean(np.square(bin_size * bins))
      # S^2 + n b^2 v(S / sqrt(n) b) = observed, by bisection of S.
      low, high = 0.0, math.sqrt(observed)
      for _ in range(60):
        middle = (low + high) / 2
        client = middle / math.sqrt(len(rows)) / bin_size
        noise = len(rows) * bin_size**2
        noise *= reference.stochastic_variance(max(client, 1e-6))
        is_below = middle**2 + noise < observed
        low, high = (middle, high) if is_below else (low, middle)
      self.assertGreater(low**2, 3 * variance)

  def test_is_twice_four_standard_errors_below_but_at_most_the_estimate(self):
    for error in (0.01, 0.5, 0.9, 3.0):
      observed = _exact(5.0, error)
      found = signal_bound.bound(
        observed, _float64([2.0] * 16), _float64([1.0] * 16)
      )
      # Of the variance 5 or of its logarithm, whichever is left with more.
      of_few = 5.0 * np.exp(-4 * error / 5.0) - 2.0
      doubled = max(2 * (3.0 - 4 * error), 2 * of_few, 0.0)
      np.testing.assert_allclose(found.doubled, doubled)
      expected = min(doubled, 3.0)
      np.testing.assert_allclose(found.variance, expected)
      if expected:
        self.assertEqual(float(found.error), error)

  def test_of_few_residues_nothing_is_said(self):
    observed = _exact(5.0, is_enough=False)
    found = signal_bound.bound(
      observed, _float64([2.0] * 16), _float64([1.0] * 16)
    )
    self.assertEqual((float(found.variance), float(found.doubled)), (0.0, 0.0))


class PairTest(parameterized.TestCase):
  @parameterized.parameters(3, 100, 10000)
  def test_tells_what_rounding_of_wide_bins_hides(self, num_clients):
    # Equal clients that are far smaller than a bin: of rounding there is less
    # than n b^2 / 6, but that much is subtracted.
    client = 1e-2 * _LADDER[8]
    variance = (num_clients * client) ** 2
    noise = np.array(
      [
        num_clients * b**2 * reference.stochastic_variance(client / b)
        for b in _LADDER[5:13]
      ]
    )
    is_readable = np.zeros(16, bool)
    is_readable[5:13] = True
    observed = np.zeros(16)
    observed[5:13] = variance + noise
    # Nothing is said by the finest stripes: as if they had wrapped.
    is_readable[:8] = False
    observed[:8] = 0.0
    found = signal_bound.bound(
      _exact(observed, 0.0, is_readable, is_readable),
      _float64(num_clients * _LADDER**2 / 6),
      _float64(_LADDER),
    )
    self.assertLessEqual(float(found.variance), variance)
    single = np.max(observed - num_clients * _LADDER**2 / 6)
    pair = (8 * observed[8] - observed[9]) / 7
    np.testing.assert_allclose(found.variance, max(pair, single, 0.0))
    if num_clients == 100:
      # Of the noise of small clients, which grows with b, n s^2 is all it sees.
      np.testing.assert_allclose(
        found.variance, variance * (1 - 1 / num_clients), rtol=0.01
      )
      self.assertLess(single, 0.7 * variance)

  def test_rounding_grows_at_least_as_the_bins(self):
    sizes = np.geomspace(1e-3, 10, 60)
    variances = np.array([reference.stochastic_variance(s) for s in sizes])
    for ratio in (1.6, 8.0):
      coarser = [reference.stochastic_variance(s / ratio) for s in sizes]
      growth = ratio**2 * np.array(coarser) / variances
      self.assertGreaterEqual(growth.min(), ratio * (1 - 1e-9))

  def test_stripes_of_one_size_or_unread_ones_are_no_pair(self):
    # As pairs they would say 8 / 7 of what is observed.
    noise = _float64(np.full(16, 4.9))
    observed = _exact(5.0, 0.0)
    found = signal_bound.bound(observed, noise, _float64(np.ones(16)))
    np.testing.assert_allclose(found.variance, 0.1)
    is_readable = np.arange(16) == 3
    observed = _exact(5.0 * is_readable, 0.0, is_readable, is_readable)
    found = signal_bound.bound(observed, noise, _float64(_LADDER))
    np.testing.assert_allclose(found.variance, 0.1)
    self.assertEqual(int(found.index), 3)

  def test_counts_next_to_nothing_are_no_proof(self):
    # Of clients that cancel: S^2 = 0, and residues that are not 0 are rare. In
    # an eightfold bin they are eight times as many in bins^2 / 8.
    rng = np.random.default_rng(4)
    num, trials, wrong = _DIM / 16, 1500, 0
    is_readable = np.arange(16) < 2
    bin_sizes = 8.0 ** np.arange(16.0)
    observe = tf.function(signal_bound.observe, autograph=False)
    for expected in (70.0, 100.0):
      drawn = rng.poisson([expected, expected / 8], size=[trials, 2])
      # Many are alike.
      for pair, times in zip(*np.unique(drawn, axis=0, return_counts=True)):
        counts = np.zeros(16)
        counts[:2] = pair
        stddev_bins = np.sqrt(counts / num)
        observed = observe(
          _float64(stddev_bins),
          _float64(bin_sizes),
          _float64(np.full(16, num / 2)),
          _float64(np.full(16, num)),
          tf.constant(is_readable),
        )
        doubled = _bound(observed, 1e6, bin_sizes).doubled
        wrong += times * (float(doubled) > 0.0)
    # Four standard errors are one in 30,000, of the normal: none is expected,
    # and two are as many as five of its standard errors.
    self.assertLessEqual(wrong, 2)


class DrownedTest(parameterized.TestCase):
  @parameterized.parameters(
    (2.0, True), (2.3, True), (1.7, True), (2.5, False), (1.5, False)
  )
  def test_is_what_rounding_explains_within_four_standard_errors(
    self, variance, expected
  ):
    observed = _exact(variance, 0.1)
    noise = _float64(np.full(16, 2.0))
    bounded = signal_bound.bound(observed, noise, _float64(np.ones(16)))
    found = signal_bound.is_drowned(observed, noise, bounded)
    self.assertEqual(bool(found), expected)
    unread = _exact(variance, 0.1, is_readable=False)
    found = signal_bound.is_drowned(unread, noise, bounded)
    self.assertFalse(bool(found))


class OfStripesTest(parameterized.TestCase):
  def _of_stripes(self, variance, bound, index, is_readable=True, error=0.01):
    bounded = signal_bound.SignalBound(
      variance=_float64(bound),
      doubled=_float64(2 * bound),
      error=_float64(0.01),
      index=tf.constant(index),
    )
    observed = _exact(variance, error, is_readable, is_readable)
    variance, is_sound = signal_bound.of_stripes(observed, bounded)
    return variance.numpy(), is_sound.numpy()

  def test_stripes_that_show_less_than_the_bound_have_wrapped(self):
    shown = np.linspace(0.1, 3.1, 16)
    found, is_sound = self._of_stripes(shown, 1.0, 12)
    expected = shown >= 1.0 - 4 * math.hypot(0.01, 0.01)
    # The finest take what the finest sound one shows.
    first = np.argmax(expected)
    np.testing.assert_array_equal(is_sound, np.ones(16, bool))
    np.testing.assert_allclose(found[first:], np.maximum(shown[first:], 1.0))
    np.testing.assert_allclose(found[:first], max(shown[first], 1.0))

  def test_a_coarse_stripe_that_shows_less_is_not_decoded(self):
    shown = np.full(16, 2.0)
    shown[10] = 0.5
    _, is_sound = self._of_stripes(shown, 1.0, 3)
    np.testing.assert_array_equal(is_sound, np.arange(16) != 10)

  def test_those_finer_than_the_finest_read_are_as_wide_as_that(self):
    is_readable = np.arange(16) >= 5
    shown = np.where(is_readable, 2.0 + np.arange(16), 0.0)
    found, is_sound = self._of_stripes(shown, 1.0, 6, is_readable)
    np.testing.assert_array_equal(is_sound, np.ones(16, bool))
    np.testing.assert_allclose(found[:6], 7.0)
    np.testing.assert_allclose(found[6:], shown[6:])

  def test_where_nothing_is_known_nothing_is_finer(self):
    is_readable = np.arange(16) >= 5
    _, is_sound = self._of_stripes(2.0 * is_readable, 0.0, 0, is_readable)
    np.testing.assert_array_equal(is_sound, is_readable)


if __name__ == '__main__':
  absltest.main()

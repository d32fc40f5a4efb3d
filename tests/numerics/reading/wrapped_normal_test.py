# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import math
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
from scipy import stats
import tensorflow as tf

from tests import reference
from tests import stat_checks
from tff_autotune_secagg.numerics.reading import wrapped_normal

_NUM_ENTRIES = 2**14
# Spread, in periods, at which the mean cosine is 5 standard errors from 0.
_BLIND_PERIODS = math.sqrt(
  -math.log(5 / math.sqrt(2 * _NUM_ENTRIES)) / (2 * math.pi**2)
)
_MODULI = (4, 16, 256, 4096, 2**16, 2**20)


def _estimate_bins(samples, modulus):
  """Spread in bins by the package, of scipy samples reduced by numpy."""
  reduced = samples - modulus * np.floor(samples / modulus + 0.5)
  versine = wrapped_normal.sum_versines(tf.constant(reduced), modulus) / len(
    samples
  )
  return modulus * float(wrapped_normal.stddev_periods(versine)), versine


def _relative_error(periods, num_entries):
  """Standard error of ln spread: var C = (1 - C^2)^2 / 2N by the delta rule."""
  cosine = math.exp(-2 * (math.pi * periods) ** 2)
  slope = 4 * (math.pi * periods) ** 2 * cosine  # -d C / d ln spread.
  return (1 - cosine**2) / math.sqrt(2 * num_entries) / slope


class EstimateTest(parameterized.TestCase):
  @parameterized.product(modulus=_MODULI, seed=(1, 2, 3))
  def test_matches_wrapped_samples_up_to_the_blind_limit(self, modulus, seed):
    # At twice the standard errors of the limit the delta rule still holds.
    spreads = np.geomspace(0.2, 0.93 * _BLIND_PERIODS * modulus, 7)
    z = stat_checks.z_for(len(spreads))
    for spread in spreads:
      samples = stats.norm.rvs(
        scale=spread, size=_NUM_ENTRIES, random_state=seed
      )
      found, _ = _estimate_bins(samples, modulus)
      tolerance = z * _relative_error(spread / modulus, _NUM_ENTRIES)
      self.assertLess(abs(math.log(found / spread)), tolerance)

  @parameterized.parameters(1, 2, 3)
  def test_negative_control_a_spread_off_by_half_is_told(self, seed):
    for spread in (0.2, 2.0, 0.9 * _BLIND_PERIODS * 16):
      samples = stats.norm.rvs(
        scale=1.5 * spread, size=_NUM_ENTRIES, random_state=seed
      )
      found, _ = _estimate_bins(samples, 16)
      tolerance = stat_checks.Z * _relative_error(spread / 16, _NUM_ENTRIES)
      self.assertGreater(abs(math.log(found / spread)), tolerance)

  @parameterized.product(modulus=_MODULI, seed=(1, 2, 3))
  def test_the_lattice_of_integers_adds_no_bias(self, modulus, seed):
    # Stochastically rounded, so that the variance grows by E f (1 - f).
    rng = np.random.default_rng(seed)
    for spread in (0.2, 0.1 * modulus):
      samples = np.floor(
        stats.norm.rvs(scale=spread, size=_NUM_ENTRIES, random_state=rng)
        + rng.random(_NUM_ENTRIES)
      )
      _, versine = _estimate_bins(samples, modulus)
      direct = 2 * np.sin(np.pi * samples / modulus) ** 2
      np.testing.assert_allclose(float(versine), direct.mean(), rtol=1e-9)
      if spread < 1:
        continue  # Not a wrapped normal: the rounding noise dominates.
      observed = math.sqrt(spread**2 + reference.stochastic_variance(spread))
      # For k = 4 the lattice's own fourth moment enters; 10 standard errors of
      # its bias would be 3 %.
      bias = 0.03 if modulus < 16 else 0.0
      found = modulus * float(wrapped_normal.stddev_periods(versine))
      tolerance = stat_checks.Z * _relative_error(
        observed / modulus, _NUM_ENTRIES
      )
      self.assertLess(abs(math.log(found / observed)), tolerance + bias)

  @parameterized.parameters(1, 2, 3)
  def test_float32_keeps_small_spreads_of_large_moduli(self, seed):
    # float32 angles would lose a spread of 5 of 65536 bins entirely.
    samples = np.rint(stats.norm.rvs(scale=5.0, size=2**14, random_state=seed))
    versine = wrapped_normal.sum_versines(
      tf.constant(samples, tf.float32), 2**16
    ) / len(samples)
    found = 2**16 * float(wrapped_normal.stddev_periods(versine))
    np.testing.assert_allclose(found, math.sqrt(np.mean(samples**2)), rtol=1e-6)

  @parameterized.named_parameters(
    ('all_zero', np.zeros(100), 0.0),
    ('all_equal_to_a_quarter', np.full(1000, 64.0), math.inf),
    ('all_equal_to_half', np.full(1000, 128.0), math.inf),
    ('three_of_256', np.full(1000, 3.0), None),
    ('one_entry', np.array([5.0]), None),
  )
  def test_constant_input_is_never_nan(self, samples, expected):
    versine = wrapped_normal.sum_versines(tf.constant(samples), 256) / len(
      samples
    )
    found = 256 * float(wrapped_normal.stddev_periods(versine))
    if expected is None:
      # Energy, not centre: a constant c reads as a spread of about c.
      np.testing.assert_allclose(found, samples[0], rtol=0.01)
    elif expected:
      self.assertGreater(found, 256)  # More than a period, or infinite.
    else:
      self.assertEqual(found, 0.0)

  def test_empty_input_is_unreadable_and_finite(self):
    total = wrapped_normal.sum_versines(tf.zeros([0, 16]), 8)
    np.testing.assert_array_equal(total.numpy(), np.zeros(16))
    self.assertFalse(
      bool(
        wrapped_normal.is_readable(
          tf.constant(0.0, tf.float64), tf.constant(0.0, tf.float64), 8
        )
      )
    )


class BlindnessTest(parameterized.TestCase):
  @parameterized.product(modulus=(2, 3, 4, 16, 1000), seed=(1, 2, 3))
  def test_false_alarms_come_at_the_stated_rate(self, modulus, seed):
    # At 2.5 standard errors instead of 5, where a rate can be counted.
    rng = np.random.default_rng(seed)
    trials, entries = 20000, 256
    residues = rng.integers(modulus, size=(trials, entries))
    versines = np.mean(2 * np.sin(np.pi * residues / modulus) ** 2, axis=1)
    with mock.patch.object(wrapped_normal, 'BLIND_Z', 2.5):
      readable = wrapped_normal.is_readable(
        tf.constant(versines),
        tf.constant(float(entries), tf.float64),
        modulus,
      ).numpy()
    expected = stats.norm.sf(2.5)
    tolerance = stat_checks.Z * stat_checks.proportion_error(expected, trials)
    # A mean of 256 is normal in its tail up to its skew and lattice only.
    self.assertLess(readable.mean(), 1.35 * expected + tolerance)
    self.assertGreater(readable.mean(), 0.4 * expected - tolerance)
    with mock.patch.object(wrapped_normal, 'BLIND_Z', 1.8):
      wrong = wrapped_normal.is_readable(
        tf.constant(versines),
        tf.constant(float(entries), tf.float64),
        modulus,
      ).numpy()
    self.assertGreater(wrong.mean(), 1.35 * expected + tolerance)

  @parameterized.product(modulus=_MODULI, seed=(1, 2, 3))
  def test_flags_spreads_beyond_the_limit_and_reads_below(self, modulus, seed):
    count = tf.constant(float(_NUM_ENTRIES), tf.float64)
    # Five standard errors to each side of a cosine of five.
    for cosine, is_readable in ((10, True), (0.01, False)):
      periods = math.sqrt(
        -math.log(cosine / math.sqrt(2 * _NUM_ENTRIES)) / (2 * math.pi**2)
      )
      samples = stats.norm.rvs(
        scale=periods * modulus, size=_NUM_ENTRIES, random_state=seed
      )
      _, versine = _estimate_bins(samples, modulus)
      found = wrapped_normal.is_readable(versine, count, modulus)
      self.assertEqual(bool(found), is_readable)

  def test_a_mean_on_the_far_side_is_not_readable(self):
    count = tf.constant(1e6, tf.float64)
    for versine in (1.0, 1.5, 2.0):
      self.assertFalse(
        bool(
          wrapped_normal.is_readable(
            tf.constant(versine, tf.float64), count, 16
          )
        )
      )


class PosteriorMeanTest(parameterized.TestCase):
  @parameterized.parameters(0.12, 0.15, 0.25, 0.4, 0.6)
  def test_is_the_sum_over_all_periods(self, spread):
    x = np.linspace(-0.5, 0.5, 201)
    expected = reference.posterior_mean(x, spread)
    for dtype in (tf.float64, tf.float32):
      found = wrapped_normal.posterior_mean_periods(
        tf.constant(x[:, np.newaxis], dtype), tf.constant([spread], dtype)
      ).numpy()[:, 0]
      np.testing.assert_allclose(found, expected, atol=3e-4)

  @parameterized.parameters(0.0, 1e-9, 0.01, 0.05, 0.1)
  def test_small_spreads_leave_all_but_the_edges_alone(self, spread):
    x = np.linspace(-0.4, 0.4, 81)
    found = wrapped_normal.posterior_mean_periods(
      tf.constant(x[:, np.newaxis]), tf.constant([spread], tf.float64)
    ).numpy()[:, 0]
    np.testing.assert_allclose(found, x, atol=3e-3)
    inner = np.abs(x) < 0.3
    np.testing.assert_allclose(found[inner], x[inner], atol=1e-5)

  @parameterized.parameters(0.0, 0.2, 0.5, 0.6, 0.61, 1e9, math.inf)
  def test_is_odd_finite_and_zero_at_the_edges(self, spread):
    x = np.linspace(-0.5, 0.5, 101)[:, np.newaxis].astype(np.float32)
    found = wrapped_normal.posterior_mean_periods(
      tf.constant(x), tf.constant([spread])
    ).numpy()
    self.assertTrue(np.all(np.isfinite(found)))
    np.testing.assert_allclose(found, -found[::-1], atol=1e-6)
    np.testing.assert_allclose(found[[0, 50, 100]], 0.0, atol=3e-4)
    if spread > wrapped_normal.MAX_PERIODS:
      np.testing.assert_array_equal(found, np.zeros_like(found))

  @parameterized.product(spread=(0.15, 0.3, 0.5), seed=(1, 2, 3))
  def test_no_other_rule_has_a_smaller_error(self, spread, seed):
    u = stats.norm.rvs(scale=spread, size=2**16, random_state=seed)
    x = u - np.floor(u + 0.5)
    decoded = wrapped_normal.posterior_mean_periods(
      tf.constant(x[:, np.newaxis]), tf.constant([spread], tf.float64)
    ).numpy()[:, 0]
    errors = (decoded - u) ** 2
    for other in (x, 0.0 * x, 0.8 * decoded, 1.25 * decoded):
      difference = (other - u) ** 2 - errors
      error = stat_checks.mean_error(difference.std(), len(u))
      self.assertGreater(difference.mean(), -stat_checks.Z * error)
    worst = (x - u) ** 2 - errors  # Plain centred decoding.
    self.assertGreater(worst.mean(), 0.0)


class NormalTest(absltest.TestCase):
  def test_tail_agrees_with_scipy(self):
    x = np.array([0.0, 0.5, 3.0, 8.0])
    found = wrapped_normal.normal_tail(tf.constant(x)).numpy()
    np.testing.assert_allclose(found, stats.norm.sf(x), rtol=1e-10)

  def test_mean_cosine_inverts_the_estimate(self):
    periods = np.array([1e-6, 0.01, 0.2, 0.5])
    cosine = wrapped_normal.mean_cosine(tf.constant(periods))
    found = wrapped_normal.stddev_periods(1.0 - cosine).numpy()
    np.testing.assert_allclose(found[1:], periods[1:], rtol=1e-9)


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import functools

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests import reference
from tests import stat_checks
from tff_autotune_secagg.numerics.reading import fitting
from tff_autotune_secagg.numerics.reading import stripe_readings
from tff_autotune_secagg.numerics.reading import stripes
from tff_autotune_secagg.numerics.reading import wrapped_normal
from tff_autotune_secagg.numerics.rounding import modes

_STOCHASTIC = modes.Rounding.STOCHASTIC
_DITHER = modes.Rounding.DITHER
_DIM = 2**14
_LADDER = 8e-10 * 8.0 ** np.arange(16)


@functools.lru_cache(maxsize=None)
def _traced(modulus, rounding):
  def fit(*parts):
    sample = stripe_readings.Sample(*parts)
    return fitting.fit(sample, modulus=modulus, rounding=rounding)

  return tf.function(fit, autograph=False)


def _fit(versines, bin_sizes, num_clients, modulus, decoded=None, dim=_DIM):
  """Fits stripes of the given sums; with `decoded`, under dither."""
  rounding = _STOCHASTIC if decoded is None else _DITHER
  arguments = (
    versines,
    versines if decoded is None else decoded,
    stripes.stripe_counts(dim),
    bin_sizes,
    float(num_clients),
  )
  return _traced(modulus, rounding)(
    *(tf.constant(a, tf.float64) for a in arguments)
  )


def _sum_of_rounded(rng, num_clients, bin_sizes, modulus, dim=_DIM):
  """Residues, centred, of clients whose sum has unit variance, by NumPy."""
  total = np.zeros((dim // 16, 16))
  for _ in range(num_clients):
    z = rng.standard_normal((dim // 16, 16)) / np.sqrt(num_clients) / bin_sizes
    total += np.floor(z + rng.random(z.shape))
  return total - modulus * np.floor(total / modulus + 0.5)


def _versines(bins, modulus):
  return np.sum(2 * np.sin(np.pi * bins / modulus) ** 2, axis=0)


def _mean_versines(stddev_bins, modulus, dim=_DIM):
  """What versines of normal sums are on average: 1 - exp(-angle^2 / 2) each."""
  angles = 2 * np.pi * np.broadcast_to(stddev_bins, [16]) / modulus
  return dim / 16 * -np.expm1(-(angles**2) / 2)


class ExactTest(parameterized.TestCase):
  """On the versines that normal sums have on average: no sampling error."""

  @parameterized.parameters(1, 2, 30)
  def test_takes_the_rounding_of_wide_clients_out(self, num_clients):
    client, modulus = 5.0, 256
    signal = num_clients * client**2
    observed = np.sqrt(signal + num_clients / 6)
    versines = _mean_versines(observed, modulus)
    fitted = _fit(versines, np.full(16, 0.25), num_clients, modulus)
    np.testing.assert_allclose(fitted.sum_stddev, 0.25 * np.sqrt(signal), 1e-6)
    np.testing.assert_allclose(
      fitted.observed_stddev, np.full(16, 0.25 * observed), rtol=1e-6
    )
    share = signal / observed**2
    np.testing.assert_allclose(fitted.gain, np.full(16, share), rtol=1e-6)
    # Of one client all is known; else four standard errors of sqrt(2 / N), or
    # more where sums wrap, are in doubt.
    if num_clients == 1:
      np.testing.assert_allclose(fitted.max_gain, np.full(16, 2 * share))
    else:
      doubt = 8 * np.sqrt(2 / _DIM)
      found = np.asarray(fitted.max_gain)
      self.assertTrue(np.all(found < 2 * share - 0.95 * doubt))
      self.assertTrue(np.all(found > 2 * share - 3 * doubt))

  def test_a_ladder_reads_each_stripe_and_other_rounds_the_pool(self):
    modulus = 256
    stddevs = 0.5 * 1.35 ** np.arange(16)
    versines = _mean_versines(stddevs, modulus)
    # The bins of one client: the coarsest, and what it tells, come last.
    bin_sizes = 60.0 / stddevs[::-1]
    fitted = _fit(versines[::-1], bin_sizes, 1, modulus)
    expected = np.sqrt(60.0**2 - stddevs[::-1] ** -2.0 * 60.0**2 / 6)
    np.testing.assert_allclose(
      fitted.sum_stddev, np.median(expected), rtol=0.05
    )
    pooled = _fit(versines, np.ones(16), 1, modulus)
    other = _fit(np.roll(versines, 5), np.ones(16), 1, modulus)
    for part, same in zip(pooled, other):
      np.testing.assert_allclose(part, same, rtol=1e-9)

  @parameterized.parameters(2.0, 5.0)
  def test_wide_clients_under_dither_leave_white_noise_of_a_twelfth(
    self, client
  ):
    num_clients, modulus = 10.0, 256
    signal = num_clients * client**2
    # The raw sum holds the shared offset times the number of clients: uniform,
    # of the mean cosine sin(pi n / k) / (pi n / k).
    shared = -2 * np.log(np.sinc(num_clients / modulus))
    shared *= (modulus / (2 * np.pi)) ** 2
    raw = np.sqrt(signal + num_clients / 12 + shared)
    decoded = np.sqrt(signal + num_clients / 12)
    fitted = _fit(
      _mean_versines(raw, modulus),
      np.full(16, 0.25),
      num_clients,
      modulus,
      _mean_versines(decoded, modulus),
    )
    np.testing.assert_allclose(
      fitted.sum_stddev, 0.25 * np.sqrt(signal), rtol=1e-3
    )
    np.testing.assert_allclose(
      fitted.observed_stddev, np.full(16, 0.25 * decoded), rtol=1e-6
    )
    np.testing.assert_allclose(
      fitted.gain, np.full(16, signal / decoded**2), rtol=1e-3
    )

  def test_a_raw_sum_that_wrapped_is_read_from_the_decoded_one(self):
    modulus, signal = 256, 250.0
    decoded = np.sqrt(signal + 10 / 12)
    fitted = _fit(
      _mean_versines(1e4, modulus),
      np.full(16, 0.25),
      10,
      modulus,
      _mean_versines(decoded, modulus),
    )
    self.assertFalse(bool(fitted.is_blind))
    np.testing.assert_allclose(
      fitted.sum_stddev, 0.25 * np.sqrt(signal), rtol=1e-3
    )
    np.testing.assert_allclose(
      fitted.gain, np.full(16, signal / decoded**2), rtol=1e-3
    )

  def test_a_calibration_under_dither_is_read_as_offsets_of_each_client(self):
    modulus = 256
    observed = np.sqrt((1 / _LADDER) ** 2 + 10 / 6)
    versines = _mean_versines(np.minimum(observed, 1e4), modulus)
    private = _fit(versines, _LADDER, 10, modulus)
    shared = _fit(versines, _LADDER, 10, modulus, versines)
    np.testing.assert_allclose(shared.sum_stddev, private.sum_stddev)
    self.assertGreater(float(tf.reduce_max(private.gain)), 0.9)
    # Equal clients have equal offsets there: nothing is decoded.
    np.testing.assert_array_equal(shared.gain, np.zeros(16))
    np.testing.assert_array_equal(shared.max_gain, np.zeros(16))
    periods = shared.observed_stddev / (modulus * _LADDER)
    self.assertTrue(np.all(periods > wrapped_normal.MAX_PERIODS))


class CancellingTest(parameterized.TestCase):
  """Clients of which only noise is left."""

  def _sum_of_cancelling(self, rng, num_clients, bin_sizes, modulus, size):
    """Centred residues of clients of unit variance; their sum has `size`."""
    rows = rng.standard_normal([num_clients, _DIM // 16, 16])
    rows -= rows.mean(axis=0)
    rows += size / num_clients * rng.standard_normal(rows.shape[1:])
    rows /= bin_sizes
    total = np.floor(rows + rng.random(rows.shape)).sum(axis=0)
    return total - modulus * np.floor(total / modulus + 0.5)

  @parameterized.product(seed=(1, 2, 3), num_clients=(10, 100))
  def test_a_drowned_sum_is_0_and_known_to_be_below_its_rounding(
    self, seed, num_clients
  ):
    modulus, bin_size = 256, 1.0
    bins = self._sum_of_cancelling(
      np.random.default_rng(seed), num_clients, bin_size, modulus, 1e-3
    )
    fitted = _fit(
      _versines(bins, modulus), np.full(16, bin_size), num_clients, modulus
    )
    self.assertFalse(bool(fitted.is_blind))
    self.assertFalse(bool(fitted.is_zero))
    self.assertEqual(float(fitted.sum_stddev), 0.0)
    np.testing.assert_array_equal(fitted.gain, np.zeros(16))
    np.testing.assert_array_equal(fitted.max_gain, np.zeros(16))
    # What would have been told from n b^2 / 6: four standard errors, which are
    # sqrt(2 / N) of it and those of a count.
    noise = num_clients / 6
    error = noise * np.sqrt(2 / _DIM + 1 / (noise * _DIM))
    np.testing.assert_allclose(
      fitted.readable_from, np.sqrt(4 * error), rtol=0.1
    )

  @parameterized.product(seed=(1, 2, 3), modulus=(16, 256))
  def test_a_ladder_finds_the_sum_below_the_noise_of_independent_clients(
    self, seed, modulus
  ):
    size, num_clients = 0.03, 10
    bins = self._sum_of_cancelling(
      np.random.default_rng(seed), num_clients, _LADDER, modulus, size
    )
    fitted = _fit(_versines(bins, modulus), _LADDER, num_clients, modulus)
    # Of 4 bits, what is read is noise of the finest readable bin, or more.
    self.assertBetween(float(fitted.sum_stddev) / size, 0.6, 8.0)
    # A gain is at most twice the share of the true sum, up to the scatter of
    # the 1,024 coordinates of a stripe: five times sqrt(2 / 1024).
    share = np.square(size / np.asarray(fitted.observed_stddev))
    limit = 2 * share * (1 + 5 * np.sqrt(2 / 1024))
    self.assertTrue(np.all(fitted.gain <= limit))
    self.assertTrue(np.all(fitted.max_gain <= limit))
    self.assertTrue(np.all(fitted.gain <= fitted.max_gain))

  def test_small_clients_are_not_drowned(self):
    # Below a bin there is less rounding than n b^2 / 6, so that a sum can be
    # seen although there is no bound.
    bin_sizes = np.full(16, 20.0)
    bins = _sum_of_rounded(np.random.default_rng(1), 100, bin_sizes, 256)
    fitted = _fit(_versines(bins, 256), bin_sizes, 100, 256)
    self.assertBetween(float(fitted.sum_stddev), 0.9, 1.1)
    np.testing.assert_array_equal(fitted.gain, np.zeros(16))


class OrdinaryRoundTest(parameterized.TestCase):
  @parameterized.product(
    modulus=(16, 256, 2**16),
    num_clients=(1, 20),
    bins_per_stddev=(0.3, 2.0, 0.12),
    seed=(1, 2, 3),
  )
  def test_takes_the_rounding_noise_out(
    self, modulus, num_clients, bins_per_stddev, seed
  ):
    if bins_per_stddev == 0.12:
      bins_per_stddev *= modulus  # Rather near the blind limit.
    bin_sizes = np.full(16, 1 / bins_per_stddev)
    bins = _sum_of_rounded(
      np.random.default_rng(seed), num_clients, bin_sizes, modulus
    )
    fitted = _fit(_versines(bins, modulus), bin_sizes, num_clients, modulus)
    self.assertFalse(bool(fitted.is_blind))
    noise = num_clients * reference.stochastic_variance(
      bins_per_stddev / np.sqrt(num_clients)
    )
    observed = np.sqrt(bins_per_stddev**2 + noise)
    cosine = np.exp(-2 * (np.pi * observed / modulus) ** 2)
    # Of ln observed^2; the signal's share passes it on. For few values of a
    # residue the sample's kurtosis counts: sampled.
    sampled = 2 * np.sin(np.pi * bins / modulus) ** 2
    error = sampled.std() / np.sqrt(_DIM) / (-cosine * np.log(cosine))
    share = bins_per_stddev**2 / observed**2
    # Noise of a coarse bin grows with the signal, which makes it tell more.
    tolerance = stat_checks.Z * error / share / 2
    found = float(fitted.sum_stddev)
    self.assertLess(abs(np.log(found)), tolerance + 0.02)
    np.testing.assert_allclose(
      fitted.observed_stddev[0] / bin_sizes[0],
      observed,
      rtol=tolerance * share + 0.02,
    )
    # Negative control: noise left in is told apart where it is much.
    if share < 0.5 and tolerance < 0.2:
      self.assertGreater(np.log(observed / bins_per_stddev), tolerance)

  @parameterized.product(modulus=(2, 16, 1000), seed=(1, 2, 3))
  def test_uniform_residues_are_blind(self, modulus, seed):
    bins = np.random.default_rng(seed).integers(modulus, size=(_DIM // 16, 16))
    for bin_sizes in (np.ones(16), _LADDER):
      fitted = _fit(_versines(bins, modulus), bin_sizes, 10, modulus)
      self.assertTrue(bool(fitted.is_blind))
      self.assertFalse(bool(fitted.is_zero))
      self.assertEqual(float(fitted.sum_stddev), 0.0)
      np.testing.assert_array_equal(fitted.observed_stddev, np.zeros(16))

  @parameterized.product(
    value=(0.0, 1e-300, 2.0, 1.0), clients=(0.0, 1.0, 1e5), is_ladder=(0, 1)
  )
  def test_is_finite_for_every_input(self, value, clients, is_ladder):
    bin_sizes = _LADDER if is_ladder else np.full(16, 1e-30)
    versines = value * stripes.stripe_counts(_DIM)
    for decoded in (None, versines, np.full(16, 1.0 * _DIM)):
      for dim in (_DIM, 0):
        fitted = _fit(versines, bin_sizes, clients, 16, decoded, dim)
        for part in fitted:
          self.assertTrue(np.all(np.isfinite(part)))
        self.assertEqual(bool(fitted.is_zero), value == 0.0)


class LadderTest(parameterized.TestCase):
  @parameterized.product(
    modulus=(16, 256, 2**16), num_clients=(1, 10), seed=(1, 2, 3)
  )
  def test_reads_every_scale(self, modulus, num_clients, seed):
    rng = np.random.default_rng(seed)
    for scale in 10.0 ** rng.uniform(-9, 4, 4):
      bins = _sum_of_rounded(rng, num_clients, _LADDER / scale, modulus)
      fitted = _fit(_versines(bins, modulus), _LADDER, num_clients, modulus)
      self.assertFalse(bool(fitted.is_blind))
      ratio = float(fitted.sum_stddev) / scale
      # 1024 entries of one stripe; a finer one often says more.
      self.assertLess(abs(np.log(ratio)), 0.45 if modulus == 16 else 0.15)

  def test_a_sum_of_one_size_is_not_read_from_a_wrapped_stripe(self):
    # After one rotation a spike leaves entries of equal size, some stripe of
    # which returns to near 0 modulo k.
    modulus = 256
    rng = np.random.default_rng(1)
    for scale in 10.0 ** np.linspace(-4, 2, 25):
      values = rng.choice([-1.0, 1.0], (1024, 16)) * scale / _LADDER
      bins = np.floor(values + rng.random(values.shape))
      fitted = _fit(_versines(bins, modulus), _LADDER, 1, modulus)
      self.assertFalse(bool(fitted.is_blind))
      self.assertBetween(float(fitted.sum_stddev) / scale, 0.5, 1.6)


if __name__ == '__main__':
  absltest.main()

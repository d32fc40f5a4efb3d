# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests import stat_checks
from tff_autotune_secagg.numerics.reading import stripes
from tff_autotune_secagg.numerics.rounding import dither
from tff_autotune_secagg.numerics.rounding import quantization

_ONES = tf.ones([stripes.NUM_STRIPES])


def _seed(*numbers):
  return tf.constant(numbers, tf.int64)


def _float64(x):
  return tf.constant(x, tf.float64)


class ClientSeedTest(parameterized.TestCase):
  _LADDER = tf.constant(8.0 ** np.arange(stripes.NUM_STRIPES))

  def _seed_of(self, *leaves, bin_sizes=_LADDER, shared=(1, 2)):
    leaves = [tf.convert_to_tensor(leaf) for leaf in leaves]
    found = dither.client_seed(leaves, bin_sizes, _seed(*shared))
    self.assertEqual(found.dtype, tf.int64)
    return tuple(found.numpy().tolist())

  def test_ordinary_rounds_share_the_seed_of_the_round(self):
    for leaf in (1.0, [2.0, 3.0]):
      found = self._seed_of(leaf, bin_sizes=0.5 * _ONES)
      self.assertEqual(found, (1, 2))

  def test_calibrations_derive_a_seed_from_round_and_values(self):
    values = np.arange(5.0)
    # The least change there is, and other ways to differ.
    nearby = values.copy()
    nearby[3] = np.nextafter(nearby[3], 9)
    seeds = [
      self._seed_of(values),
      self._seed_of(values, shared=(1, 3)),
      self._seed_of(nearby),
      self._seed_of(values[::-1].copy()),
      self._seed_of(values, values),
      self._seed_of(values, nearby),
      self._seed_of(nearby, values),
    ]
    self.assertLen(set(seeds), len(seeds))
    self.assertNotIn((1, 2), seeds)
    self.assertEqual(self._seed_of(values), seeds[0])

  @parameterized.parameters(tf.float16, tf.bfloat16, tf.float32, tf.float64)
  def test_every_dtype_and_shape(self, dtype):
    found = {
      self._seed_of(tf.cast(tf.fill(shape, number), dtype))
      for shape in ([], [1, 3], [0])
      for number in (1.0, 2.0)
    }
    self.assertLen(found, 5)  # Two tensors without entries are equal.

  def test_only_ordinary_rounds_have_dither_to_subtract(self):
    n = tf.constant(7.0, tf.float64)
    for bins, expected in ((self._LADDER, 0.0), (_ONES, 7.0)):
      found = dither.num_sharing_clients(n, bins)
      self.assertEqual(float(found), expected)
      self.assertEqual(found.dtype, n.dtype)


class SubtractTest(parameterized.TestCase):
  def _subtract(self, residues, seed, num_clients, modulus, dtype):
    """The sum after the dither's subtraction, flat, in bins."""
    rows = stripes.to_stripes(tf.constant(residues, tf.int32))
    rows = tf.cast(quantization.centre(rows, modulus), dtype)
    clients = tf.constant(float(num_clients), tf.float64)
    bins = dither.subtract(rows, seed, clients, modulus)
    self.assertEqual(bins.dtype, dtype)
    return tf.reshape(bins, [-1]).numpy()

  @parameterized.product(
    num_clients=(1, 2, 7), modulus=(64, 1000), dtype=(tf.float32, tf.float64)
  )
  def test_dither_errs_by_a_twelfth_and_repeats(
    self, num_clients, modulus, dtype
  ):
    size = 2**14
    rng = np.random.default_rng(num_clients)
    values = rng.normal(0, 2.0, (num_clients, size)).astype(
      dtype.as_numpy_dtype
    )
    seed = _seed(8, 9)
    total = sum(
      quantization.encode(tf.constant(v), _ONES, seed, modulus=modulus).numpy()
      for v in values
    )

    def decode(decoding_seed):
      return self._subtract(
        total % modulus, decoding_seed, num_clients, modulus, dtype
      )

    errors = decode(seed) - values.sum(axis=0)
    expected = num_clients / 12
    # One uniform error has an excess kurtosis of -1.2; a sum has less.
    tolerance = stat_checks.Z * stat_checks.variance_error(expected, size)
    self.assertLess(abs(np.mean(errors**2) - expected), tolerance)
    mean_tolerance = stat_checks.Z * stat_checks.mean_error(
      np.sqrt(expected), size
    )
    self.assertLess(abs(np.mean(errors)), mean_tolerance)
    np.testing.assert_array_equal(decode(seed), decode(seed))
    # Negative control: another seed's offsets leave the dither in.
    wrong = decode(_seed(8, 10)) - values.sum(axis=0)
    self.assertGreater(np.mean(wrong**2) - expected, tolerance)

  def test_one_dithered_client_errs_uniformly_whatever_its_value(self):
    size = 2**14
    for value in (0.0, 0.25, 0.5, -3.9):
      seed = _seed(5, int(value * 100))
      residues = quantization.encode(
        tf.fill([size], value), _ONES, seed, modulus=256
      )
      errors = self._subtract(residues, seed, 1, 256, tf.float32) - value
      self.assertLessEqual(np.abs(errors).max(), 0.5 + 1e-5)
      counts, _ = np.histogram(errors, bins=32, range=(-0.50001, 0.50001))
      self.assertLess(
        stat_checks.chi_square_statistic(counts, size / 32),
        stat_checks.chi_square_tolerance(31),
      )

  @parameterized.parameters(2, 255, 256)
  def test_the_difference_is_centred_again(self, modulus):
    residues = np.arange(16 * modulus) % modulus
    for num_clients in (0, 1, 50):
      bins = self._subtract(
        residues, _seed(1, 2), num_clients, modulus, tf.float64
      )
      self.assertGreaterEqual(bins.min(), -modulus / 2)
      self.assertLess(bins.max(), modulus / 2)
      if not num_clients:
        np.testing.assert_array_equal(bins % modulus, residues)


class CoherentVarianceTest(parameterized.TestCase):
  @parameterized.product(
    num_alike=(0, 5, 10), modulus=(256, 1000), seed=(1, 2, 3)
  )
  def test_finds_what_clients_that_round_alike_add(
    self, num_alike, modulus, seed
  ):
    num_clients, size = 10, 2**14
    rng = np.random.default_rng(seed)
    dither_offset = rng.random(size)
    total = np.zeros(size)
    # Those alike hold constants, the others spread over several bins.
    for client in range(num_clients):
      z = 0.0 if client < num_alike else rng.normal(0, 3.0, size)
      total += np.floor(z + dither_offset)
    decoded = total - num_clients * (dither_offset - 0.5)

    def fitted(bins):
      cosine = np.mean(np.cos(2 * np.pi * bins / modulus))
      return np.sqrt(-2 * np.log(cosine)) * modulus / (2 * np.pi)

    found = dither.coherent_variance(
      _float64([fitted(total)]),
      _float64([fitted(decoded)]),
      _float64(float(num_clients)),
      modulus,
    )
    expected = (num_alike**2 + num_clients - num_alike) / 12
    # What is read is the variance of the offsets' sum, uniform, plus twice its
    # covariance with the sum; the result moves by the share of those alike.
    offsets = num_clients**2 / 12
    error = stat_checks.variance_error(offsets, size, -1.2)
    error += 2 * stat_checks.mean_error(np.std(total) * offsets**0.5, size)
    tolerance = stat_checks.Z * error * max(num_alike, 1) / num_clients
    self.assertLess(abs(float(found[0]) - expected), tolerance)
    self.assertGreaterEqual(float(found[0]), num_clients / 12 - 1e-9)
    if num_alike:
      # Negative control: independent errors are told apart.
      self.assertGreater(float(found[0]) - num_clients / 12, tolerance)


class ClientStddevTest(parameterized.TestCase):
  def _mean_versine(self, spread, num_clients, modulus, num_entries, rng):
    offsets = rng.random(num_entries)
    total = np.zeros(num_entries)
    for _ in range(num_clients):
      total += np.floor(rng.normal(0, spread, num_entries) + offsets)
    versines = 2 * np.sin(np.pi * total / modulus) ** 2
    return versines.mean(), versines.std() / np.sqrt(num_entries)

  @parameterized.product(
    case=((2, 16), (10, 64), (100, 256), (100, 100)), seed=(1, 2, 3)
  )
  def test_finds_the_spread_of_sampled_clients(self, case, seed):
    num_clients, modulus = case
    spreads = np.array([0.01, 0.1, 0.3])
    rng = np.random.default_rng(seed)
    versines = np.array(
      [self._mean_versine(s, num_clients, modulus, 10000, rng) for s in spreads]
    )
    # Spreads whose versines are 5 standard errors away hold the true one.
    steps = stat_checks.Z * np.array([[-1.0], [0.0], [1.0]])
    bounds = np.maximum(versines[:, 0] + steps * versines[:, 1], 0.0)
    invert = tf.function(dither.client_stddev_bins, autograph=False)
    low, found, high = np.reshape(
      invert(
        _float64(np.reshape(bounds, [-1])),
        _float64(float(num_clients)),
        modulus,
      ),
      [3, 3],
    )
    self.assertTrue(np.all((low < spreads) & (spreads < high)))
    self.assertTrue(np.all((low < found) & (found < high)))
    # Negative control: but for the rarest events the intervals are small.
    self.assertTrue(np.all(high[1:] < 3 * low[1:]))

  def test_ends(self):
    invert = tf.function(dither.client_stddev_bins, autograph=False)
    for n in (1.0, 1e3):
      for modulus in (2, 3, 2**30):
        found = invert(
          _float64([0.0, 1e-18, 1.0, 2.0]), _float64(n), modulus
        ).numpy()
        self.assertTrue(np.all(np.isfinite(found)))
        self.assertEqual(found[0], 0.0)
        self.assertTrue(np.all(np.diff(found) >= 0))


if __name__ == '__main__':
  absltest.main()

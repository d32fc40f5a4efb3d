# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests import reference
from tests import stat_checks
from tff_autotune_secagg.numerics import quantization

_STOCHASTIC = quantization.Rounding.STOCHASTIC
_DITHER = quantization.Rounding.DITHER
_ONES = tf.ones([quantization.NUM_STRIPES])


def _seed(*numbers):
  return tf.constant(numbers, tf.int64)


class StripesTest(parameterized.TestCase):
  @parameterized.parameters((), (1,), (15,), (16,), (17,), (3, 11), (2, 0))
  def test_stripes_and_back(self, *shape):
    x = tf.reshape(tf.range(float(np.prod(shape))), shape)
    rows = quantization.to_stripes(x)
    self.assertEqual(rows.shape[1], quantization.NUM_STRIPES)
    back = quantization.from_stripes(rows, x.shape)
    np.testing.assert_array_equal(back, x)

  @parameterized.parameters(0, 1, 16, 37, 1000)
  def test_counts_are_those_of_the_flat_index(self, size):
    expected = np.bincount(np.arange(size) % 16, minlength=16)
    np.testing.assert_array_equal(quantization.stripe_counts(size), expected)


class DitherSeedTest(parameterized.TestCase):
  _LADDER = tf.constant(8.0 ** np.arange(quantization.NUM_STRIPES))

  def _seed_of(self, *leaves, bin_sizes=_LADDER, shared=(1, 2)):
    leaves = [tf.convert_to_tensor(leaf) for leaf in leaves]
    found = quantization.dither_seed(leaves, bin_sizes, _seed(*shared))
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
      found = quantization.dithered_clients(n, bins)
      self.assertEqual(float(found), expected)
      self.assertEqual(found.dtype, n.dtype)


class EncodeTest(parameterized.TestCase):
  @parameterized.product(
    modulus=(2, 3, 10, 256, 10007, 2**30), dtype=(tf.float32, tf.float64)
  )
  def test_is_the_exact_rounding_of_every_entry(self, modulus, dtype):
    rng = np.random.default_rng(modulus)
    values = rng.normal(0, 1, 320) * 10.0 ** rng.uniform(-5, 6, 320)
    bin_sizes = 2.0 ** np.arange(-8, 8)  # A ladder; division is exact.
    values = tf.constant(values, dtype)
    seed = _seed(3, 4)
    found = quantization.encode(
      values, tf.constant(bin_sizes, tf.float32), seed, modulus=modulus
    ).numpy()
    offsets = quantization.uniform_offsets(320, seed, dtype).numpy()
    bins = values.numpy() / np.tile(bin_sizes, 20)
    for z, offset, residue in zip(bins, offsets, found):
      if abs(z) >= quantization.max_client_bins(modulus):
        self.assertBetween(residue, 0, modulus - 1)
        continue
      self.assertEqual(residue, reference.round_up_above(z, offset) % modulus)

  @parameterized.product(
    bins=(1e-4, -1e-4, 0.3, -7.75, 1000.3),
    modulus=(4, 1000, 2**30),
    seed=(1, 2, 3),
  )
  def test_is_unbiased(self, bins, modulus, seed):
    size = 2**18
    residues = quantization.encode(
      tf.fill([size], tf.constant(bins, tf.float64)),
      _ONES,
      _seed(seed, 0),
      modulus=modulus,
    )
    floor = np.floor(bins)
    up = np.mean(residues.numpy() == (int(floor) + 1) % modulus)
    fraction = bins - floor
    tolerance = stat_checks.Z * stat_checks.proportion_error(fraction, size)
    self.assertLess(abs(up - fraction), tolerance)
    # Negative control: rounding to the nearest is told apart.
    self.assertGreater(
      abs(np.rint(bins) - bins), 5 * tolerance if abs(bins) > 1 else 0
    )

  @parameterized.parameters(1, 2, 3)
  def test_clients_need_seeds_of_their_own(self, seed):
    # 20 clients at half a bin: variance 20 / 4, or 400 / 4 with a shared seed.
    size, clients = 2**14, 20
    half = tf.fill([size], 0.5)

    def variance(seeds):
      total = sum(
        quantization.encode(half, _ONES, s, modulus=2**10).numpy()
        for s in seeds
      )
      return np.var(total, ddof=1)

    own = variance([_seed(seed, client) for client in range(clients)])
    # The binomial's excess kurtosis is (1 - 6 / 4) / 5.
    tolerance = stat_checks.Z * stat_checks.variance_error(5.0, size, -0.1)
    self.assertLess(abs(own - 5.0), tolerance)
    self.assertGreater(variance([_seed(seed, 0)] * clients) - 5.0, tolerance)

  @parameterized.parameters(1, 2, 3)
  def test_what_is_too_large_becomes_a_uniform_residue(self, seed):
    size, modulus = 2**14, 16
    for value in (1e12, -1e30, np.inf, -np.inf, np.nan):
      residues = quantization.encode(
        tf.fill([size], tf.constant(value)),
        _ONES,
        _seed(seed, 1),
        modulus=modulus,
      ).numpy()
      counts = np.bincount(residues, minlength=modulus)
      self.assertLen(counts, modulus)
      statistic = stat_checks.chi_square_statistic(counts, size / modulus)
      self.assertLess(statistic, stat_checks.chi_square_tolerance(modulus - 1))
      # Negative control: a constant residue is told apart.
      counts = size * (np.arange(modulus) == 0)
      statistic = stat_checks.chi_square_statistic(counts, size / modulus)
      self.assertGreater(
        statistic, stat_checks.chi_square_tolerance(modulus - 1)
      )

  def test_empty_and_scalar(self):
    for shape in ((0,), (3, 0), ()):
      residues = quantization.encode(
        tf.zeros(shape), _ONES, _seed(1, 2), modulus=5
      )
      self.assertEqual(residues.shape, shape)
      self.assertEqual(residues.dtype, tf.int32)


class DecodeTest(parameterized.TestCase):
  @parameterized.parameters(2, 3, 4, 7, 256, 999, 2**30)
  def test_centre_is_the_nearest_to_zero(self, modulus):
    residues = np.unique(
      np.clip(
        np.r_[0:4, modulus // 2 - 2 : modulus // 2 + 3, modulus - 3 : modulus],
        0,
        modulus - 1,
      )
    )
    found = quantization.centre(tf.constant(residues, tf.int32), modulus)
    expected = [reference.centre(int(r), modulus) for r in residues]
    np.testing.assert_array_equal(found, expected)

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
      rows = quantization.centred_bins(
        tf.constant(total % modulus, tf.int32),
        decoding_seed,
        tf.constant(float(num_clients), tf.float64),
        modulus=modulus,
        rounding=_DITHER,
        dtype=dtype,
      )
      return quantization.from_stripes(rows, tf.TensorShape([size])).numpy()

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
      rows = quantization.centred_bins(
        residues,
        seed,
        tf.constant(1.0, tf.float64),
        modulus=256,
        rounding=_DITHER,
        dtype=tf.float32,
      )
      errors = tf.reshape(rows, [-1]).numpy() - value
      self.assertLessEqual(np.abs(errors).max(), 0.5 + 1e-5)
      counts, _ = np.histogram(errors, bins=32, range=(-0.50001, 0.50001))
      self.assertLess(
        stat_checks.chi_square_statistic(counts, size / 32),
        stat_checks.chi_square_tolerance(31),
      )

  def test_stochastic_decoding_ignores_seed_and_client_count(self):
    residues = tf.constant([0, 1, 127, 128, 255])
    found = [
      quantization.centred_bins(
        residues,
        _seed(s, 0),
        tf.constant(n, tf.float64),
        modulus=256,
        rounding=_STOCHASTIC,
        dtype=tf.float32,
      ).numpy()[0, :5]
      for s, n in ((1, 1.0), (2, 50.0))
    ]
    np.testing.assert_array_equal(found[0], [0, 1, 127, -128, -1])
    np.testing.assert_array_equal(found[0], found[1])


if __name__ == '__main__':
  absltest.main()

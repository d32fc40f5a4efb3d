# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import itertools
import math

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests import reference
from tests import stat_checks
from tff_autotune_secagg.numerics.reading import stripes
from tff_autotune_secagg.numerics.rounding import quantization

_ONES = tf.ones([stripes.NUM_STRIPES])
_NUM = 2**20


def _seed(*numbers):
  return tf.constant(numbers, tf.int64)


def _offsets(seed, num=_NUM, dtype=tf.float32):
  seed = np.array([seed, 3], np.int64)
  return quantization.uniform_offsets(num, seed, dtype).numpy()


def _encode_by_definition(values, offsets, modulus):
  """`encode` for bins of size 1, in Python ints; None where unreadable."""
  residues = []
  for value, offset in zip(values.tolist(), offsets.tolist()):
    if not abs(value) < quantization.max_client_bins(modulus):
      residues.append(None)
      continue
    floor = math.floor(value)
    residues.append((floor + (offset < value - floor)) % modulus)
  return residues


class ModulusTest(parameterized.TestCase):
  @parameterized.parameters(
    (2, 1, tf.int32),
    (3, 2, tf.int64),
    (256, 8, tf.int32),
    (257, 9, tf.int64),
    (2**30, 30, tf.int32),
  )
  def test_bits_of_a_residue_and_dtype_of_a_sum(self, modulus, bits, dtype):
    self.assertEqual(quantization.num_bits(modulus), bits)
    self.assertEqual(quantization.sum_dtype(modulus), dtype)
    is_power = quantization.is_power_of_two(modulus)
    self.assertEqual(is_power, modulus == 2**bits)


class OffsetsTest(parameterized.TestCase):
  @parameterized.product(seed=[1, 2, 3], dtype=[tf.float32, tf.float64])
  def test_offsets_are_uniform(self, seed, dtype):
    offsets = _offsets(seed, dtype=dtype)
    self.assertEqual(offsets.dtype, dtype.as_numpy_dtype)
    self.assertGreaterEqual(offsets.min(), 0.0)
    self.assertLess(offsets.max(), 1.0)
    limit = stat_checks.chi_square_tolerance(255)

    def statistic(values):
      counts = np.histogram(values, bins=256, range=(0, 1))[0]
      return stat_checks.chi_square_statistic(counts, len(values) / 256)

    # Also near 0, where values far below one bin are decided.
    self.assertLess(statistic(offsets), limit)
    small = offsets[offsets < 2**-6] * 2**6
    self.assertLess(statistic(small), limit)
    self.assertGreater(statistic(offsets**1.05), limit)  # Negative control.

  @parameterized.parameters(1, 2, 3)
  def test_offsets_of_one_word_are_uncorrelated(self, seed):
    quarters = np.reshape(_offsets(seed), [4, -1]).astype(np.float64)
    tolerance = stat_checks.z_for(6) * stat_checks.correlation_error(_NUM // 4)
    for one, two in itertools.combinations(quarters, 2):
      self.assertLess(abs(np.corrcoef(one, two)[0, 1]), tolerance)
      # Nor are the decisions of two equal values.
      decisions = np.corrcoef(one < 0.3, two < 0.3)[0, 1]
      self.assertLess(abs(decisions), tolerance)
    # Negative control: one word in 30 used twice.
    reused = np.where(np.arange(_NUM // 4) % 30 == 0, quarters[0], quarters[1])
    correlation = np.corrcoef(quarters[0], reused)[0, 1]
    self.assertGreater(correlation, tolerance)

  def test_pairs_fill_the_square_evenly(self):
    quarters = np.reshape(_offsets(4), [4, -1])
    limit = stat_checks.chi_square_tolerance(32 * 32 - 1)
    for one, two in itertools.combinations(quarters, 2):
      counts = np.histogram2d(one, two, bins=32, range=[[0, 1], [0, 1]])[0]
      statistic = stat_checks.chi_square_statistic(counts, one.size / 32**2)
      self.assertLess(statistic, limit)

  @parameterized.parameters(1, 2, 3, 4, 5, 1001)
  def test_any_number_can_be_drawn(self, num):
    self.assertEqual(_offsets(1, num).shape, (num,))


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


class FloatArithmeticTest(parameterized.TestCase):
  @parameterized.product(
    value=[1e-5, 0.01, 0.5, -0.3, 100.25, 2.0**20 + 0.375],
    modulus=[256, 1000, 2**30],
    seed=[1, 2, 3],
  )
  def test_is_unbiased(self, value, modulus, seed):
    residues = quantization.encode(
      tf.fill([_NUM], tf.constant(value)),
      _ONES,
      np.array([seed, 1], np.int64),
      modulus=modulus,
    )
    floor = math.floor(value)
    ups = (residues.numpy().astype(np.int64) - floor) % modulus
    self.assertLessEqual(ups.max(), 1)
    fraction = float(np.float32(value)) - floor
    error = stat_checks.proportion_error(fraction, _NUM)
    self.assertTrue(stat_checks.is_near(ups.mean(), fraction, error))

  @parameterized.product(
    modulus=[2, 3, 255, 256, 12_289, 10**6, 2**21 + 1, 10**9, 2**30],
    dtype=[np.float32, np.float64],
  )
  def test_equals_its_definition_at_every_scale(self, modulus, dtype):
    seed = np.array([5, 6], np.int64)
    rng = np.random.default_rng(7)
    # Up to 2^22 bins the whole tensor takes the fast way, beyond another one.
    for scale in (1e-3, 1.0, 30.0, modulus / 8, 2.0**22, 2.0**29, 1e12):
      values = (rng.normal(size=480) * scale).astype(dtype)
      residues = quantization.encode(
        tf.constant(values),
        _ONES,
        seed,
        modulus=modulus,
      ).numpy()
      offsets = quantization.uniform_offsets(
        values.size, seed, tf.as_dtype(dtype)
      ).numpy()
      expected = _encode_by_definition(values, offsets, modulus)
      for residue, wanted in zip(residues.tolist(), expected):
        self.assertBetween(residue, 0, modulus - 1)
        if wanted is not None:
          self.assertEqual(residue, wanted)

  def test_one_unreadable_entry_changes_no_other(self):
    seed = np.array([5, 6], np.int64)
    values = np.random.default_rng(8).normal(size=480).astype(np.float32)

    def encode():
      return quantization.encode(
        tf.constant(values), _ONES, seed, modulus=255
      ).numpy()

    plain = encode()
    for bad in (np.nan, np.inf, -1e30):
      values[17] = bad
      residues = encode()
      self.assertBetween(residues[17], 0, 254)
      residues[17] = plain[17]
      np.testing.assert_array_equal(residues, plain)

  @parameterized.parameters(3, 5, 255, 999, 65_535, 2**20 + 7, 2**21)
  def test_float_reduction_is_exact_over_its_whole_range(self, modulus):
    limit = 2**21
    integers = np.arange(-limit, limit + 1)
    reduced = quantization._reduce_whole(
      tf.constant(integers, tf.float32), modulus
    )
    np.testing.assert_array_equal(reduced, integers % modulus)


class CentreTest(parameterized.TestCase):
  @parameterized.parameters(2, 3, 4, 255, 256)
  def test_is_the_nearest_of_the_class_and_ties_are_negative(self, modulus):
    centred = quantization.centre(tf.range(modulus), modulus).numpy()
    np.testing.assert_array_equal(centred % modulus, np.arange(modulus))
    self.assertEqual(centred.min(), -(modulus // 2))
    self.assertEqual(centred.max(), (modulus - 1) // 2)

  @parameterized.parameters(2, 3, 4, 7, 256, 999, 2**30)
  def test_is_the_nearest_to_zero(self, modulus):
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


if __name__ == '__main__':
  absltest.main()

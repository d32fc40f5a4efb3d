# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `discrete_gaussian`."""

import collections
import decimal
import fractions

from absl.testing import absltest
from absl.testing import parameterized
import mpmath
import numpy as np
import tensorflow as tf

from tests import stat_checks
from tff_autotune_secagg.numerics.privacy import discrete_gaussian

_GRID = 4096
_ONE = 2**83
_FRACTIONS = (0, 1, 777, 2048, 4095)


def _ideal(fraction, stddev='1.4'):
  """Probabilities of the integers -40..40 around fraction / 4096, mpmath."""
  with mpmath.workdps(60):
    centre = mpmath.mpf(fraction) / _GRID
    variance = mpmath.mpf(stddev) ** 2
    weights = {
      j: mpmath.exp(-((j - centre) ** 2) / (2 * variance))
      for j in range(-40, 41)
    }
    total = mpmath.fsum(weights.values())
    return {j: weight / total for j, weight in weights.items()}


def _sample(grid_points, words, seed=(1, 2)):
  seed = tf.constant(seed, tf.int64)
  return discrete_gaussian.sample(
    tf.constant(grid_points, tf.int32), tf.constant(words, tf.int32), seed
  ).numpy()


def _draws(fraction, seed, num):
  seed = tf.constant([seed, 5], tf.int64)
  words = discrete_gaussian.random_words(num, seed)
  points = tf.fill([num], fraction)
  return discrete_gaussian.sample(points, words, seed).numpy()


class TableTest(parameterized.TestCase):
  def test_the_decimal_context_of_the_caller_changes_nothing(self):
    # One row is made of these two.
    exponents = [fractions.Fraction(n, 7) for n in (-400, 1)]
    expected = [discrete_gaussian._fixed_point_exp(x) for x in exponents]
    hostile = decimal.Context(
      prec=3,
      rounding=decimal.ROUND_UP,
      Emin=-2,
      Emax=2,
      clamp=1,
      traps=list(decimal.getcontext().traps),
    )
    with decimal.localcontext(hostile):
      found = [discrete_gaussian._fixed_point_exp(x) for x in exponents]
    self.assertEqual(found, expected)

  @parameterized.parameters(*_FRACTIONS)
  def test_probabilities_are_mpmaths(self, fraction):
    row = discrete_gaussian.probabilities()[fraction]
    self.assertEqual(sum(row), _ONE)
    found = {j: 0 for j in range(-40, 41)}
    for offset, weight in enumerate(row, discrete_gaussian.FIRST_OFFSET):
      found[offset] = weight

    def worst(stddev):
      with mpmath.workdps(60):
        ideal = _ideal(fraction, stddev)
        return max(abs(found[j] - ideal[j] * _ONE) for j in ideal)

    self.assertLess(worst('1.4'), 2)
    # Negative control: 20 digits of s are needed.
    self.assertGreater(worst('1.40000000000000000001'), 2)

  def test_rows_have_the_mean_and_variance_of_rounding_without_error(self):
    for fraction, row in enumerate(discrete_gaussian.probabilities()):
      offsets = range(discrete_gaussian.FIRST_OFFSET, 17)
      mean = fractions.Fraction(sum(map(int.__mul__, row, offsets)), _ONE)
      squares = sum(w * j * j for w, j in zip(row, offsets))
      variance = fractions.Fraction(squares, _ONE) - mean**2
      self.assertLess(abs(mean - fractions.Fraction(fraction, _GRID)), 1e-15)
      self.assertLess(abs(variance - fractions.Fraction(49, 25)), 1e-14)

  def test_columns_and_aliases_give_the_probabilities(self):
    """Every row, from the packed table, in Python integers."""
    table = discrete_gaussian.alias_table()
    self.assertEqual(table.entries.dtype, np.int32)
    self.assertEqual(table.low_bits.dtype, np.int64)
    entries = np.reshape(table.entries, [32, _GRID]).tolist()
    low_bits = np.reshape(table.low_bits, [32, _GRID]).tolist()
    for fraction, row in enumerate(discrete_gaussian.probabilities()):
      found = [0] * 32
      for column in range(32):
        entry = entries[column][fraction]
        low = low_bits[column][fraction]
        self.assertBetween(low, 0, 2**63 - 1)
        threshold = ((entry >> 17) + 2**14 << 63) + low
        found[column] += threshold
        found[entry >> 12 & 31] += 2**78 - threshold
      self.assertEqual(found, row)


class SampleTest(parameterized.TestCase):
  @parameterized.parameters(*_FRACTIONS)
  def test_all_words_give_every_integer_its_share(self, fraction):
    """All values of the 20 bits that decide: no statistics."""
    words = (np.arange(2**20, dtype=np.int64) << 12).astype(np.uint32)
    words = words.view(np.int32)
    points = np.full([2**20], fraction)
    # Ties, one a column, fall to either side by the seed.
    table = discrete_gaussian.alias_table()
    index = (words & (31 << 12)) | fraction
    tied = ((words ^ table.entries[index]).view(np.uint32) >> 17) == 0
    self.assertEqual(np.sum(tied), 32)
    drawn = _sample(points, words)
    certain = collections.Counter(drawn[~tied].tolist())
    ideal = _ideal(fraction)
    for integer, probability in ideal.items():
      share = probability * 2**20
      self.assertLessEqual(certain[integer], share + 1e-9)
      self.assertGreaterEqual(certain[integer] + 32, share)
    missing = [2**20 * p - certain[j] for j, p in ideal.items()]
    self.assertAlmostEqual(float(sum(missing)), 32, places=6)

  @parameterized.product(column=[3, 20, 31], fraction=[1, 2048])
  def test_ties_are_settled_by_63_more_bits(self, column, fraction):
    table = discrete_gaussian.alias_table()
    index = column * _GRID + fraction
    entry, low = table.entries[index], table.low_bits[index]
    word = (int(entry) & ~(2**17 - 1)) | column << 12
    num = 2**18
    drawn = _sample(np.full([num], fraction), np.full([num], word))
    share = np.mean(drawn == column + discrete_gaussian.FIRST_OFFSET)
    expected = float(low) / 2**63
    error = stat_checks.proportion_error(expected, num)
    self.assertTrue(stat_checks.is_near(share, expected, error))
    # Negative control.
    self.assertFalse(stat_checks.is_near(share, expected + 0.01, error))
    alias = (int(entry) >> 12 & 31) + discrete_gaussian.FIRST_OFFSET
    self.assertContainsSubset(
      set(drawn.tolist()), {alias, column + discrete_gaussian.FIRST_OFFSET}
    )

  @parameterized.product(fraction=_FRACTIONS, seed=[1, 2, 3])
  def test_draws_are_discrete_gaussian(self, fraction, seed):
    num = 2**18
    drawn = _draws(fraction, seed, num)

    def statistic(stddev):
      ideal = _ideal(fraction, stddev)
      inner = [j for j in ideal if ideal[j] * num > 10]
      counts = [np.sum(drawn == j) for j in inner]
      expected = [float(ideal[j]) * num for j in inner]
      counts.append(num - sum(counts))
      expected.append(num - sum(expected))
      tolerance = stat_checks.chi_square_tolerance(len(inner))
      return stat_checks.chi_square_statistic(counts, expected) / tolerance

    self.assertLess(statistic('1.4'), 1)
    self.assertGreater(statistic('1.43'), 1)  # Negative control.

  @parameterized.parameters(1, 2, 3)
  def test_mean_and_variance(self, seed):
    num = 2**20
    centres = np.random.default_rng(seed).integers(-(2**16), 2**16, num)
    seed = tf.constant([seed, 6], tf.int64)
    words = discrete_gaussian.random_words(num, seed)
    drawn = discrete_gaussian.sample(
      tf.constant(centres, tf.int32), words, seed
    )
    noise = drawn.numpy() - centres / _GRID
    self.assertTrue(
      stat_checks.is_near(noise.mean(), 0, stat_checks.mean_error(1.4, num))
    )
    error = stat_checks.variance_error(1.96, num)
    self.assertTrue(stat_checks.is_near(noise.var(), 1.96, error))
    correlation = np.corrcoef(noise[1:], noise[:-1])[0, 1]
    self.assertTrue(
      stat_checks.is_near(correlation, 0, stat_checks.correlation_error(num))
    )
    # Negative control: rounding on top adds 1/6.
    self.assertFalse(stat_checks.is_near(noise.var(), 1.96 + 1 / 6, error))

  def test_whole_bins_move_the_draw_and_nothing_else(self):
    seed = tf.constant([1, 2], tf.int64)
    words = discrete_gaussian.random_words(1000, seed)
    points = np.arange(1000) * 4
    expected = _sample(points, words)
    for shift in (-(2**19) + 31, -1, 1, 2**19 - 33):
      shifted = _sample(points + shift * _GRID, words)
      np.testing.assert_array_equal(shifted, expected + shift)

  def test_repeats_from_a_seed_in_a_graph_and_out_of_it(self):
    @tf.function
    def draw(seed):
      words = discrete_gaussian.random_words(2**17, seed)
      return discrete_gaussian.sample(tf.fill([2**17], 9), words, seed)

    first = draw(tf.constant([1, 5], tf.int64)).numpy()
    np.testing.assert_array_equal(draw(tf.constant([1, 5], tf.int64)), first)
    np.testing.assert_array_equal(_draws(9, 1, 2**17), first)
    other = draw(tf.constant([2, 5], tf.int64)).numpy()
    self.assertLess(np.mean(first == other), 0.3)

  @parameterized.parameters(0, 1, 5)
  def test_any_number_can_be_drawn(self, num):
    self.assertEqual(_draws(9, 1, num).shape, (num,))


class RoundToGridTest(parameterized.TestCase):
  @parameterized.product(seed=[1, 2, 3], dtype=[np.float32, np.float64])
  def test_is_unbiased(self, seed, dtype):
    num = 2**18
    words = discrete_gaussian.random_words(num, tf.constant([seed, 7]))
    for value in (0.01, -0.3, 5.75):
      rounded = discrete_gaussian.round_to_grid(
        tf.fill([num], dtype(value)), words
      ).numpy()
      self.assertEqual(rounded.dtype, dtype)
      self.assertContainsSubset(
        set(rounded.tolist()), {np.floor(value), np.floor(value) + 1}
      )
      share = value - np.floor(value)
      error = stat_checks.proportion_error(share, num)
      # The bias allowed by the docstring is a tenth of that.
      self.assertTrue(stat_checks.is_near(rounded.mean(), value, error))
      biased = rounded.mean() + 0.005 + 0.01 * (share > 0.1)
      self.assertFalse(stat_checks.is_near(biased, value, error))

  def test_keeps_whole_numbers_and_what_is_not_finite(self):
    words = discrete_gaussian.random_words(5, tf.constant([1, 2]))
    values = np.array([0, -3, np.nan, np.inf, -np.inf], np.float32)
    rounded = discrete_gaussian.round_to_grid(tf.constant(values), words)
    np.testing.assert_array_equal(rounded, values)

  def test_rounding_and_noise_use_different_bits(self):
    """Otherwise the noise would depend on what it hides."""
    words = discrete_gaussian.random_words(2**16, tf.constant([1, 2])).numpy()
    values = np.linspace(-1, 1, 2**16).astype(np.float32)
    points = np.arange(2**16)
    low = np.int32(_GRID - 1)
    for changed, is_noise in ((words ^ low, False), (words ^ ~low, True)):
      rounded = [
        discrete_gaussian.round_to_grid(values, tf.constant(w)).numpy()
        for w in (words, changed)
      ]
      drawn = [_sample(points, w) for w in (words, changed)]
      self.assertEqual(np.array_equal(*rounded), is_noise)
      self.assertEqual(np.array_equal(*drawn), not is_noise)


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests import stat_checks
from tff_autotune_secagg.numerics.privacy import distributed_noise
from tff_autotune_secagg.numerics.privacy import grid_clipping
from tff_autotune_secagg.numerics.rotation import block_sample

_SEED = np.array([11, 12], np.int64)
_DRAWS = 4000


def _block_sizes(num, dim):
  """Sizes that differ by one at most, the larger ones first."""
  return [len(block) for block in np.array_split(np.arange(dim), num)]


@tf.function
def _round_trips(vector, num, first_seed):
  """What comes back of a vector for each of `_DRAWS` seeds."""

  def one(number):
    seed = tf.stack([first_seed, number])
    taken = block_sample.take(vector, num, seed)
    return block_sample.put_back(taken, vector.shape[0], seed)

  numbers = tf.range(_DRAWS, dtype=tf.int64)
  return tf.map_fn(one, numbers, fn_output_signature=vector.dtype)


def _prefix_trips(vector, num):
  """As `_round_trips` with a sample that is the beginning, for a control."""
  back = np.zeros([_DRAWS, len(vector)])
  back[:, :num] = vector[:num] * len(vector) / num
  return back


def _is_unbiased(vectors, expected, sizes):
  """Whether the mean over the draws is the vector, in every coordinate."""
  spread = np.sqrt(np.repeat(np.array(sizes) - 1.0, sizes)) * np.abs(expected)
  errors = np.abs(vectors.mean(axis=0) - expected) * np.sqrt(len(vectors))
  return bool(
    np.all(errors <= stat_checks.z_for(len(expected)) * spread + 1e-9)
  )


class SizeTest(parameterized.TestCase):
  @parameterized.parameters(
    (1.0, 5000, 5000),
    (0.5, 4096, 2048),
    (0.3, 10_001, 3001),
    (1e-9, 10**6, 1024),
    (0.25, 1023, 1023),
    (0.25, 1024, 1024),
    (0.9999999, 2048, 2048),
  )
  def test_is_the_fraction_rounded_up_and_1024_at_least(
    self, fraction, dim, expected
  ):
    self.assertEqual(block_sample.size(fraction, dim), expected)


class DrawTest(parameterized.TestCase):
  @parameterized.parameters(
    (1, 1), (1, 7), (7, 7), (4, 22), (5, 9), (1000, 2**20 + 3), (1024, 1792)
  )
  def test_is_one_coordinate_of_each_block(self, num, dim):
    indices, sizes = block_sample.draw(num, dim, _SEED)
    self.assertSequenceEqual(list(sizes.numpy()), _block_sizes(num, dim))
    ends = np.cumsum(sizes)
    self.assertTrue(np.all(indices < ends))
    self.assertTrue(np.all(indices >= ends - sizes))

  def test_blocks_of_the_largest_vectors_do_not_overflow(self):
    dim = 2**31 - 1
    indices, sizes = block_sample.draw(1024, dim, _SEED)
    self.assertEqual(int(np.sum(sizes, dtype=np.int64)), dim)
    self.assertGreater(int(np.min(np.diff(indices))), 0)
    self.assertBetween(int(indices[-1]), dim - 2**21, dim - 1)

  @parameterized.parameters(1, 2, 3)
  def test_all_coordinates_of_a_block_are_equally_likely(self, seed):
    num, dim = 4, 22
    ones = tf.ones([dim], tf.float64)
    drawn = _round_trips(ones, num, tf.constant(seed, tf.int64)).numpy() > 0
    counts = drawn.sum(axis=0)
    for block in np.array_split(np.arange(dim), num):
      expected = np.full(len(block), _DRAWS / len(block))
      statistic = stat_checks.chi_square_statistic(counts[block], expected)
      self.assertLess(
        statistic, stat_checks.chi_square_tolerance(len(block) - 1)
      )
    # The blocks do not know of each other.
    first, second = drawn[:, 0], drawn[:, 6]
    correlation = np.corrcoef(first, second)[0, 1]
    error = stat_checks.correlation_error(_DRAWS)
    self.assertTrue(stat_checks.is_near(correlation, 0.0, error))

  def test_each_round_and_each_seed_has_its_own_draw(self):
    draws = [
      block_sample.draw(1024, 2**16, np.array(seed, np.int64))[0].numpy()
      for seed in ([1, 0], [2, 0], [1, 1], [1, 0])
    ]
    np.testing.assert_array_equal(draws[0], draws[3])
    for i, j in ((0, 1), (0, 2), (1, 2)):
      # One of 64 is the same by chance.
      share = np.mean(draws[i] == draws[j])
      error = stat_checks.proportion_error(1 / 64, 1024)
      self.assertTrue(stat_checks.is_near(share, 1 / 64, error))


class MeanTest(parameterized.TestCase):
  @parameterized.product(seed=[1, 2, 3], num_and_dim=[(8, 32), (7, 40)])
  def test_is_the_vector_and_the_error_is_what_is_left_out(
    self, seed, num_and_dim
  ):
    num, dim = num_and_dim
    vector = np.random.default_rng(seed).normal(size=dim)
    sizes = _block_sizes(num, dim)
    found = _round_trips(
      tf.constant(vector), num, tf.constant(seed, tf.int64)
    ).numpy()
    self.assertTrue(_is_unbiased(found, vector, sizes))
    energies = np.sum((found - vector) ** 2, axis=1)
    expected = np.sum(np.repeat(np.array(sizes) - 1.0, sizes) * vector**2)
    error = stat_checks.mean_error(np.std(energies), _DRAWS)
    self.assertTrue(stat_checks.is_near(np.mean(energies), expected, error))
    # Control: a sample that is always the same.
    self.assertFalse(_is_unbiased(_prefix_trips(vector, num), vector, sizes))

  @parameterized.parameters((8, 32), (7, 40), (30, 40), (40, 40))
  def test_length_and_noise_are_kept(self, num, dim):
    vector = np.random.default_rng(1).normal(size=dim)
    lengths, energies = [], []
    sizes = _block_sizes(num, dim)
    for index in range(dim):
      # Exact: the mean over all draws is that over a block's coordinates.
      block = np.searchsorted(np.cumsum(sizes), index, side='right')
      lengths.append(sizes[block] * vector[index] ** 2 / sizes[block])
    self.assertAlmostEqual(np.sum(lengths), np.sum(vector**2))
    back = block_sample.put_back(tf.ones([num], tf.float64), dim, _SEED)
    energies = np.sum(back.numpy() ** 2)
    self.assertAlmostEqual(energies, dim)

  @parameterized.parameters(np.float32, np.float64)
  def test_a_sample_of_all_is_the_vector(self, dtype):
    vector = np.random.default_rng(1).normal(size=1500).astype(dtype)
    taken = block_sample.take(tf.constant(vector), 1500, _SEED)
    self.assertEqual(taken.dtype, dtype)
    np.testing.assert_array_equal(taken, vector)
    back = block_sample.put_back(taken, 1500, _SEED)
    np.testing.assert_array_equal(back, vector)

  def test_taking_commutes_with_sums(self):
    vectors = np.random.default_rng(1).integers(-9, 9, size=[5, 100])
    vectors = vectors.astype(np.float64)
    taken = [block_sample.take(tf.constant(v), 25, _SEED) for v in vectors]
    of_sum = block_sample.take(tf.constant(vectors.sum(axis=0)), 25, _SEED)
    # Blocks of 4 coordinates: all products are whole numbers.
    np.testing.assert_array_equal(sum(taken), of_sum)


class ErrorToSignalTest(parameterized.TestCase):
  @parameterized.parameters((8, 32), (7, 40), (30, 40), (1024, 1792), (1, 9))
  def test_is_the_sum_over_blocks(self, num, dim):
    sizes = np.array(_block_sizes(num, dim))
    found = block_sample.error_to_signal(num, dim)
    self.assertAlmostEqual(found, np.sum(sizes * (sizes - 1.0)) / dim)
    self.assertGreaterEqual(found, dim / num - 1.0 - 1e-12)
    self.assertLessEqual(found, dim / num - 1.0 + num / (4.0 * dim) + 1e-12)

  def test_is_dim_over_num_less_one_for_equal_blocks(self):
    self.assertEqual(block_sample.error_to_signal(2**12, 2**16), 15.0)
    self.assertEqual(block_sample.error_to_signal(7, 7), 0.0)


class PrivacyTest(parameterized.TestCase):
  """Whoever knows the sample beforehand cannot send more than the limit."""

  def _squared_norms(self, vector, seed):
    """Exact, of the integer centres with the clip behind the sample, and not.

    The latter are those of a vector that was clipped before it was sampled.
    """
    num, dim = 1024, 8192
    limit = distributed_noise.max_squared_grid_norm(1.0, 100)
    indices, _ = block_sample.draw(num, dim, seed)
    chosen = np.zeros(dim)
    chosen[indices] = vector
    centres, _, _ = grid_clipping.clip_to_grid(
      block_sample.take(tf.constant(chosen), num, seed),
      tf.constant(1.0, tf.float64),
      seed,
      squared_grid_norm=limit,
    )
    before, _, _ = grid_clipping.clip_to_grid(
      tf.constant(chosen),
      tf.constant(1.0, tf.float64),
      seed,
      squared_grid_norm=limit,
    )
    unclipped = np.rint(
      block_sample.take(tf.cast(before, tf.float64), num, seed)
    )
    return (
      sum(int(x) ** 2 for x in centres.numpy()),
      sum(int(x) ** 2 for x in unclipped),
      limit,
    )

  @parameterized.parameters(1, 2, 3)
  def test_the_clip_holds_for_what_is_sent(self, seed):
    rng = np.random.default_rng(seed)
    for scale in (0.5, 1.0, 1e3, 1e30):
      vector = rng.normal(size=1024)
      vector *= scale / np.linalg.norm(vector)
      found, _, limit = self._squared_norms(vector, _SEED + seed)
      self.assertLessEqual(found, limit)
      self.assertGreater(found, 0.9 * limit)

  def test_control_a_clip_before_the_sample_would_not_do(self):
    vector = np.random.default_rng(1).normal(size=1024)
    vector /= np.linalg.norm(vector)
    _, unclipped, limit = self._squared_norms(vector, _SEED)
    # Blocks of 8 coordinates.
    self.assertBetween(unclipped, 7.0 * limit, 8.1 * limit)


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `grid_clipping`."""

import math

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests import stat_checks
from tff_autotune_secagg.numerics.privacy import discrete_gaussian
from tff_autotune_secagg.numerics.privacy import distributed_noise
from tff_autotune_secagg.numerics.privacy import grid_clipping

_DIM = 2**14
_LIMIT = distributed_noise.max_squared_grid_norm(1.0, 100)


def _clip(vector, clip_norm=1.0, seed=1, limit=_LIMIT):
  return grid_clipping.clip_to_grid(
    tf.constant(vector),
    tf.constant(clip_norm, tf.float32),
    tf.constant([seed, 8], tf.int64),
    squared_grid_norm=limit,
  )


def _direction(seed, dim=_DIM, dtype=np.float32):
  vector = np.random.default_rng(seed).normal(size=dim)
  return (vector / np.linalg.norm(vector)).astype(dtype)


def _squared_norm(points):
  """In Python integers."""
  return sum(p * p for p in points.numpy().tolist())


class NormTest(parameterized.TestCase):
  @parameterized.product(
    length=[0.999, 1.0, 1.00001, 3.0, 1e30],
    seed=[1, 2, 3],
    dtype=[np.float32, np.float64],
  )
  def test_norm_is_at_most_the_limit_and_near_it(self, length, seed, dtype):
    vector = _direction(seed, dtype=dtype) * dtype(length)
    points, words, _ = _clip(vector, seed=seed)
    self.assertEqual((points.dtype, words.dtype), (tf.int32, tf.int32))
    self.assertLessEqual(_squared_norm(points), _LIMIT)
    share = grid_clipping.attained_share(_LIMIT, _DIM)
    self.assertGreater(share, 0.999)
    attained = math.sqrt(_squared_norm(points) / _LIMIT)
    self.assertGreater(attained, min(length, share) - 1e-4)
    if length >= 1:  # Negative control: clipped in floats, and then rounded.
      exact = np.abs(vector.astype(np.float64)) / length
      rounded = np.ceil(exact * math.sqrt(_LIMIT))
      self.assertGreater(np.sum(rounded**2), _LIMIT)

  def test_one_long_entry_is_clipped_exactly(self):
    vector = np.zeros([_DIM], np.float32)
    vector[7] = -5.0
    points = _clip(vector)[0].numpy()
    share = grid_clipping.attained_share(_LIMIT, _DIM)
    self.assertAlmostEqual(points[7] / -math.sqrt(_LIMIT), share, places=4)
    self.assertEqual(np.count_nonzero(points), 1)

  @parameterized.parameters(1, 2, 3)
  def test_shorter_vectors_keep_their_size_and_direction(self, seed):
    vector = _direction(seed) * np.float32(0.05)
    points = _clip(vector, seed=seed)[0].numpy()
    wanted = vector.astype(np.float64) * math.sqrt(_LIMIT)
    self.assertLessEqual(np.abs(points - wanted).max(), 1.0)
    fraction = wanted - np.floor(wanted)
    error = math.sqrt(np.sum(fraction * (1 - fraction))) / _DIM
    bias = np.mean(points - wanted)
    self.assertTrue(stat_checks.is_near(bias, 0, error))
    truncated = np.mean(np.floor(wanted) - wanted)  # Negative control.
    self.assertFalse(stat_checks.is_near(truncated, 0, error))

  @parameterized.product(limit=[0, 1, 500, 5000], seed=[1, 2])
  def test_a_grid_too_coarse_for_the_coordinates_is_no_leak(self, limit, seed):
    points = _clip(_direction(seed) * np.float32(2), limit=limit, seed=seed)[0]
    self.assertLessEqual(_squared_norm(points), limit)
    if limit >= 500:
      self.assertGreater(_squared_norm(points), 0.6 * limit)

  def test_repeats_from_a_seed_in_a_graph(self):
    clip = tf.function(
      lambda vector, seed: grid_clipping.clip_to_grid(
        vector, tf.constant(1.0), seed, squared_grid_norm=_LIMIT
      )
    )
    seed = tf.constant([1, 8], tf.int64)
    for one, two in zip(clip(_direction(1), seed), _clip(_direction(1))):
      np.testing.assert_array_equal(one, two)


class SeedTest(absltest.TestCase):
  def _clipped(self, seed):
    return grid_clipping.clip_to_grid(
      tf.zeros([_DIM]),
      tf.constant(1.0),
      tf.constant(seed, tf.int64),
      squared_grid_norm=_LIMIT,
    )

  def _drawn(self, seed):
    return discrete_gaussian.sample(*self._clipped(seed)).numpy()

  def test_the_noise_keeps_all_bits_of_a_client_s_seed(self):
    """Folding in a number of 32 bits leaves 2^32 seeds, which can be tried."""
    # A pair of seeds that `stateless_fold_in` makes one, of 2^18 tried.
    pair = (
      [-8726406109544406999, -5130249353098949982],
      [-3057343256091870523, 3015248336217095184],
    )
    folded = [
      tf.random.experimental.stateless_fold_in(tf.constant(s), 0, alg='philox')
      for s in pair
    ]
    np.testing.assert_array_equal(*folded)  # Negative control.
    first, second = (self._drawn(seed) for seed in pair)
    correlation = np.corrcoef(first, second)[0, 1]
    error = stat_checks.correlation_error(_DIM)
    self.assertTrue(stat_checks.is_near(correlation, 0.0, error))

  def test_seeds_of_the_sampler_have_128_bits(self):
    found = [self._clipped([1, number])[2].numpy() for number in range(100)]
    self.assertEqual((found[0].dtype, found[0].shape), (np.int64, (2,)))
    found = np.stack(found).view(np.uint64)
    for bits in (np.bitwise_or.reduce(found), ~np.bitwise_and.reduce(found)):
      self.assertTrue(np.all(bits == 2**64 - 1))


class HostileValuesTest(parameterized.TestCase):
  @parameterized.parameters(
    0.0, -1.0, math.nan, math.inf, -math.inf, 1e-45, 1e-30, 1e30
  )
  def test_no_clip_norm_lets_a_vector_be_longer(self, clip_norm):
    for length in (0.0, 1e-30, 1.0, 1e30):
      vector = _direction(1) * np.float32(length)
      points = _clip(vector, clip_norm)[0]
      self.assertLessEqual(_squared_norm(points), _LIMIT)
      if not 0 < clip_norm < math.inf:
        self.assertEqual(_squared_norm(points), 0)

  @parameterized.parameters(math.nan, math.inf, -math.inf)
  def test_a_vector_that_is_not_finite_becomes_zero(self, value):
    vector = _direction(1)
    vector[5] = value
    self.assertEqual(_squared_norm(_clip(vector)[0]), 0)

  def test_noise_is_the_same_around_what_was_refused(self):
    vector = _direction(1)
    vector[5] = math.nan
    points, words, seed = _clip(vector)
    drawn = discrete_gaussian.sample(points, words, seed).numpy()
    error = stat_checks.variance_error(1.96, _DIM)
    self.assertTrue(stat_checks.is_near(drawn.var(), 1.96, error))


if __name__ == '__main__':
  absltest.main()

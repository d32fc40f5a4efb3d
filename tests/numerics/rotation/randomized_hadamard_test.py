# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import math

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests import stat_checks
from tff_autotune_secagg.numerics.rotation import hadamard
from tff_autotune_secagg.numerics.rotation import randomized_hadamard

_SEED = np.array([11, 12], np.int64)


def _relative_error(value, expected):
  return np.linalg.norm(value - expected) / np.linalg.norm(expected)


class SignsTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.product(
    dim=[1, 31, 32, 33, 1000, 4096], dtype=[np.float32, np.float64]
  )
  def test_flips_are_exact_and_self_inverse(self, dim, dtype):
    x = np.random.default_rng(dim).normal(size=dim).astype(dtype)
    flipped = randomized_hadamard.flip_signs(x, _SEED)
    self.assertEqual(flipped.dtype, dtype)
    self.assertAllEqual(np.abs(flipped), np.abs(x))
    self.assertAllEqual(randomized_hadamard.flip_signs(flipped, _SEED), x)

  def test_dtypes_share_the_signs(self):
    single = randomized_hadamard.flip_signs(np.ones(999, np.float32), _SEED)
    double = randomized_hadamard.flip_signs(np.ones(999, np.float64), _SEED)
    self.assertAllEqual(single, double)

  @parameterized.parameters(np.int32, np.int64)
  def test_accepts_seeds_of_both_integer_types(self, dtype):
    flipped = randomized_hadamard.flip_signs(
      np.ones(64, np.float32), np.array([1, 2], dtype)
    )
    self.assertAllEqual(np.abs(flipped), np.ones(64))

  @parameterized.parameters(1, 2, 3)
  def test_signs_are_fair_and_uncorrelated(self, seed):
    dim = 2**18
    seeds = np.array([[seed, 1], [seed, 2]], np.int64)
    one, two = (
      randomized_hadamard.flip_signs(np.ones(dim, np.float32), s).numpy()
      for s in seeds
    )
    tolerance = stat_checks.Z * stat_checks.mean_error(1.0, dim)
    self.assertLess(abs(one.mean()), tolerance)
    self.assertLess(abs(np.mean(one * two)), tolerance)
    # Neighbours, the bits of one word, and the same bit of neighbouring words.
    for lag in (1, 2, dim // 32, dim // 32 + 1, dim // 2):
      self.assertLess(abs(np.mean(one * np.roll(one, lag))), tolerance)
    # Negative control: signs that one entry in 50 forgets to flip.
    forgetful = np.where(np.arange(dim) % 50 == 0, 1.0, one)
    self.assertGreater(abs(forgetful.mean()), tolerance)

  @parameterized.parameters(4, 5, 6)
  def test_every_bit_of_a_word_is_fair(self, seed):
    num_words = 2**14
    seed = np.array([seed, 0], np.int64)
    signs = randomized_hadamard.flip_signs(
      np.ones(32 * num_words, np.float32), seed
    )
    means = np.reshape(signs, [32, num_words]).mean(axis=1)
    tolerance = stat_checks.z_for(32) * stat_checks.mean_error(1.0, num_words)
    self.assertLess(np.max(np.abs(means)), tolerance)


class RotationTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.product(
    dim=[1, 2, 5, 1000, 1024, 70_000], num_rotations=[1, 2, 3]
  )
  def test_inverse_after_rotation_is_the_identity(self, dim, num_rotations):
    x = np.random.default_rng(dim).normal(size=dim).astype(np.float32)
    y = randomized_hadamard.rotate(x, _SEED, num_rotations)
    self.assertEqual(y.shape, [hadamard.padded_dim(dim)])
    self.assertNear(np.linalg.norm(y) / np.linalg.norm(x), 1.0, 2e-6)
    back = randomized_hadamard.inverse_rotate(y, _SEED, dim, num_rotations)
    self.assertLess(_relative_error(back.numpy(), x), 2e-6)

  @parameterized.parameters(1, 2)
  def test_commutes_with_summation(self, num_rotations):
    x = np.random.default_rng(1).normal(size=[10, 3000])
    rotated = sum(
      randomized_hadamard.rotate(row, _SEED, num_rotations) for row in x
    )
    self.assertAllClose(
      rotated,
      randomized_hadamard.rotate(x.sum(axis=0), _SEED, num_rotations),
      atol=1e-12,
    )

  def test_same_in_a_graph_and_under_another_seed_different(self):
    x = np.random.default_rng(2).normal(size=1000).astype(np.float32)
    graph = tf.function(randomized_hadamard.rotate, autograph=False)
    self.assertAllClose(
      graph(x, tf.constant(_SEED)),
      randomized_hadamard.rotate(x, _SEED),
      atol=1e-6,
    )
    other = randomized_hadamard.rotate(x, _SEED + 1)
    self.assertNotAllClose(
      other, randomized_hadamard.rotate(x, _SEED), atol=1e-2
    )

  def test_streams_rotate_as_the_seed_that_they_are_of(self):
    x = np.random.default_rng(3).normal(size=1000).astype(np.float32)
    streams = randomized_hadamard.sign_streams(_SEED, 2)
    rotated = randomized_hadamard.rotate_by(x, streams)
    self.assertAllEqual(rotated, randomized_hadamard.rotate(x, _SEED, 2))
    back = randomized_hadamard.inverse_rotate_by(rotated, streams, 1000)
    self.assertAllEqual(
      back, randomized_hadamard.inverse_rotate(rotated, _SEED, 1000, 2)
    )
    other = randomized_hadamard.rotate_by(x, streams[::-1])
    self.assertNotAllClose(other, rotated, atol=1e-2)

  def test_repeats_use_different_signs(self):
    ones = np.ones(64, np.float32)
    once = randomized_hadamard.rotate(ones, _SEED)
    twice = hadamard.transform(randomized_hadamard.flip_signs(once, _SEED))
    self.assertNotAllClose(
      randomized_hadamard.rotate(ones, _SEED, 2), twice, atol=1e-3
    )

  @parameterized.parameters(1, 2, 3)
  def test_dense_input_becomes_normal(self, seed):
    # Skewed, with outliers: excess kurtosis in the thousands.
    rng = np.random.default_rng(seed)
    x = np.exp(2.0 * rng.normal(size=2**16)).astype(np.float32)
    z = randomized_hadamard.rotate(x, np.array([seed, 7], np.int64)).numpy()
    z = z.astype(np.float64) / np.sqrt(np.mean(z.astype(np.float64) ** 2))
    tolerance = stat_checks.Z * stat_checks.kurtosis_error(2**16)
    # The exact excess is -2 sum x^4 / (sum x^2)^2 over the random signs.
    energy = x.astype(np.float64) ** 2
    expected = -2.0 * np.sum(energy**2) / np.sum(energy) ** 2
    self.assertLess(abs(np.mean(z**4) - 3.0 - expected), tolerance + 0.05)

  @parameterized.parameters(1, 2, 3)
  def test_second_repeat_makes_a_sparse_vector_normal(self, seed):
    x = np.zeros(2**16, np.float32)
    x[[5, 50_000]] = 1.0
    seed = np.array([seed, 7], np.int64)

    def excess_kurtosis(num_rotations):
      z = (
        randomized_hadamard.rotate(x, seed, num_rotations)
        .numpy()
        .astype(np.float64)
      )
      return np.mean(z**4) / np.mean(z**2) ** 2 - 3.0

    tolerance = stat_checks.Z * stat_checks.kurtosis_error(2**16)
    self.assertLess(abs(excess_kurtosis(2)), tolerance)
    self.assertNear(excess_kurtosis(1), -1.0, 1e-3)  # -2 / j for j = 2.

  @parameterized.product(
    num_nonzero=[1, 2, 3, 16, 200, 4000], dim=[65_536, 69_802, 100_000]
  )
  def test_stripes_share_the_energy_of_a_run_of_neighbours(
    self, num_nonzero, dim
  ):
    x = np.zeros(dim, np.float32)
    x[:num_nonzero] = np.random.default_rng(num_nonzero).normal(
      size=num_nonzero
    )
    z = randomized_hadamard.rotate(x, _SEED).numpy()
    shares = np.mean(np.reshape(z, [-1, 16]) ** 2, axis=0) / np.mean(z**2)
    self.assertAllClose(shares, np.ones(16), atol=1e-3)

  @parameterized.parameters(1, 2, 3)
  def test_stripes_share_the_energy_of_scattered_values(self, seed):
    x = np.zeros(65_536, np.float32)
    rng = np.random.default_rng(seed)
    x[rng.choice(len(x), 300, replace=False)] = rng.normal(size=300)
    z = randomized_hadamard.rotate(x, np.array([seed, 0], np.int64)).numpy()
    shares = np.mean(np.reshape(z, [-1, 16]) ** 2, axis=0) / np.mean(z**2)
    # Pairs of values that fall on one class of the stripes' group give each
    # stripe the spread of a sum of about 300 squares.
    tolerance = stat_checks.z_for(16) * math.sqrt(2.0 / 300)
    self.assertLess(np.max(np.abs(shares - 1.0)), tolerance)

  def test_empty_input_is_rejected(self):
    with self.assertRaisesRegex(ValueError, '`dim` must be an int of at least'):
      randomized_hadamard.rotate(tf.zeros([0]), _SEED)

  def test_inverse_rejects_a_vector_of_another_size(self):
    with self.assertRaisesWithLiteralMatch(
      ValueError,
      '`y` must have `padded_dim(1000)` = 1008 entries, found 1024.',
    ):
      randomized_hadamard.inverse_rotate(tf.zeros([1024]), _SEED, 1000)


if __name__ == '__main__':
  absltest.main()

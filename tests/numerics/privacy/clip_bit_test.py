# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `clip_bit`."""

import math

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests import stat_checks
from tff_autotune_secagg.numerics.privacy import clip_bit
from tff_autotune_secagg.numerics.privacy import discrete_gaussian
from tff_autotune_secagg.numerics.privacy import distributed_noise
from tff_autotune_secagg.numerics.privacy import grid_clipping
from tff_autotune_secagg.numerics.rotation import (
  randomized_hadamard as rotation_lib,
)
from tff_autotune_secagg.numerics.rounding import quantization

_BUDGET = dict(noise_multiplier=1.0, count_stddev=5.0)


def _direction(dim, seed=1):
  vector = np.random.default_rng(seed).normal(size=dim)
  return (vector / np.linalg.norm(vector)).astype(np.float32)


class BudgetTest(parameterized.TestCase):
  def test_update_and_bit_share_the_budget(self):
    found = clip_bit.update_noise_multiplier(1.0, 5.0)
    self.assertAlmostEqual(found**-2 + 10.0**-2, 1.0)

  def test_bit_that_costs_all(self):
    with self.assertRaisesWithLiteralMatch(
      ValueError,
      '`count_stddev` must be above half of `noise_multiplier`, found 1 and 2.',
    ):
      clip_bit.update_noise_multiplier(2.0, 1.0)

  @parameterized.product(length=[0.5, 1.0, 3.0], clip_norm=[0.01, 20.0])
  def test_vector_with_its_bit_just_fits_the_joint_norm(
    self, length, clip_norm
  ):
    update = _direction(100) * np.float32(length * clip_norm)
    vector = clip_bit.append(update, tf.constant(clip_norm), **_BUDGET).numpy()
    self.assertEqual(vector.shape, (101,))
    self.assertEqual(vector.dtype, np.float32)
    joint = clip_bit.joint_clip_norm(clip_norm, **_BUDGET)
    norm = np.linalg.norm(vector.astype(np.float64))
    if length < 1.0:
      self.assertLess(norm, joint)
      np.testing.assert_array_equal(vector[:-1], update)
    else:
      self.assertAlmostEqual(norm / joint, 1.0, places=6)
    if length != 1.0:
      self.assertEqual(vector[-1] > 0, length < 1.0)

  @parameterized.product(
    clip_norm=[0.01, 20.0], length=[1e-30, 0.5, 1.0, 3.0], count_stddev=[2, 5]
  )
  def test_replacing_an_update_by_0_moves_by_the_joint_norm_at_most(
    self, clip_norm, length, count_stddev
  ):
    budget = dict(noise_multiplier=1.0, count_stddev=float(count_stddev))
    update = _direction(100) * np.float32(length * clip_norm)
    one, two = (
      clip_bit.append(u, tf.constant(clip_norm), **budget).numpy()
      for u in (update, 0.0 * update)
    )
    self.assertFalse(np.any(two))
    distance = np.linalg.norm(one.astype(np.float64) - two)
    joint = clip_bit.joint_clip_norm(clip_norm, **budget)
    self.assertLess(distance, joint * (1.0 + 1e-6))
    if length > 1.0:  # Negative control: a bit of its own for 0.
      two[-1] = -one[-1]
      distance = np.linalg.norm(one.astype(np.float64) - two)
      self.assertGreater(distance, joint * 1.01)

  def test_what_is_not_finite_stays_so(self):
    update = _direction(100)
    update[3] = math.nan
    vector = clip_bit.append(update, tf.constant(1.0), **_BUDGET).numpy()
    self.assertFalse(np.all(np.isfinite(vector)))


class RoundTest(parameterized.TestCase):
  """Bits of 100 clients, through rotation, noise and modulus."""

  _NUM = 100
  _DIM = 1023

  def _errors(self, *, rotates, seed, rounds, within):
    limit = distributed_noise.max_squared_grid_norm(1.0, self._NUM)
    joint = clip_bit.joint_clip_norm(0.5, **_BUDGET)
    size = distributed_noise.bin_size(joint, 1.0, self._NUM)
    rotation = tf.constant([seed, 1], tf.int64)

    def residues(update, noise_seed):
      vector = clip_bit.append(update, tf.constant(0.5), **_BUDGET)
      rotated = rotation_lib.rotate(vector, rotation) if rotates else vector
      points, words, noise_seed = grid_clipping.clip_to_grid(
        rotated, tf.constant(joint), noise_seed, squared_grid_norm=limit
      )
      drawn = discrete_gaussian.sample(points, words, noise_seed)
      return quantization.reduce_modulo(drawn, 128)

    @tf.function
    def sum_of_residues(updates, first_seed):
      total = tf.zeros([self._DIM + 1], tf.int32)
      for client in tf.range(self._NUM):
        noise_seed = tf.stack([seed, first_seed + client])
        total += residues(updates[client], noise_seed)
      return total

    lengths = np.where(np.arange(self._NUM) < within, 0.3, 0.9)
    updates = np.stack([_direction(self._DIM, i) for i in range(self._NUM)])
    updates = tf.constant(updates * lengths[:, np.newaxis], tf.float32)
    errors = []
    for number in range(rounds):
      total = sum_of_residues(updates, tf.constant(1000 * number))
      summed = quantization.reduce_modulo(total, 128)
      bins = tf.cast(quantization.centre(summed, 128), tf.float32)
      values = bins * size
      if rotates:
        values = rotation_lib.inverse_rotate(values, rotation, self._DIM + 1)
      share = clip_bit.share_within(
        values[-1], tf.constant(0.5), self._NUM, **_BUDGET
      )
      errors.append(float(share) - within / self._NUM)
    return np.array(errors)

  @parameterized.parameters(1, 2)
  def test_share_is_unbiased_with_the_stated_noise(self, seed):
    errors = self._errors(rotates=True, seed=seed, rounds=10, within=30)
    stddev = 5.0 / self._NUM
    error = stat_checks.mean_error(stddev, len(errors))
    self.assertTrue(stat_checks.is_near(errors.mean(), 0.0, error))
    spread = np.sum(errors**2) / stddev**2
    self.assertLess(spread, stat_checks.chi_square_tolerance(len(errors)))
    self.assertGreater(spread, 0.8)  # Of 10 degrees: probability 1e-4.

  def test_control_bits_that_are_not_rotated_wrap(self):
    errors = self._errors(rotates=False, seed=1, rounds=3, within=5)
    self.assertGreater(np.abs(errors).min(), 0.1)


class NextClipNormTest(parameterized.TestCase):
  @parameterized.parameters(1e-3, 1.0, 1e3)
  def test_finds_the_wanted_quantile(self, start):
    norms = np.exp(np.random.default_rng(1).normal(size=2001))
    noise = np.random.default_rng(2)
    clip_norm = tf.constant(start, tf.float32)
    for number in range(150):
      share = np.mean(norms <= clip_norm.numpy()) + noise.normal() * 0.05
      clip_norm = clip_bit.next_clip_norm(
        clip_norm, share, target_share=0.8, learning_rate=0.2
      )
      if number == 0 and start == 1e3:
        self.assertLess(clip_norm, start)
    self.assertEqual(clip_norm.dtype, tf.float32)
    self.assertBetween(np.mean(norms <= clip_norm.numpy()), 0.7, 0.9)

  def test_share_is_kept_within_its_range(self):
    for coordinate, expected in ((1e9, 1.0), (-1e9, 0.0), (0.0, 0.5)):
      share = clip_bit.share_within(
        tf.constant(coordinate), tf.constant(0.5), 100, **_BUDGET
      )
      self.assertEqual(float(share), expected)


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `distributed_noise`; its theorem by exact convolution."""

import fractions
import math

from absl.testing import absltest
from absl.testing import parameterized
import dp_accounting
import mpmath
import numpy as np
import tensorflow as tf

from tests import stat_checks
from tff_autotune_secagg.numerics.privacy import discrete_gaussian
from tff_autotune_secagg.numerics.privacy import distributed_noise
from tff_autotune_secagg.numerics.privacy import grid_clipping
from tff_autotune_secagg.numerics.rotation import hadamard
from tff_autotune_secagg.numerics.rotation import (
  randomized_hadamard as rotation_lib,
)
from tff_autotune_secagg.numerics.rounding import quantization

# Convolutions are of integers in units of 2**-_BITS.
_BITS = 200
_DIGITS = 60


def _draw(centre, stddev):
  """The lowest integer and the probabilities of one draw, as integers."""
  reach = 14 * math.ceil(stddev)
  low = math.floor(centre) - reach
  weights = [
    mpmath.exp(-((j - centre) ** 2) / (2 * stddev**2))
    for j in range(low, low + 2 * reach + 2)
  ]
  total = mpmath.fsum(weights)
  scale = mpmath.mpf(2) ** _BITS / total
  return low, np.array([int(weight * scale) for weight in weights], object)


def _sum_of_draws(centres, stddev):
  """{j: probability} of a sum of draws, by exact convolution."""
  low, found = _draw(centres[0], stddev)
  for centre in centres[1:]:
    first, row = _draw(centre, stddev)
    low += first
    found = np.array([v >> _BITS for v in np.convolve(found, row)], object)
  unit = mpmath.mpf(2) ** -_BITS
  return {j: int(v) * unit for j, v in enumerate(found, low)}


def _largest_log_ratio(centres, stddev):
  """max |ln P(S = j) / N(j; M, n s^2)| within 6 standard deviations."""
  mean, variance = mpmath.fsum(centres), len(centres) * stddev**2
  ratios = []
  for j, probability in _sum_of_draws(centres, stddev).items():
    if (j - mean) ** 2 < 36 * variance:
      density = mpmath.exp(-((j - mean) ** 2) / (2 * variance))
      density /= mpmath.sqrt(2 * mpmath.pi * variance)
      ratios.append(abs(mpmath.log(probability / density)))
  return max(ratios)


def _centres(num, seed):
  draws = np.random.default_rng(seed).uniform(-2, 2, num)
  return [mpmath.mpf(float(draw)) for draw in draws]


class TheoremTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.enter_context(mpmath.workdps(_DIGITS))

  @parameterized.product(num=[2, 5, 20], seed=[1, 2, 3])
  def test_sums_are_a_sampled_gaussian(self, num, seed):
    centres = _centres(num, seed)
    bound = distributed_noise.privacy_loss_per_coordinate(num) / 2
    self.assertLess(_largest_log_ratio(centres, mpmath.mpf('1.4')), bound)
    # Negative control: less noise for each.
    self.assertGreater(_largest_log_ratio(centres, mpmath.mpf('1.0')), bound)

  @parameterized.parameters(2, 5, 20)
  def test_bound_is_not_idle(self, num):
    """Whole centres, where all terms of the deviation add up."""
    centres = [mpmath.mpf(0)] * num
    bound = distributed_noise.privacy_loss_per_coordinate(num) / 2
    ratio = _largest_log_ratio(centres, mpmath.mpf('1.4'))
    self.assertBetween(ratio, bound / 3, bound)

  @parameterized.parameters(2, 3, 4, 5, 10, 100, 1000)
  def test_dual_lattice_is_bounded_by_its_shortest_vectors(self, num):
    """The sum over A*_{n-1} is an integral over a power of a theta function.

    Integrating exp(-a |x - t (1, .., 1)|^2), summed over the integer vectors x,
    over t in [0, 1) leaves that sum, times sqrt(pi / (a n)).
    """
    rate = 2 * mpmath.pi**2 * mpmath.mpf('1.4') ** 2

    def integrand(t):
      terms = [mpmath.exp(-rate * (m - t) ** 2) for m in range(-3, 5)]
      return mpmath.fsum(terms) ** num

    width = 1 / mpmath.sqrt(2 * rate * num)
    steps = [width * k for k in (0, 0.5, 1, 2, 3, 4, 6, 8, 11, 14, 18)]
    steps = [step for step in steps if step < 0.5] + [mpmath.mpf(1) / 2]
    integral = 2 * mpmath.quad(integrand, steps)
    exact = mpmath.sqrt(rate * num / mpmath.pi) * integral - 1
    shortest = 2 * num * mpmath.exp(-rate * (1 - mpmath.mpf(1) / num))
    self.assertLess(exact, 1.001 * shortest)
    self.assertGreater(exact, 0.49 * shortest)
    loss = distributed_noise.privacy_loss_per_coordinate(num)
    self.assertGreater(loss, 2 * exact)
    self.assertLess(loss, 5 * shortest)


class PrivacyTest(parameterized.TestCase):
  @parameterized.product(num=[2, 5, 20], shift=[0.3, 1.0, 2.7], order=[2, 8])
  def test_renyi_divergence_of_neighbours_is_below_the_gaussians(
    self, num, shift, order
  ):
    """One client's centre becomes 0, by exact convolution."""
    others = [float(centre) for centre in _centres(num - 1, num)]

    def divergence(stddev):
      stddev = mpmath.mpf(stddev)
      one = _sum_of_draws(others + [shift], stddev)
      two = _sum_of_draws(others + [0.0], stddev)
      divergences = []
      for p, q in ((one, two), (two, one)):
        moment = mpmath.fsum(
          p[j] ** order / q[j] ** (order - 1)
          for j in p
          if min(p[j], q.get(j, 0)) > 1e-50
        )
        divergences.append(float(mpmath.log(moment) / (order - 1)))
      return max(divergences)

    # The shift is a whole clip norm of noise multiplier z.
    multiplier = math.sqrt(num) * 1.4 / shift
    effective = distributed_noise.effective_noise_multiplier(multiplier, num)
    claimed = order / (2 * effective**2)
    with mpmath.workdps(_DIGITS):
      found = divergence('1.4')
      self.assertLess(found, claimed)
      # The slack is the share of one client: z itself would do for this.
      self.assertAlmostEqual(found / claimed, 1 - 1 / num, places=6)
      self.assertGreater(divergence('0.9'), claimed)  # Negative control.

  def test_accountant_takes_the_effective_multiplier(self):
    """`dp_accounting` gives its epsilon; a larger multiplier a smaller one."""

    def epsilon(multiplier):
      accountant = dp_accounting.pld.PLDAccountant()
      event = dp_accounting.GaussianDpEvent(multiplier)
      accountant.compose(dp_accounting.SelfComposedDpEvent(event, 10))
      return accountant.get_epsilon(1e-6)

    effective = distributed_noise.effective_noise_multiplier(3.0, 10)
    self.assertAlmostEqual(effective, 3.0 * math.sqrt(0.9))
    self.assertBetween(epsilon(effective), epsilon(3.0), epsilon(3.0) * 1.1)

  def test_additional_loss_is_small_and_falls_and_then_grows(self):
    losses = [
      distributed_noise.privacy_loss_per_coordinate(num)
      for num in (2, 10, 100, 10_000)
    ]
    np.testing.assert_allclose(losses, [3.2e-8, 4e-14, 1.6e-14, 1.3e-12], 0.3)

  def test_distance_of_drawn_from_ideal_noise_is_below_any_delta(self):
    distance = distributed_noise.sampling_distance(10_000, 2**24)
    self.assertLess(distance, 1e-12)
    self.assertEqual(
      distributed_noise.sampling_distance(2, 8), 2 * 8 * 32 * 2.0**-83
    )


class NumbersTest(parameterized.TestCase):
  @parameterized.product(multiplier=[0.3, 1.0, 2.5], num=[2, 100, 1000])
  def test_clip_norm_in_bins(self, multiplier, num):
    squared = distributed_noise.max_squared_grid_norm(multiplier, num)
    exact = fractions.Fraction(49 * num * 2**24, 25)
    exact /= fractions.Fraction(multiplier) ** 2
    self.assertBetween(exact - squared, 0, 1)
    size = distributed_noise.bin_size(7.0, multiplier, num)
    self.assertAlmostEqual(7.0 / size, math.sqrt(squared) / 4096, places=4)
    noise = size * 1.4 * math.sqrt(num)
    self.assertAlmostEqual(noise, multiplier * 7.0)
    self.assertAlmostEqual(
      float(distributed_noise.bin_size(tf.constant(7.0), multiplier, num)),
      size,
      places=5,
    )

  def test_multiplier_too_small_for_the_arithmetic(self):
    with self.assertRaisesWithLiteralMatch(
      ValueError,
      '`noise_multiplier` 0.0001 is too small for `min_clients` 100: a clipped'
      ' update would be 1.4e+05 bins long, more than the 16,384 that the'
      ' sampler takes. Raise `noise_multiplier`.',
    ):
      distributed_noise.max_squared_grid_norm(1e-4, 100)

  @parameterized.parameters((10, 36), (100, 112), (1000, 355), (10_000, 1120))
  def test_modulus_for_the_noise_alone(self, num, modulus):
    stddev = distributed_noise.sum_stddev_bins(
      num_clients=num, noise_multiplier=1.0, min_clients=num, dim=2**20
    )
    self.assertEqual(distributed_noise.smallest_modulus(stddev), modulus)

  def test_modulus_for_clients_that_agree(self):
    """2 r s sqrt(n) sqrt(1 + kappa^2 n^2 / (D z^2))."""
    stddev = distributed_noise.sum_stddev_bins(
      num_clients=10_000,
      noise_multiplier=0.5,
      min_clients=10_000,
      dim=2**20,
      alignment=0.3,
    )
    expected = 1.4 * 100 * math.sqrt(1 + 0.09 * 1e8 / (2**20 * 0.25))
    self.assertAlmostEqual(stddev, expected, places=3)
    self.assertEqual(
      distributed_noise.smallest_modulus(stddev, 3.0), math.ceil(6 * expected)
    )
    seen = distributed_noise.seen_alignment(
      tf.constant(stddev**2, tf.float64),
      tf.constant(10_000.0, tf.float64),
      squared_grid_norm=distributed_noise.max_squared_grid_norm(0.5, 10_000),
      dim=2**20,
    )
    self.assertAlmostEqual(float(seen), 0.3, places=6)

  def test_alignment_is_zero_below_the_noise(self):
    seen = distributed_noise.seen_alignment(
      tf.constant(190.0, tf.float64),
      tf.constant(100.0, tf.float64),
      squared_grid_norm=distributed_noise.max_squared_grid_norm(1.0, 100),
      dim=2**20,
    )
    self.assertEqual(float(seen), 0.0)


class RoundTest(parameterized.TestCase):
  """A round of plain tensors: rotate, clip, draw, sum modulo k, rotate back."""

  def _error(self, *, dim, num, modulus, multiplier, seed, shares=None):
    """Squared norm of the error over D z^2 c^2; `shares`: of the bin size."""
    clip_norm = 0.7
    shares = shares or num
    limit = distributed_noise.max_squared_grid_norm(multiplier, shares)
    rotation = tf.constant([seed, 1], tf.int64)

    @tf.function
    def residues(update, seed):
      rotated = rotation_lib.rotate(update, rotation)
      points, words, seed = grid_clipping.clip_to_grid(
        rotated, tf.constant(clip_norm), seed, squared_grid_norm=limit
      )
      drawn = discrete_gaussian.sample(points, words, seed)
      return quantization.reduce_modulo(drawn, modulus)

    generator = np.random.default_rng(seed)
    common = generator.normal(size=dim).astype(np.float32)
    common *= np.float32(clip_norm / np.linalg.norm(common))
    exact = np.zeros([dim], np.float64)
    total = np.zeros([hadamard.padded_dim(dim)], np.int64)
    for client in range(num):
      # Lengths 0 to 3 clip norms: some are clipped.
      length = 3.0 * client / num
      update = np.roll(common, 97 * client) * np.float32(length)
      exact += update / max(length, 1.0)
      total += residues(update, tf.constant([seed, 100 + client])).numpy()
    summed = quantization.reduce_modulo(tf.constant(total, tf.int32), modulus)
    bins = tf.cast(quantization.centre(summed, modulus), tf.float32)
    size = distributed_noise.bin_size(clip_norm, multiplier, shares)
    found = rotation_lib.inverse_rotate(bins * size, rotation, dim)
    return np.sum((found - exact) ** 2) / (dim * (multiplier * clip_norm) ** 2)

  @parameterized.parameters(1, 2)
  def test_error_is_that_of_the_central_gaussian(self, seed):
    dim = 2**20
    error = stat_checks.variance_error(1.0, dim)
    self.assertLess(5 * error, 0.01)
    found = self._error(dim=dim, num=20, modulus=72, multiplier=1.0, seed=seed)
    self.assertLess(abs(found - 1.0), 0.01)

  @parameterized.named_parameters(
    ('modulus_too_small', dict(modulus=32)),
    ('noise_of_more_clients_than_there_are', dict(shares=21, modulus=72)),
  )
  def test_control(self, changed):
    found = self._error(dim=2**18, num=20, multiplier=1.0, seed=1, **changed)
    self.assertGreater(abs(found - 1.0), 0.02)


if __name__ == '__main__':
  absltest.main()

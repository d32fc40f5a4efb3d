# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `noised_sum`."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
from scipy import stats
import tensorflow as tf

from tests import stat_checks
from tff_autotune_secagg.numerics.privacy import distributed_noise
from tff_autotune_secagg.numerics.privacy import noised_sum
from tff_autotune_secagg.numerics.rounding import quantization

_DIM = 2**16
_NUM_CLIENTS = 100
_VARIANCE = 1.96 * _NUM_CLIENTS
_LIMIT = distributed_noise.max_squared_grid_norm(1.0, _NUM_CLIENTS)


def _measured(stddev, seed, modulus=256, num_clients=_NUM_CLIENTS):
  normal = np.random.default_rng(seed).normal(size=_DIM) * stddev
  residues = np.rint(normal).astype(np.int32)
  bins = quantization.centre(
    quantization.reduce_modulo(tf.constant(residues), modulus), modulus
  )
  measured = noised_sum.measure(
    tf.cast(bins, tf.float32),
    tf.constant(num_clients),
    modulus=modulus,
    squared_grid_norm=_LIMIT,
  )
  return {name: value.numpy() for name, value in measured.items()}


class MeasureTest(parameterized.TestCase):
  @parameterized.parameters(1, 2, 3)
  def test_reads_signal_and_noise_off_their_sum(self, seed):
    signal = 0.1 * _VARIANCE
    stddev = (_VARIANCE + signal) ** 0.5
    found = _measured(stddev, seed, modulus=256)
    error = stat_checks.variance_error(stddev**2, _DIM) / signal
    self.assertTrue(
      stat_checks.is_near(1.0 / found['noise_to_signal'], 0.1, 0.1 * error)
    )
    clip_bins = _LIMIT / 4096.0**2
    alignment = np.sqrt(signal * _DIM / clip_bins) / _NUM_CLIENTS
    self.assertLess(alignment, 1.0)
    self.assertAlmostEqual(
      found['alignment'], alignment, delta=stat_checks.Z * error * alignment
    )
    self.assertBetween(found['smallest_modulus'], 8 * stddev * 0.98, 9 * stddev)

  @parameterized.parameters(40.0, 64.0, 90.0)
  def test_wrap_probability_is_that_of_the_normal(self, stddev):
    found = _measured(stddev, 1)['wrap_probability']
    expected = 2.0 * stats.norm.sf(128.0 / stddev)
    self.assertAlmostEqual(found / expected, 1.0, delta=0.1)

  @parameterized.parameters(1, 2, 3)
  def test_noise_alone_says_that_it_hides_the_sum(self, seed):
    found = _measured(_VARIANCE**0.5, seed)
    self.assertGreater(found['noise_to_signal'], (_DIM / 2.0) ** 0.5 / 6.0)
    self.assertLess(found['alignment'], 0.2)
    self.assertBetween(found['smallest_modulus'], 110, 115)

  @parameterized.parameters(1, 2, 3)
  def test_the_bound_of_the_alignment_holds_and_is_near(self, seed):
    signal = 0.1 * _VARIANCE
    clip_bins = _LIMIT / 4096.0**2
    alignment = np.sqrt(signal * _DIM / clip_bins) / _NUM_CLIENTS
    found = _measured((_VARIANCE + signal) ** 0.5, seed)
    self.assertFalse(found['signal_hidden'])
    self.assertGreater(found['alignment_bound'], found['alignment'])
    self.assertBetween(
      found['alignment_bound'], alignment * 0.99, alignment * 1.15
    )

  @parameterized.parameters(256, 50)
  def test_the_error_is_the_scatter_of_the_fit(self, modulus):
    """For the smaller modulus 1.5 times that of a normal's variance."""
    num = 150
    measured = [
      _measured((1.1 * _VARIANCE) ** 0.5, seed, modulus) for seed in range(num)
    ]
    squares, bounds = (
      np.array([float(found[name]) ** 2 for found in measured])
      for name in ('alignment', 'alignment_bound')
    )
    stated = np.mean(bounds - squares) / 2.0
    error = stat_checks.Z / np.sqrt(2 * (num - 1))
    self.assertAlmostEqual(np.std(squares, ddof=1) / stated, 1.0, delta=error)

  def test_a_signal_that_noise_makes_up_is_said_to_be_hidden(self):
    """Noise alone, 100 sums: 2.3 % are above two standard errors."""
    hidden = [
      _measured(_VARIANCE**0.5, seed)['signal_hidden'] for seed in range(100)
    ]
    self.assertGreater(np.mean(hidden), 0.977 - 5.0 * np.sqrt(0.023 / 100))

  @parameterized.parameters((44.4, True), (37.0, False))
  def test_a_modulus_that_takes_a_part_of_the_sum_is_too_small(
    self, stddev, is_too_small
  ):
    """What is left of a small sum, by adding it to the noise."""
    found = _measured(stddev, 1)
    self.assertEqual(found['modulus_too_small'], is_too_small)
    normal = np.random.default_rng(2).normal(size=10**6) * stddev
    signal = 2.0
    wrapped = np.mod(normal + signal + 128.0, 256.0) - 128.0
    wrapped -= np.mod(normal + 128.0, 256.0) - 128.0
    left = np.mean(wrapped) / signal
    self.assertEqual(left < 0.97, is_too_small, left)

  @parameterized.named_parameters(
    ('uniform', 1e5, _NUM_CLIENTS), ('zeros', 0.0, 1), ('wide', 100.0, 2**20)
  )
  def test_is_finite_for_any_sum(self, stddev, num_clients):
    found = _measured(stddev, 1, num_clients=num_clients)
    for name, value in found.items():
      self.assertTrue(np.isfinite(value), name)
    if stddev == 1e5:
      self.assertEqual(found['wrap_probability'], 1.0)
      self.assertGreater(found['smallest_modulus'], 256)
      self.assertAlmostEqual(
        found['noise_to_signal'] / (_DIM / 2.0) ** 0.5, 1.0, places=6
      )
      self.assertEqual(found['alignment'], 1.0)
      self.assertEqual(found['alignment_bound'], 1.0)
      self.assertTrue(found['signal_hidden'])
      self.assertTrue(found['modulus_too_small'])


if __name__ == '__main__':
  absltest.main()

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


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests import reference
from tests import stat_checks
from tff_autotune_secagg.numerics.rounding import dither
from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.rounding import quantization
from tff_autotune_secagg.numerics.rounding import rounding_noise

_DITHER = modes.Rounding.DITHER
_SPREADS = (1e-6, 1e-3, 0.05, 0.2, 0.249, 0.251, 0.4, 1.0, 3.0)


def _float64(x):
  return tf.constant(x, tf.float64)


class VarianceTest(parameterized.TestCase):
  def test_stochastic_variance_is_the_integral(self):
    expected = [reference.stochastic_variance(s) for s in _SPREADS]
    found = rounding_noise.stochastic_variance(_float64(_SPREADS)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    series = np.array(_SPREADS) > 0.25
    np.testing.assert_allclose(
      found[series], np.array(expected)[series], rtol=1e-7
    )

  def test_stochastic_variance_at_the_ends(self):
    found = rounding_noise.stochastic_variance(_float64([0.0, -1.0, 1e300]))
    np.testing.assert_allclose(found.numpy(), [0.0, 0.0, 1 / 6], atol=1e-15)

  @parameterized.parameters(0.2, 0.3, 0.5, 1.0)
  def test_dither_variance_is_that_of_the_errors(self, spread):
    _, _, variance, covariance = reference.shared_offset_moments(spread)
    for n in (1.0, 2.0, 50.0):
      found = rounding_noise.decoded_variance(
        _float64(spread), _float64(n), _DITHER
      ).numpy()
      expected = variance + (n - 1) * covariance
      np.testing.assert_allclose(found, expected, rtol=2e-4)

  def test_equal_clients_reach_the_stated_worst_case_under_dither(self):
    for n in (1.0, 2.0, 50.0):
      found = rounding_noise.decoded_variance(
        _float64(0.0), _float64(n), _DITHER
      )
      self.assertAlmostEqual(float(found), n / 12)

  def test_clients_half_a_bin_apart_add_no_coherent_dither(self):
    spread = _float64(dither.MIN_CLIENT_STDDEV_BINS)
    found = rounding_noise.decoded_variance(spread, _float64(1000.0), _DITHER)
    self.assertLess(abs(float(found) * 12 - 1), 0.05)
    less = rounding_noise.decoded_variance(
      spread / 2, _float64(1000.0), _DITHER
    )
    self.assertGreater(float(less) * 12, 10.0)


class SampledVarianceTest(parameterized.TestCase):
  @parameterized.product(seed=(1, 2, 3), spread=(0.02, 0.2, 1.0))
  def test_encoded_clients_have_the_variance(self, seed, spread):
    size = 2**16
    rng = np.random.default_rng(seed)
    values = rng.normal(0, spread, size)
    residues = quantization.encode(
      tf.constant(values),
      tf.ones([16]),
      tf.constant([seed, 5]),
      modulus=2**20,
    )
    errors = quantization.centre(residues, 2**20).numpy() - values
    fourth = np.mean(errors**4) / np.mean(errors**2) ** 2 - 3
    expected = reference.stochastic_variance(spread)
    tolerance = stat_checks.Z * stat_checks.variance_error(
      expected, size, fourth
    )
    found = float(rounding_noise.stochastic_variance(_float64(spread)))
    self.assertLess(abs(np.mean(errors**2) - found), tolerance)
    if spread == 0.2:  # Negative control: 1/6 is told from v(s).
      self.assertGreater(abs(np.mean(errors**2) - 1 / 6), 2 * tolerance)


class StddevWithoutRoundingTest(parameterized.TestCase):
  @parameterized.product(
    num_clients=(1.0, 10.0, 1000.0),
    signal=(1e-5, 1e-3, 0.1, 1.0, 1e3),
  )
  def test_inverts_the_sum_of_signal_and_rounding(self, num_clients, signal):
    noise = num_clients * reference.stochastic_variance(
      signal / np.sqrt(num_clients)
    )
    observed = np.sqrt(signal**2 + noise)
    found = rounding_noise.stddev_without_rounding(
      _float64(observed), _float64(num_clients)
    )
    # The approximation below a quarter of a bin is good to 1e-3.
    np.testing.assert_allclose(float(found), signal, rtol=3e-3)

  def test_ends(self):
    observed = _float64([0.0, 1e-40, 1e-12, 1e12])
    for n in (0.0, 1.0, 1e4):
      found = rounding_noise.stddev_without_rounding(
        observed, _float64(n)
      ).numpy()
      self.assertTrue(np.all(np.isfinite(found)))
      self.assertTrue(np.all(found <= observed.numpy()))
      self.assertEqual(found[0], 0.0)
      np.testing.assert_allclose(found[3], 1e12, rtol=1e-9)


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `readings`, on the versines that normal sums have on average."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tff_autotune_secagg.numerics.reading import readings
from tff_autotune_secagg.numerics.rounding import rounding_noise

_MODULUS = 256
_NUM = 1000.0  # Coordinates of each stripe.


def _float64(x):
  return tf.constant(x, tf.float64)


def _mean_versine(stddev_bins):
  """1 - the mean cosine of a normal's angle, its characteristic function."""
  angle = 2 * np.pi * np.asarray(stddev_bins) / _MODULUS
  return 1 - np.exp(-(angle**2) / 2)


def _read(stddev_bins, is_ladder=False):
  versines = _NUM * np.broadcast_to(_mean_versine(stddev_bins), [16])
  return readings.Stripes(
    _float64(versines),
    _float64(np.full([16], _NUM)),
    tf.constant(is_ladder),
    _MODULUS,
  )


class StripesTest(parameterized.TestCase):
  @parameterized.parameters(0.5, 10.0, 60.0, 90.0)
  def test_reads_the_standard_deviation(self, stddev):
    for is_ladder in (False, True):
      found = _read(stddev, is_ladder)
      is_trusted = not is_ladder or 1 - _mean_versine(stddev) > 0.3
      np.testing.assert_array_equal(found.is_readable, [is_trusted] * 16)
      if is_trusted:
        np.testing.assert_allclose(found.stddev_bins, stddev, rtol=1e-6)

  def test_a_ladder_reads_each_stripe_and_other_rounds_the_pool(self):
    stddevs = 0.5 * 1.35 ** np.arange(16)
    np.testing.assert_allclose(
      _read(stddevs, is_ladder=True).stddev_bins, stddevs, rtol=1e-6
    )
    pooled = _read(stddevs)
    np.testing.assert_allclose(
      pooled.cosine, 1 - np.mean(_mean_versine(stddevs))
    )
    self.assertLen(set(pooled.stddev_bins.numpy()), 1)

  def test_uniform_residues_and_none_are_not_read(self):
    self.assertFalse(np.any(_read(1e4).is_readable))
    nothing = readings.Stripes(
      tf.zeros([16], tf.float64), tf.zeros([16], tf.float64), True, _MODULUS
    )
    self.assertTrue(np.all(np.isfinite(nothing.stddev_bins)))


class StochasticTest(parameterized.TestCase):
  @parameterized.parameters(1.0, 30.0)
  def test_takes_the_rounding_out_again(self, num_clients):
    client = 5.0
    observed = np.sqrt(num_clients * (client**2 + 1 / 6))
    bin_sizes = np.geomspace(1e-6, 1e3, 16)
    found = readings.read_stochastic(
      _read(observed), _float64(bin_sizes), _float64(num_clients)
    )
    np.testing.assert_allclose(
      found.sum_stddev, bin_sizes * np.sqrt(num_clients) * client, rtol=1e-6
    )
    self.assertTrue(np.all(found.is_decodable))
    np.testing.assert_array_equal(found.min_variance_bins, np.zeros(16))


class DitherTest(parameterized.TestCase):
  def _read(self, raw, decoded, num_clients, is_ladder=False):
    return readings.read_dither(
      raw,
      decoded,
      _float64(np.full([16], 0.25)),
      _float64(num_clients),
      tf.constant(is_ladder),
      _MODULUS,
    )

  @parameterized.parameters(2.0, 5.0)
  def test_wide_clients_leave_white_noise_of_a_twelfth(self, client):
    num_clients = 10.0
    signal = num_clients * client**2
    # The raw sum holds the shared offset times the number of clients: uniform,
    # of the mean cosine sin(pi n / k) / (pi n / k).
    shared = -2 * np.log(np.sinc(num_clients / _MODULUS))
    shared *= (_MODULUS / (2 * np.pi)) ** 2
    raw = _read(np.sqrt(signal + num_clients / 12 + shared))
    decoded = _read(np.sqrt(signal + num_clients / 12))
    found = self._read(raw, decoded, num_clients)
    np.testing.assert_allclose(
      found.sum_stddev, 0.25 * np.sqrt(signal), rtol=1e-3
    )
    self.assertTrue(np.all(found.is_decodable))

  def test_a_wrapped_raw_sum_is_read_from_the_decoded_one(self):
    found = self._read(_read(1e4), _read(np.sqrt(250 + 10 / 12)), 10.0)
    self.assertTrue(np.all(found.is_readable))
    np.testing.assert_allclose(found.sum_stddev, 0.25 * np.sqrt(250), rtol=1e-3)
    np.testing.assert_allclose(found.min_variance_bins, 10 / 12)

  def test_a_calibration_is_read_as_offsets_of_each_client(self):
    raw = _read(20.0, is_ladder=True)
    found = self._read(raw, _read(20.0, is_ladder=True), 10.0, is_ladder=True)
    expected = rounding_noise.stddev_without_rounding(
      raw.stddev_bins, _float64(10.0)
    )
    np.testing.assert_allclose(found.sum_stddev, 0.25 * expected)
    # Equal clients have equal offsets there.
    self.assertFalse(np.any(found.is_decodable))


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests import fits
from tests import reference
from tff_autotune_secagg.numerics.reading import decoding


class PosteriorMeanTest(parameterized.TestCase):
  @parameterized.product(
    modulus=(16, 256), seed=(1, 2, 3), dtype=(tf.float32, tf.float64)
  )
  def test_is_the_shrunk_posterior_mean(self, modulus, seed, dtype):
    bin_size, sum_stddev, observed = 0.6, 1.0, 1.35
    rng = np.random.default_rng(seed)
    bins = np.rint(rng.normal(0, observed / bin_size, [1024, 16]))
    bins -= modulus * np.floor(bins / modulus + 0.5)
    found = decoding.posterior_mean(
      tf.constant(bins, dtype),
      tf.fill([16], tf.constant(bin_size, tf.float64)),
      fits.fitted(sum_stddev, observed),
      modulus=modulus,
    )
    self.assertEqual(found.dtype, dtype)
    gain = (sum_stddev / observed) ** 2
    period = modulus * bin_size
    stddev_periods = max(observed / period, 0.02)
    expected = reference.posterior_mean(bins / modulus, stddev_periods)
    expected *= gain * period
    inner = np.abs(bins) < modulus / 2 - 1
    np.testing.assert_allclose(
      found.numpy()[inner], expected[inner], atol=2e-3 * observed
    )

  def test_blind_and_doubtful_stripes_decode_to_zero(self):
    bins = tf.ones([4, 16], tf.float32)
    for fitted in (fits.fitted(0.0, 0.0, is_blind=True), fits.fitted(1.0, 8.0)):
      found = decoding.posterior_mean(
        bins, tf.ones([16], tf.float64), fitted, modulus=8
      )
      np.testing.assert_array_equal(found, np.zeros([4, 16]))

  def test_stripes_have_bin_sizes_of_their_own(self):
    # No stripe wraps; the gain is 1, so that all that is left is the bin size.
    bin_sizes = 2.0 ** -np.arange(16.0)
    found = decoding.posterior_mean(
      tf.ones([4, 16], tf.float64),
      tf.constant(bin_sizes),
      fits.fitted(1.0, 1.0),
      modulus=2**24,
    )
    np.testing.assert_allclose(found, np.tile(bin_sizes, [4, 1]), rtol=1e-6)


class CentredTest(absltest.TestCase):
  def test_is_the_bin_times_its_stripes_size(self):
    bins = np.arange(-32.0, 32.0).reshape([4, 16])
    bin_sizes = 2.0 ** -np.arange(16.0)
    for dtype in (tf.float32, tf.float64):
      found = decoding.centred(tf.constant(bins, dtype), tf.constant(bin_sizes))
      self.assertEqual(found.dtype, dtype)
      np.testing.assert_array_equal(found, bins * bin_sizes)


if __name__ == '__main__':
  absltest.main()

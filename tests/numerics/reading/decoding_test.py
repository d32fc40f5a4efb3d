# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests import fits
from tests import reference
from tests import stat_checks
from tff_autotune_secagg.numerics.reading import decoding
from tff_autotune_secagg.numerics.rounding import modes

_UNBIASED = modes.Decoding.UNBIASED
_POSTERIOR = modes.Decoding.POSTERIOR_MEAN
_CENTRED = modes.Decoding.CENTRED
_LADDER = 8.0 ** np.arange(-8.0, 8.0)


def _decoder(
  fitted, bin_sizes, modulus, mode=_UNBIASED, centres_lost_rounds=False
):
  return decoding.Decoder(
    fitted,
    tf.constant(np.broadcast_to(bin_sizes, [16]), tf.float64),
    modulus=modulus,
    decoding=mode,
    centres_lost_rounds=centres_lost_rounds,
  )


def _decode(bins, *args, **kwargs):
  return _decoder(*args, **kwargs).decode(tf.constant(bins)).numpy()


class MeanTest(parameterized.TestCase):
  @parameterized.product(
    modulus=(16, 256),
    seed=(1, 2, 3),
    dtype=(np.float32, np.float64),
    mode=(_UNBIASED, _POSTERIOR),
  )
  def test_is_a_multiple_of_the_mean_of_what_was_sent(
    self, modulus, seed, dtype, mode
  ):
    bin_size, sum_stddev, observed = 0.6, 1.0, 1.35
    rng = np.random.default_rng(seed)
    bins = np.rint(rng.normal(0, observed / bin_size, [1024, 16]))
    bins -= modulus * np.floor(bins / modulus + 0.5)
    found = _decode(
      bins.astype(dtype),
      fits.fitted(sum_stddev, observed),
      bin_size,
      modulus,
      mode,
    )
    self.assertEqual(found.dtype, dtype)
    share = (sum_stddev / observed) ** 2
    period = modulus * bin_size
    stddev_periods = max(observed / period, 0.02)
    expected = reference.posterior_mean(bins / modulus, stddev_periods)
    wrap = 0.0
    if modulus == 16:
      wrap = reference.wrapped_error(period / 2 / observed, False)
    expected *= reference.decoding_gain(wrap, share, mode.value) * period
    inner = np.abs(bins) < modulus / 2 - 1
    np.testing.assert_allclose(
      found[inner], expected[inner], atol=2e-3 * observed
    )

  @parameterized.parameters(_UNBIASED, _POSTERIOR)
  def test_blind_and_doubtful_stripes_decode_to_zero(self, mode):
    bins = np.ones([4, 16], np.float32)
    for fitted in (
      fits.fitted(0.0, 0.0, is_blind=True),
      fits.fitted(1.0, 8.0),
      fits.fitted(1.0, 2.0, gain=0.0),
    ):
      decoder = _decoder(fitted, 1.0, 8, mode)
      np.testing.assert_array_equal(decoder.decode(bins), np.zeros([4, 16]))
      # Of 8 standard deviations in a period of 8 next to nothing is told.
      np.testing.assert_allclose(decoder.nmse, 1.0, atol=1e-3)

  @parameterized.parameters(_UNBIASED, _POSTERIOR)
  def test_stripes_have_bin_sizes_of_their_own(self, mode):
    # No stripe wraps; the gain is 1, so that all that is left is the bin size.
    bin_sizes = 2.0 ** -np.arange(16.0)
    found = _decode(
      np.ones([4, 16]), fits.fitted(1.0, 1.0), bin_sizes, 2**24, mode
    )
    np.testing.assert_allclose(found, np.tile(bin_sizes, [4, 1]), rtol=1e-6)

  def test_stripes_have_gains_of_their_own(self):
    gains = np.linspace(0.0, 0.75, 16)
    fitted = fits.fitted(1.0, 2.0, gain=gains)
    found = _decode(np.ones([2, 16]), fitted, 1.0, 2**24, _POSTERIOR)
    np.testing.assert_allclose(found, np.tile(gains, [2, 1]), rtol=1e-6)
    # Unbiased, but for where twice the gain is less than 1.
    found = _decode(np.ones([2, 16]), fitted, 1.0, 2**24, _UNBIASED)
    expected = np.minimum(2 * gains, 1.0)
    np.testing.assert_allclose(found, np.tile(expected, [2, 1]), rtol=1e-6)


# Half a period in observed standard deviations, and the share of noise.
_ROUNDS = dict(
  few_bits=(2.6, 0.2), noisy=(3.0, 0.4), wrapped=(2.2, 0.02), fine=(4.0, 0.01)
)


def _received(rng, half_period, noise_share, num):
  """A true sum of variance 1, and what is left of it modulo a period of 64."""
  total = rng.standard_normal([num // 16, 16])
  noise = np.sqrt(noise_share / (1 - noise_share))
  received = total + noise * rng.standard_normal(total.shape)
  observed = 1 / np.sqrt(1 - noise_share)
  bin_size = 2 * half_period * observed / 64
  bins = received / bin_size
  bins -= 64 * np.floor(bins / 64 + 0.5)
  return total, bins, bin_size, observed


class ShareTest(parameterized.TestCase):
  """How much of the true sum comes through, and the error that is promised."""

  def _share(self, mode, total, bins, bin_size, fitted):
    """The share, its standard error and errors relative to the sum."""
    decoder = _decoder(fitted, bin_size, 64, mode)
    found = decoder.decode(tf.constant(bins)).numpy()
    parts = found * total / np.mean(total**2)
    errors = (found - total) ** 2 / np.mean(total**2)
    # Given the sum: what is left is the scatter of the result around its share.
    rest = np.std(parts - np.mean(parts) * total**2 / np.mean(total**2))
    error = stat_checks.mean_error(rest, total.size)
    return np.mean(parts), error, errors, float(decoder.nmse)

  @parameterized.product(case=tuple(_ROUNDS), seed=(1, 2, 3))
  def test_all_of_the_sum_comes_through(self, case, seed):
    half_period, noise_share = _ROUNDS[case]
    total, bins, bin_size, observed = _received(
      np.random.default_rng(seed), half_period, noise_share, 2**18
    )
    fitted = fits.fitted(1.0, observed)
    share, error, errors, nmse = self._share(
      _UNBIASED, total, bins, bin_size, fitted
    )
    self.assertTrue(stat_checks.is_near(share, 1.0, error), (share, error))
    tolerance = stat_checks.mean_error(np.std(errors), errors.size)
    # A is interpolated to 0.6 %.
    self.assertLess(
      abs(np.mean(errors) - nmse), stat_checks.Z * tolerance + 0.006 * nmse
    )
    # Negative control: the posterior mean is shorter by about its error, ...
    share, error, errors, nmse = self._share(
      _POSTERIOR, total, bins, bin_size, fitted
    )
    wrap = reference.wrapped_error(half_period, False)
    expected = (1 - noise_share) * (1 - wrap)
    self.assertTrue(stat_checks.is_near(share, expected, error))
    if case != 'fine':
      self.assertLess(share, 1 - 10 * error)
    # ... which is the least of both.
    tolerance = stat_checks.mean_error(np.std(errors), errors.size)
    self.assertLess(
      abs(np.mean(errors) - nmse), stat_checks.Z * tolerance + 0.006 * nmse
    )

  @parameterized.product(noise_share=(0.6, 0.8, 0.95), seed=(1, 2, 3))
  def test_where_noise_prevails_the_error_is_that_of_a_dropped_round(
    self, noise_share, seed
  ):
    total, bins, bin_size, observed = _received(
      np.random.default_rng(seed), 3.0, noise_share, 2**18
    )
    share, error, errors, nmse = self._share(
      _UNBIASED, total, bins, bin_size, fits.fitted(1.0, observed)
    )
    wrap = reference.wrapped_error(3.0, False)
    expected = 2 * (1 - noise_share) * (1 - wrap)
    self.assertTrue(stat_checks.is_near(share, expected, error))
    self.assertLess(share, 1 - 10 * error)
    tolerance = stat_checks.Z * stat_checks.mean_error(
      np.std(errors), errors.size
    )
    self.assertLess(np.mean(errors), 1.0 + tolerance)
    np.testing.assert_allclose(nmse, 1.0, rtol=1e-6)
    # Negative control: the gain that would let all through.
    free = fits.fitted(1.0, observed, max_gain=1e3)
    _, _, errors, _ = self._share(_UNBIASED, total, bins, bin_size, free)
    self.assertGreater(np.mean(errors), 1.3)


class CentredTest(parameterized.TestCase):
  @parameterized.parameters(np.float32, np.float64)
  def test_is_the_bin_times_its_size(self, dtype):
    bins = np.arange(-32.0, 32.0).reshape([4, 16])
    found = _decode(
      bins.astype(dtype), fits.fitted(1.0, 1.2), 0.25, 64, _CENTRED
    )
    self.assertEqual(found.dtype, dtype)
    np.testing.assert_array_equal(found, bins * 0.25)

  def test_expects_the_error_of_the_papers_decoding(self):
    for observed in (1.01, 1.1):
      found = _decoder(fits.fitted(1.0, observed), 0.15, 64, _CENTRED).nmse
      expected, _ = reference.decoded_error(
        4.8 / observed, 1 - observed**-2, 1.0, is_centred=True
      )
      np.testing.assert_allclose(found, expected, rtol=6e-3)

  def test_lost_rounds_are_decoded_as_unbiased_ones(self):
    bins = np.arange(-32.0, 32.0).reshape([4, 16])
    blind = fits.fitted(0.0, 0.0, is_blind=True)
    drowned = fits.fitted(0.0, 2.0)
    ladder = fits.fitted(1.0, np.sqrt(1 + _LADDER**2))
    for fitted, bin_sizes in ((blind, 1.0), (drowned, 1.0), (ladder, _LADDER)):
      centred, unbiased = (
        _decoder(fitted, bin_sizes, 64, mode) for mode in (_CENTRED, _UNBIASED)
      )
      np.testing.assert_array_equal(centred.decode(bins), unbiased.decode(bins))
      self.assertEqual(float(centred.nmse), float(unbiased.nmse))
      self.assertLessEqual(float(centred.nmse), 1.0)
      # But for a tuner that says otherwise.
      found = _decode(
        bins, fitted, bin_sizes, 64, _CENTRED, centres_lost_rounds=True
      )
      np.testing.assert_array_equal(found, bins * bin_sizes)

  def test_of_a_blind_round_nothing_is_expected(self):
    blind = fits.fitted(0.0, 0.0, is_blind=True)
    for centres in (False, True):
      decoder = _decoder(blind, 1.0, 64, _CENTRED, centres)
      self.assertEqual(float(decoder.nmse), 1.0)


if __name__ == '__main__':
  absltest.main()

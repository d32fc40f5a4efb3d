# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests import reference
from tests import stat_checks
from tff_autotune_secagg.numerics.reading import decoding_error
from tff_autotune_secagg.numerics.rounding import modes

_UNBIASED = modes.Decoding.UNBIASED
_POSTERIOR = modes.Decoding.POSTERIOR_MEAN
_CENTRED = modes.Decoding.CENTRED

_HALF_PERIODS = (0.525, 1.0, 2.0, 3.33, 5.0)
_NOISE_SHARES = (1e-6, 0.03, 0.3, 0.6, 0.95)


def _float64(x):
  return tf.constant(x, tf.float64)


def _wrap(half_period):
  return decoding_error.wrap_error(_float64(half_period), _UNBIASED)


class WrapErrorTest(parameterized.TestCase):
  @parameterized.product(
    half_period=(0.3, 0.525, 1.0, 2.0, 3.33, 5.0, 8.01),
    decoding=(_POSTERIOR, _CENTRED),
  )
  def test_is_the_error_of_a_unit_normal(self, half_period, decoding):
    expected = reference.wrapped_error(half_period, decoding is _CENTRED)
    found = float(decoding_error.wrap_error(_float64(half_period), decoding))
    # Interpolated in ln, in steps of 0.05 of r.
    np.testing.assert_allclose(found, expected, rtol=6e-3)

  def test_stays_in_range_beyond_its_table(self):
    for decoding in modes.Decoding:
      found = decoding_error.wrap_error(
        _float64([0.0, 1e-9, 50.0, 1e9, np.inf]), decoding
      )
      self.assertTrue(np.all(np.isfinite(found.numpy())))
      self.assertTrue(np.all(found.numpy()[2:] < 1e-20))
    found = decoding_error.wrap_error(_float64([0.0, 0.2, 0.7]), _POSTERIOR)
    self.assertTrue(np.all(found.numpy() <= 1 + 1e-9))


class ErrorOfGainTest(parameterized.TestCase):
  @parameterized.product(half_period=_HALF_PERIODS, noise_share=_NOISE_SHARES)
  def test_is_that_of_a_multiple_of_the_mean(self, half_period, noise_share):
    signal = 1 - noise_share
    for gain in (0.0, 0.3 * signal, signal, 1.2 * signal, 2 * signal):
      expected, _ = reference.decoded_error(half_period, noise_share, gain)
      found = decoding_error.error_of_gain(
        _float64(gain), _float64(noise_share), _wrap(half_period)
      )
      # A is interpolated; what it takes from the error is of its own size.
      wrap = reference.wrapped_error(half_period, False)
      np.testing.assert_allclose(found, expected, rtol=1e-9, atol=0.012 * wrap)

  @parameterized.product(seed=(1, 2, 3), num_cancelling=(0, 20))
  def test_holds_for_clients_that_round(self, seed, num_cancelling):
    # The sum of all errors is normal enough; each is neither normal nor
    # independent of what was rounded. Clients that cancel leave noise alone.
    rng = np.random.default_rng(seed)
    num, clients, period = 2**16, 16, 5.0
    bin_size = period / 32
    rows = rng.standard_normal((clients, num)) / np.sqrt(clients)
    total = rows.sum(0)
    for _ in range(num_cancelling // 2):
      row = rng.standard_normal(num) / np.sqrt(clients)
      rows = np.concatenate([rows, [row, -row]])
    rounded = bin_size * np.floor(rows / bin_size + rng.random(rows.shape))
    received = rounded.sum(0)
    observed = np.sqrt(np.mean(received**2))
    wrapped = received - period * np.round(received / period)
    mean = reference.posterior_mean(wrapped / period, observed / period)
    mean *= period
    signal = np.mean(total**2) / observed**2
    wrap = _wrap(period / 2 / observed)
    errors = {}
    for gain in (signal, 1.5 * signal):
      errors[gain] = (gain * mean - total) ** 2 / np.mean(total**2)
      found = decoding_error.error_of_gain(
        _float64(gain), _float64(1 - signal), wrap
      )
      tolerance = stat_checks.Z * stat_checks.mean_error(
        np.std(errors[gain]), num
      )
      self.assertLess(abs(np.mean(errors[gain]) - float(found)), tolerance)
    # Negative control: half as much more gain is told apart.
    self.assertGreater(np.mean(errors[gain]) - np.mean(errors[signal]), 0.1)

  def test_without_signal_is_that_of_a_dropped_round(self):
    found = decoding_error.error_of_gain(
      _float64([0.0, 0.0]), _float64([1.0, 0.5]), _float64(0.1)
    )
    np.testing.assert_array_equal(found, [1.0, 1.0])


class UnbiasedGainTest(parameterized.TestCase):
  @parameterized.product(half_period=_HALF_PERIODS, noise_share=_NOISE_SHARES)
  def test_lets_all_of_the_sum_through_where_it_may(
    self, half_period, noise_share
  ):
    wrap = reference.wrapped_error(half_period, False)
    most = 2 * (1 - noise_share)
    gain = float(
      decoding_error.unbiased_gain(_wrap(half_period), _float64(most))
    )
    error, share = reference.decoded_error(half_period, noise_share, gain)
    if most > 1 / (1 - wrap):
      # A is known to 0.6 %, and 1 / (1 - A) to A / (1 - A) of that.
      np.testing.assert_allclose(share, 1.0, rtol=1e-9 + 0.006 * wrap * gain)
      # Negative control: what the posterior mean lets through.
      _, least = reference.decoded_error(
        half_period, noise_share, 1 - noise_share
      )
      np.testing.assert_allclose(least, (1 - noise_share) * (1 - wrap))
    else:
      np.testing.assert_allclose(gain, most, rtol=1e-12)
    self.assertLess(error, 1 + 1e-6)

  def test_a_gain_above_its_limit_errs_by_more_than_a_dropped_round(self):
    for noise_share in _NOISE_SHARES:
      error, _ = reference.decoded_error(2.0, noise_share, 2 - 2 * noise_share)
      np.testing.assert_allclose(error, 1.0, rtol=1e-6)
      error, _ = reference.decoded_error(
        2.0, noise_share, 2.1 * (1 - noise_share)
      )
      self.assertGreater(error, 1.0)

  def test_is_finite_where_nothing_is_left_of_the_mean(self):
    found = decoding_error.unbiased_gain(_float64([1.0, 1.0]), _float64([0, 2]))
    np.testing.assert_array_equal(found, [0.0, 2.0])


class NmseTest(parameterized.TestCase):
  @parameterized.product(
    half_period=_HALF_PERIODS,
    noise_share=_NOISE_SHARES,
    decoding=(_UNBIASED, _POSTERIOR),
  )
  def test_is_that_of_a_round(self, half_period, noise_share, decoding):
    wrap = reference.wrapped_error(half_period, False)
    gain = reference.decoding_gain(wrap, 1 - noise_share, decoding.value)
    expected, _ = reference.decoded_error(half_period, noise_share, gain)
    found = decoding_error.nmse(
      _float64(half_period), _float64(noise_share), decoding
    )
    np.testing.assert_allclose(found, expected, rtol=0.012)
    self.assertLessEqual(float(found), 1.0 + 1e-12)

  @parameterized.product(half_period=_HALF_PERIODS, noise_share=_NOISE_SHARES)
  def test_of_centred_decoding_is_at_most_a_little_too_large(
    self, half_period, noise_share
  ):
    expected, _ = reference.decoded_error(
      half_period, noise_share, 1.0, is_centred=True
    )
    found = float(
      decoding_error.nmse(
        _float64(half_period), _float64(noise_share), _CENTRED
      )
    )
    # What wraps has more noise than the rest, which wrapping takes away again:
    # f (1 + B - E w^2) / (1 - f), with w what is left of u, is not counted.
    wrap = reference.wrapped_error(half_period, is_centred=True)
    uncounted = noise_share / (1 - noise_share) * min(1 + wrap, 2 * wrap)
    self.assertGreater(found, 0.993 * expected)
    self.assertLess(found, 1.007 * (expected + uncounted))

  @parameterized.parameters(_UNBIASED, _POSTERIOR)
  def test_gains_rest_on_the_most_noise_there_can_be(self, decoding):
    noise_share = 0.3
    wrap = reference.wrapped_error(2.0, False)
    for most in (0.3, 0.6, 0.9, 1.0, 1.7):
      sure = max(1.0 - most, 0.0)
      gain = reference.decoding_gain(wrap, sure, decoding.value)
      expected, _ = reference.decoded_error(2.0, noise_share, gain)
      found = decoding_error.nmse(
        _float64(2.0), _float64(noise_share), decoding, _float64(most)
      )
      np.testing.assert_allclose(found, expected, rtol=2e-3)
      self.assertLessEqual(float(found), 1.0 + 1e-12)

  @parameterized.parameters(_UNBIASED, _POSTERIOR)
  def test_small_errors_keep_their_digits(self, decoding):
    # Of 24 bits. From 29 bits on the last place of a float64 shows.
    found = decoding_error.nmse(_float64(12.0), _float64(3e-13), decoding)
    np.testing.assert_allclose(found, 3e-13, rtol=1e-3)


if __name__ == '__main__':
  absltest.main()

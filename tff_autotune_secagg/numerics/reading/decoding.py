# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""From centred bins of the sum back to values.

Let z be a coordinate of the true sum, S^2 its variance, u the same with the
clients' rounding, sigma_o^2 its variance, W the period and::

    m(u) = E[u | u mod W]                        for a normal u
    A    = E var(u | u mod W) / sigma_o^2        see decoding_error

As rounding is unbiased, E z m(u) = (1 - A) S^2 for any clients, and E m(u)^2 is
(1 - A) sigma_o^2. So decoding to h m(u) lets h (1 - A) of the true sum through,
with the error::

    NMSE = 1 - (1 - A) (2 h - h^2 sigma_o^2 / S^2).

The posterior mean has h = S^2 / sigma_o^2. It has the least error, and shrinks
the sum by about that error. The unbiased decoding has h = 1 / (1 - A), but
never more than twice S^2 / sigma_o^2, from where on the error exceeds that of a
dropped round.

S^2 itself is not known. Both gains use bounds of it that hold for any clients,
`gain` and `max_gain` of the fit, see `signal_bound`.
"""

import tensorflow as tf

from tff_autotune_secagg.numerics.reading import decoding_error
from tff_autotune_secagg.numerics.reading import fitting
from tff_autotune_secagg.numerics.reading import stripes
from tff_autotune_secagg.numerics.reading import wrapped_normal
from tff_autotune_secagg.numerics.rounding import modes


class Decoder:
  """How a round is decoded, and what error to expect of that."""

  def __init__(
    self,
    fitted: fitting.WrappedNormalFit,
    bin_sizes: tf.Tensor,
    *,
    modulus: int,
    decoding: modes.Decoding,
    centres_lost_rounds: bool,
  ):
    """Initializes the decoder.

    Args:
      fitted: the fit of the round.
      bin_sizes: float64 [NUM_STRIPES], those of the round.
      modulus: Python int.
      decoding: what the user chose.
      centres_lost_rounds: whether `Decoding.CENTRED` holds for a calibration
        and for a round of which nothing is known. If not, they are decoded as
        with `Decoding.UNBIASED`.
    """
    self._bin_sizes = bin_sizes
    self._modulus = modulus
    self._is_centred = decoding is modes.Decoding.CENTRED
    is_known = fitted.sum_stddev > 0.0
    self._is_lost = tf.logical_or(
      stripes.is_ladder(bin_sizes), tf.logical_not(is_known)
    )
    if centres_lost_rounds:
      self._is_lost = tf.zeros_like(self._is_lost)
    observed = tf.maximum(fitted.observed_stddev, 1e-300)
    half_periods = modulus * bin_sizes / 2.0 / observed
    wrap = decoding_error.wrap_error(half_periods, modes.Decoding.UNBIASED)
    self._gain = fitted.gain
    if decoding is not modes.Decoding.POSTERIOR_MEAN:
      self._gain = decoding_error.unbiased_gain(wrap, fitted.max_gain)
    self._periods = fitted.observed_stddev / (modulus * bin_sizes)
    errors = decoding_error.error_of_gain(self._gain, 1.0 - fitted.gain, wrap)
    if self._is_centred:
      noise_share = 1.0 - tf.square(fitted.sum_stddev / observed)
      centred = decoding_error.nmse(half_periods, noise_share, decoding)
      errors = tf.where(self._is_lost, errors, centred)
    self._errors = tf.where(is_known, errors, tf.ones_like(errors))

  @property
  def nmse(self) -> tf.Tensor:
    """The expected error, mean of the stripes; float64 scalar.

    1 where nothing is known of the sum.
    """
    return tf.reduce_mean(self._errors)

  def decode(self, bins: tf.Tensor) -> tf.Tensor:
    """Returns the values of centred bins.

    Args:
      bins: float32 or float64 tensor [rows, NUM_STRIPES], in
        [-modulus / 2, modulus / 2].

    Returns:
      Tensor like `bins`. All zeros if the fit is blind and the round is not
      centred.
    """
    if not self._is_centred:
      return self._scaled_mean(bins)
    return tf.cond(
      self._is_lost,
      lambda: self._scaled_mean(bins),
      lambda: bins * tf.cast(self._bin_sizes, bins.dtype),
    )

  def _scaled_mean(self, bins):
    """Returns h E[u | u mod W]."""
    wide, repeats = stripes.widen(bins)
    mean = wrapped_normal.posterior_mean_periods(
      wide / self._modulus, tf.tile(self._periods, [repeats])
    )
    scale = tf.cast(self._gain * self._modulus * self._bin_sizes, bins.dtype)
    return tf.reshape(mean * tf.tile(scale, [repeats]), bins.shape)

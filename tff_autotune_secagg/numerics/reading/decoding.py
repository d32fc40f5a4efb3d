# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""From centred bins of the sum back to values."""

import tensorflow as tf

from tff_autotune_secagg.numerics.reading import fitting
from tff_autotune_secagg.numerics.reading import stripes
from tff_autotune_secagg.numerics.reading import wrapped_normal


def posterior_mean(
  bins: tf.Tensor,
  bin_sizes: tf.Tensor,
  fitted: fitting.WrappedNormalFit,
  *,
  modulus: int,
) -> tf.Tensor:
  """Decodes centred bins to their posterior mean in units of the values.

  With u the sum with rounding noise, of standard deviation `observed_stddev`,
  the result is (sum_stddev / observed_stddev)^2 E[u | u mod k b] (design: the
  minimum mean square error estimate if both are normal).

  Args:
    bins: float32 or float64 tensor [rows, NUM_STRIPES], in
      [-modulus / 2, modulus / 2].
    bin_sizes: float64 [NUM_STRIPES].
    fitted: the fit of the same round.
    modulus: Python int.

  Returns:
    Tensor like `bins`; all zeros if the fit is blind.
  """
  periods = fitted.observed_stddev / (modulus * bin_sizes)
  observed = tf.maximum(fitted.observed_stddev, 1e-300)
  gain = tf.square(fitted.sum_stddev / observed)
  wide, repeats = stripes.widen(bins)
  mean = wrapped_normal.posterior_mean_periods(
    wide / modulus, tf.tile(periods, [repeats])
  )
  scale = tf.cast(gain * modulus * bin_sizes, bins.dtype)
  return tf.reshape(mean * tf.tile(scale, [repeats]), bins.shape)


def centred(bins: tf.Tensor, bin_sizes: tf.Tensor) -> tf.Tensor:
  """Returns the bins in units of the values, as the paper decodes them."""
  return bins * tf.cast(bin_sizes, bins.dtype)

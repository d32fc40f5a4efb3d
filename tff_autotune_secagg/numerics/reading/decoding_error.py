# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The expected error of a decoded sum.

Per coordinate of the rotated sum: signal variance S^2, rounding variance N,
observed variance sigma_o^2 = S^2 + N, period W, and half a period in observed
standard deviations r = (W / 2) / sigma_o. NMSE is the squared norm of the error
over the squared norm of the true sum.

With the noise share f = N / sigma_o^2 the error of each `Decoding` is::

    posterior mean:  f + (1 - f) A(r),     A = E var(u | u mod W) / sigma_o^2
    unbiased:        1 / ((1 - f) (1 - A(r))) - 1, at most 1
    centred:         (f + B(r)) / (1 - f), B = 4 r^2 sum_j (2j-1) 2 Q((2j-1) r)

for a normal u of standard deviation sigma_o and the normal tail Q. The first
two hold exactly for rounding errors that are uncorrelated with the signal, as
far as their sum with it is normal; the last is too large by up to about f B(r).
The first two are cases of::

    1 - (1 - A) (2 h - h^2 / (1 - f))

for a gain of h, see `decoding`.
"""

import functools
import math
from typing import Optional

import numpy as np
from scipy import special
import tensorflow as tf

from tff_autotune_secagg.numerics.rounding import modes

_TABLE_STEP = 0.05
_TABLE_MAX = 12.0


@functools.lru_cache(maxsize=None)
def _table(is_centred: bool) -> np.ndarray:
  """Returns ln of A or B at r = step, 2 step, ..., by quadrature or series."""
  half_periods = np.arange(1, round(_TABLE_MAX / _TABLE_STEP) + 1) * _TABLE_STEP
  if is_centred:
    odd = np.arange(1, 801, 2)
    tails = odd * special.erfc(np.outer(half_periods, odd) / math.sqrt(2))
    return np.log(4 * half_periods**2 * tails.sum(axis=1))
  errors = []
  for half_period in half_periods:
    stddev_periods = 0.5 / half_period
    candidates = int(8 * stddev_periods) + 3
    x = np.linspace(-0.5, 0.5, 801)
    u = x[:, np.newaxis] + np.arange(-candidates, candidates + 1)
    density = np.exp(-0.5 * (u / stddev_periods) ** 2)
    density /= stddev_periods * math.sqrt(2 * np.pi)
    mean = (u * density).sum(1) / density.sum(1)
    variance = ((u - mean[:, np.newaxis]) ** 2 * density).sum(1)
    errors.append(np.trapz(variance, x) / stddev_periods**2)
  return np.log(errors)


def wrap_error(
  half_period_stddevs: tf.Tensor, decoding: modes.Decoding
) -> tf.Tensor:
  """Returns A(r), or B(r) for centred decoding, float64, interpolated."""
  values = _table(decoding is modes.Decoding.CENTRED)
  table = tf.constant(values, tf.float64)
  position = half_period_stddevs / _TABLE_STEP - 1.0
  position = tf.clip_by_value(position, 0.0, len(values) - 1.001)
  index = tf.cast(position, tf.int32)
  low, high = tf.gather(table, index), tf.gather(table, index + 1)
  return tf.exp(low + (high - low) * (position - tf.cast(index, tf.float64)))


def error_of_gain(
  gain: tf.Tensor, noise_share: tf.Tensor, wrap: tf.Tensor
) -> tf.Tensor:
  """Returns the error of decoding to h times the mean, float64.

  Args:
    gain: float64 tensor h, at most 2 (1 - f).
    noise_share: float64 tensor f.
    wrap: float64 tensor A(r).
  """
  # The formula above, as a sum of what is never negative: errors of 1e-17 keep
  # their digits. Where f is 1 the gain is 0.
  share = 1.0 - noise_share
  shrunk = tf.square(gain - share) / tf.maximum(share, 1e-300)
  return noise_share + wrap * share + (1.0 - wrap) * shrunk


def unbiased_gain(wrap: tf.Tensor, max_gain: tf.Tensor) -> tf.Tensor:
  """Returns the h that lets all of the sum through, if it may; float64.

  Args:
    wrap: float64 tensor A(r).
    max_gain: float64 tensor, from where on an error exceeds that of a dropped
      round: twice the share of signal.
  """
  # Where A is 1, the mean is 0 whatever the gain.
  return tf.minimum(1.0 / tf.maximum(1.0 - wrap, 1e-3), max_gain)


def nmse(
  half_period_stddevs: tf.Tensor,
  noise_share: tf.Tensor,
  decoding: modes.Decoding,
  max_noise_share: Optional[tf.Tensor] = None,
) -> tf.Tensor:
  """Returns the error of a round with the given r and f, float64.

  Unbounded for centred decoding, at most 1 for the others.

  Args:
    half_period_stddevs: float64 tensor r.
    noise_share: float64 tensor f.
    decoding: the server's mode.
    max_noise_share: float64 tensor, the f that the server must reckon with and
      that its gains rest on, see `signal_bound`; `noise_share` if None.
  """
  wrap = wrap_error(half_period_stddevs, decoding)
  share = 1.0 - noise_share
  if decoding is modes.Decoding.CENTRED:
    return (noise_share + wrap) / tf.maximum(share, 1e-12)
  sure = share if max_noise_share is None else 1.0 - max_noise_share
  sure = tf.maximum(sure, 0.0)
  if decoding is modes.Decoding.POSTERIOR_MEAN:
    gain = sure
  else:
    gain = unbiased_gain(wrap, 2.0 * sure)
  return error_of_gain(gain, noise_share, wrap)

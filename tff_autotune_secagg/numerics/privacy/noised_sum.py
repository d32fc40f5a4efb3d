# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measurements of a round that a noised sum gives.

They are functions of the sum modulo k, which is private already, and of the
number of clients, which is public. So they cost no privacy.

No TFF here: everything is TensorFlow on dense tensors.
"""

import collections
import math

import tensorflow as tf

from tff_autotune_secagg import _checks
from tff_autotune_secagg.numerics.privacy import discrete_gaussian
from tff_autotune_secagg.numerics.privacy import distributed_noise
from tff_autotune_secagg.numerics.reading import wrapped_normal

# Reported where a sum looks uniform; no modulus is larger.
_MAX_MODULUS = 2**_checks.MAX_BITS

# Coordinates that wrap take away 4 h phi(h) of the sum, h being half a period
# in standard deviations: 2 % at this probability, 7 % at 4 times as much.
_MAX_WRAP_PROBABILITY = 1e-3

# A signal below this many standard errors of the fit may be none.
_HIDDEN_ERRORS = 2.0

# Uniform residues have an infinite variance; this says as much.
_MAX_SQUARED_ANGLE = 60.0


def measure(
  bins: tf.Tensor,
  num_clients: tf.Tensor,
  *,
  modulus: int,
  squared_grid_norm: int,
) -> collections.OrderedDict:
  """Returns what the residues of a noised, rotated sum show.

  Args:
    bins: float32 or float64 tensor [D], D static, residues around 0.
    num_clients: scalar, clients in the sum, at least 1.
    modulus: Python int k.
    squared_grid_norm: of a client's centres, from
      `distributed_noise.max_squared_grid_norm`.

  Returns:
    float32, int32 and bool scalars by name, none of them NaN or infinite:

    - `wrap_probability` of a coordinate, by the fitted variance; 1 if the
      residues look uniform.
    - `modulus_too_small`, whether that is above 1e-3. Wrapping then takes away
      2 % of the sum or more.
    - `smallest_modulus` that would have done, 2**30 if they look uniform.
    - `noise_to_signal`, expected squared norm of the noise over that of the sum
      of clipped updates. Where the noise hides the sum, or the residues look
      uniform, it is about sqrt(D / 2), a lower bound: the signal is taken to be
      one standard error of the fit at least.
    - `alignment`, norm of the sum over that of as many parallel updates of full
      length, 0 to 1; 1 if the residues look uniform.
    - `alignment_bound`, what the alignment is at most: that of a signal two
      standard errors of the fit larger, 0 to 1. To plan with.
    - `signal_hidden`, whether the signal is below two standard errors of the
      fit, or the residues look uniform.
  """
  dim = bins.shape[0]
  versine = wrapped_normal.sum_versines(bins[:, tf.newaxis], modulus)[0] / dim
  stddev = modulus * wrapped_normal.stddev_periods(versine)
  variance = tf.square(stddev)
  num_clients = tf.cast(num_clients, tf.float64)
  noise = num_clients * float(discrete_gaussian.VARIANCE_BINS)
  unseen = noise * math.sqrt(2.0 / dim)
  error = _variance_error(tf.maximum(variance, noise), modulus, dim)
  is_hidden = variance - noise < _HIDDEN_ERRORS * error
  is_hidden |= tf.logical_not(tf.math.is_finite(variance))
  signal = tf.maximum(variance - noise, unseen)
  signal = tf.where(tf.math.is_finite(signal), signal, unseen)
  margin = 2.0 * distributed_noise.DEFAULT_MARGIN_STDDEVS
  needed = tf.minimum(tf.math.ceil(margin * stddev), _MAX_MODULUS)
  alignment, bound = (
    distributed_noise.seen_alignment(
      seen, num_clients, squared_grid_norm=squared_grid_norm, dim=dim
    )
    for seen in (variance, tf.maximum(variance, noise) + _HIDDEN_ERRORS * error)
  )
  half_period = modulus / 2.0 / tf.maximum(stddev, 1e-300)
  wrapped = 2.0 * wrapped_normal.normal_tail(half_period)
  return collections.OrderedDict(
    wrap_probability=tf.cast(wrapped, tf.float32),
    modulus_too_small=wrapped > _MAX_WRAP_PROBABILITY,
    smallest_modulus=tf.cast(needed, tf.int32),
    noise_to_signal=tf.cast(noise / signal, tf.float32),
    alignment=tf.cast(tf.minimum(alignment, 1.0), tf.float32),
    alignment_bound=tf.cast(tf.minimum(bound, 1.0), tf.float32),
    signal_hidden=is_hidden,
  )


def _variance_error(variance, modulus, dim):
  """Returns the standard error of the fitted variance, in squared bins.

  The mean cosine C = exp(-t / 2), t the variance in squared radians, of D
  residues has a variance of (1 - C^2)^2 / 2 D (Mardia and Jupp 2000, section
  3.5.7). For a period that is long against the spread it is `variance`
  times sqrt(2 / D).
  """
  radian = modulus / (2.0 * math.pi)
  angle = tf.minimum(variance / radian**2, _MAX_SQUARED_ANGLE)
  return radian**2 * tf.sinh(angle / 2.0) * math.sqrt(8.0 / dim)

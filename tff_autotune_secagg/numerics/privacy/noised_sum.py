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
    float32 and int32 scalars by name, none of them NaN or infinite:

    - `wrap_probability` of a coordinate, by the fitted variance; 1 if the
      residues look uniform.
    - `smallest_modulus` that would have done, 2**30 if they look uniform.
    - `noise_to_signal`, expected squared norm of the noise over that of the sum
      of clipped updates. Where the noise hides the sum, or the residues look
      uniform, it is about sqrt(D / 2), a lower bound: the signal is taken to be
      one standard error of the fit at least.
    - `alignment`, norm of the sum over that of as many parallel updates of full
      length, 0 to 1; 1 if the residues look uniform.
  """
  dim = bins.shape[0]
  versine = wrapped_normal.sum_versines(bins[:, tf.newaxis], modulus)[0] / dim
  stddev = modulus * wrapped_normal.stddev_periods(versine)
  variance = tf.square(stddev)
  num_clients = tf.cast(num_clients, tf.float64)
  noise = num_clients * float(discrete_gaussian.VARIANCE_BINS)
  unseen = noise * math.sqrt(2.0 / dim)
  signal = tf.maximum(variance - noise, unseen)
  signal = tf.where(tf.math.is_finite(signal), signal, unseen)
  margin = 2.0 * distributed_noise.DEFAULT_MARGIN_STDDEVS
  needed = tf.minimum(tf.math.ceil(margin * stddev), _MAX_MODULUS)
  alignment = distributed_noise.seen_alignment(
    variance, num_clients, squared_grid_norm=squared_grid_norm, dim=dim
  )
  half_period = modulus / 2.0 / tf.maximum(stddev, 1e-300)
  wrapped = 2.0 * wrapped_normal.normal_tail(half_period)
  return collections.OrderedDict(
    wrap_probability=tf.cast(wrapped, tf.float32),
    smallest_modulus=tf.cast(needed, tf.int32),
    noise_to_signal=tf.cast(noise / signal, tf.float32),
    alignment=tf.cast(tf.minimum(alignment, 1.0), tf.float32),
  )

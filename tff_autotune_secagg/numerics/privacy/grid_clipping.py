# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Clipping to a norm that holds exactly, on the grid of the noise's centres.

No TFF here: everything is TensorFlow on dense tensors.
"""

import math
from typing import Tuple

import tensorflow as tf

from tff_autotune_secagg.numerics import seeds
from tff_autotune_secagg.numerics.privacy import discrete_gaussian

# Rounding to the grid adds to a norm; clients aim below the limit by this many
# standard deviations of what it adds.
_ROUNDING_STDDEVS = 6.0

# A second attempt is needed only if the grid is coarse for so many coordinates.
_MAX_ATTEMPTS = 20
_SHRINKAGE = 0.99


def clip_to_grid(
  rotated: tf.Tensor,
  clip_norm: tf.Tensor,
  seed: tf.Tensor,
  *,
  squared_grid_norm: int,
) -> Tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
  """Clips a client's vector and rounds it to the grid of the sampler.

  Rounding may add to the norm. So the norm is checked after the rounding, and
  without any rounding error. A vector that is too long is scaled down and
  rounded anew.

  Guarantees:
    The squared norm of the result is at most `squared_grid_norm`, whatever the
    tensors hold. It is all zeros if `rotated` or `clip_norm` is not finite or
    `clip_norm` not positive.
  Limits:
    Vectors longer than `attained_share` of `clip_norm` are scaled down to that
    share, to leave room for the rounding.

  Args:
    rotated: float32 or float64 tensor [D], D static, in units of values.
    clip_norm: float scalar c, in units of values.
    seed: int32 or int64 tensor [2], for this client and round only. All of its
      bits count.
    squared_grid_norm: Python int from
      `distributed_noise.max_squared_grid_norm`.

  Returns:
    int32 [D], centres in units of 1 / GRID bins, and the words and the seed
    that `discrete_gaussian.sample` takes with them.
  """
  dim = rotated.shape[0]
  limit = tf.constant(float(squared_grid_norm), tf.float64)
  factor, readable = _first_factor(rotated, clip_norm, squared_grid_norm)

  def attempt(number, factor, seed):
    own_seed, next_seed = tf.unstack(seeds.split(seed, 2))
    words = discrete_gaussian.random_words(dim, own_seed)
    scaled = rotated * tf.cast(factor, rotated.dtype)
    grid = discrete_gaussian.round_to_grid(scaled, words)
    squared = _squared_norm(grid)
    factor *= _SHRINKAGE * tf.sqrt(limit / squared)
    return number + 1, factor, next_seed, own_seed, words, grid, squared

  def is_too_long(number, factor, next_seed, own_seed, words, grid, squared):
    del factor, next_seed, own_seed, words, grid
    return readable & (squared > limit) & (number < _MAX_ATTEMPTS)

  found = tf.while_loop(
    is_too_long,
    lambda number, factor, next_seed, *_: attempt(number, factor, next_seed),
    attempt(tf.constant(0), factor, seed),
  )
  _, _, _, own_seed, words, grid, squared = found
  # Not the other way round: NaN is not at most the limit.
  points = tf.cond(
    readable & (squared <= limit),
    lambda: tf.cast(grid, tf.int32),
    lambda: tf.zeros([dim], tf.int32),
  )
  return points, words, own_seed


def _first_factor(rotated, clip_norm, squared_grid_norm):
  """Returns the factor from values to grid units, float64, and its validity."""
  clip_norm = tf.cast(clip_norm, tf.float64)
  norm = tf.sqrt(_squared_norm(rotated))
  limit = math.sqrt(squared_grid_norm)
  share = attained_share(squared_grid_norm, rotated.shape[0])
  factor = tf.minimum(
    limit / clip_norm, limit * share / tf.maximum(norm, 1e-300)
  )
  readable = tf.math.is_finite(norm) & tf.math.is_finite(clip_norm)
  return factor, readable & (clip_norm > 0)


def _squared_norm(values: tf.Tensor) -> tf.Tensor:
  """Returns the sum of squares, float64.

  The sum of whole numbers is exact if it is below 2**52. Otherwise the result
  is at least 2**52, as rounding never takes a sum across a number that float64
  can hold.
  """
  return 2.0 * tf.nn.l2_loss(tf.cast(values, tf.float64))


def attained_share(squared_grid_norm: int, dim: int) -> float:
  """Returns the norm that clients clip to, as a share of the limit.

  Rounding adds at most D / 4 to the squared norm in the mean, with a variance
  of at most the squared norm plus D / 16.

  Args:
    squared_grid_norm: as in `clip_to_grid`.
    dim: Python int D, coordinates of the rotated vector.

  Returns:
    float, at least 1/2, where attempts find the scale that fits.
  """
  stddev = math.sqrt(squared_grid_norm + dim / 16.0)
  room = dim / 4.0 + _ROUNDING_STDDEVS * stddev
  return math.sqrt(max(1.0 - room / max(squared_grid_norm, 1), 0.25))

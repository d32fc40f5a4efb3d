# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""One coordinate of each block of a rotated vector: what a sampled sum sends.

A rotated vector of D coordinates is cut into m blocks of b_i coordinates each,
all D / m or, where that is no whole number, the first ones one coordinate
longer. From each block one coordinate is drawn, all of them equally likely, and
multiplied by sqrt(b_i); `put_back` multiplies by sqrt(b_i) once more and fills
up with zeros. Over the draws, for any vector,

- the mean squared norm of what was taken is that of the vector;
- the mean of what is put back is the vector. Its mean squared error is the sum
  of b_i - 1 times the squared norm of the vector in block i: D / m - 1 times
  that of the vector if all blocks have D / m coordinates, and near
  `error_to_signal` times that of a rotated vector in any case;
- noise of variance v in each of the m coordinates comes back with the expected
  squared norm D v, that of such noise in all D coordinates.

Without the rotation this holds as well, but a vector of a few large coordinates
would be lost, or be far too long.

No TFF here: everything is Python numbers, or TensorFlow on dense tensors.
"""

import math
from typing import Tuple

import tensorflow as tf

# Fewer would be as long as the vector only roughly, and a clip norm would trim
# them: by 0.4 / sqrt(2 m) of their length in the mean, 0.9 % for this many.
MIN_SAMPLE = 1024


def size(fraction: float, dim: int) -> int:
  """Returns m, how many of D coordinates are drawn.

  Args:
    fraction: Python float in (0, 1], the wanted m / D.
    dim: Python int D.

  Returns:
    int: `fraction` of D, rounded up, and at least `MIN_SAMPLE` where there are
    as many.
  """
  return min(dim, max(MIN_SAMPLE, math.ceil(fraction * dim)))


def error_to_signal(num: int, dim: int) -> float:
  """Returns the mean squared error of a rotated vector over its squared norm.

  It is sum b_i^2 / D - 1: D / m - 1 if that is a whole number, and else more by
  at most m / (4 D).

  Args:
    num: Python int m in 1 .. D, coordinates that are drawn.
    dim: Python int D.
  """
  short, num_long = divmod(dim, num)
  squares = num_long * (short + 1) ** 2 + (num - num_long) * short**2
  return squares / dim - 1.0


def take(vector: tf.Tensor, num: int, seed: tf.Tensor) -> tf.Tensor:
  """Returns one coordinate of each block, times the root of the block's size.

  Linear for a given seed.

  Args:
    vector: float32 or float64 tensor [D], D static.
    num: Python int m in 1 .. D.
    seed: int32 or int64 tensor [2], the same for all vectors to be summed. It
      may be public, but nothing else may be drawn from it.

  Returns:
    Tensor [m] of the dtype of `vector`.
  """
  indices, sizes = draw(num, vector.shape[0], seed)
  return tf.gather(vector, indices) * _roots(sizes, vector.dtype)


def put_back(taken: tf.Tensor, dim: int, seed: tf.Tensor) -> tf.Tensor:
  """Returns a vector whose mean over the seeds is that which was taken from.

  Args:
    taken: float32 or float64 tensor [m] as `take` returned it, or a sum or mean
      of such.
    dim: Python int D.
    seed: that of `take`.

  Returns:
    Tensor [D] of the dtype of `taken`, 0 in all coordinates but m.
  """
  indices, sizes = draw(taken.shape[0], dim, seed)
  weighted = taken * _roots(sizes, taken.dtype)
  return tf.scatter_nd(indices[:, tf.newaxis], weighted, [dim])


def draw(num: int, dim: int, seed: tf.Tensor) -> Tuple[tf.Tensor, tf.Tensor]:
  """Draws one coordinate of each block, the same on every device.

  Args:
    num: Python int m in 1 .. D.
    dim: Python int D, below 2**31.
    seed: int32 or int64 tensor [2].

  Returns:
    int32 tensors [m]: the coordinates, ascending, and the sizes of the blocks.
    No coordinate's probability is off by more than b_i 2**-64.
  """
  short, num_long = divmod(dim, num)
  blocks = tf.range(num, dtype=tf.int64)
  starts = blocks * short + tf.minimum(blocks, num_long)
  sizes = short + tf.cast(blocks < num_long, tf.int64)
  words = tf.random.stateless_uniform(
    [num], seed, None, None, tf.int64, alg='philox'
  )
  # Floor-mod: what is left of a negative word is not negative.
  indices = starts + tf.math.floormod(words, sizes)
  return tf.cast(indices, tf.int32), tf.cast(sizes, tf.int32)


def _roots(sizes, dtype):
  """Returns the square roots of the blocks' sizes."""
  return tf.sqrt(tf.cast(sizes, dtype))

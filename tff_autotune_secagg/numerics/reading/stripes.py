# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The sixteen stripes: interleaved parts of a vector, each with a bin size.

Coordinate i of a flattened value belongs to stripe `i % NUM_STRIPES`. In an
ordinary round all stripes have the same bin size, so that the vector is one
sample. In a calibration round the bin sizes are a ladder, from which the scale
of a sum of unknown size can be read.
"""

import math
from typing import Tuple

import numpy as np
import tensorflow as tf

from tff_autotune_secagg import _checks

# Sixteen stripes of ratio 8 cover 13 decades.
NUM_STRIPES = 16

# The ladder: bins from 8e-10 by factors of 8 to 2.8e4 read sums whose
# coordinates have a standard deviation of 1e-9 to 1e4, at any modulus.
_LADDER_BASE = 8e-10
_LADDER_RATIO = 8.0

# A ladder that finds nothing is moved; four stripes stay where they were. At
# the ends bins are 6e-37 and 9e36, as far as float32 has room for a sum.
RUNGS_AT_ONCE = 12
LOWEST_RUNG = -30
HIGHEST_RUNG = 36

_ROWS_AT_ONCE = 64


def level(bin_size: tf.Tensor) -> tf.Tensor:
  """Returns the bin sizes of an ordinary round, [NUM_STRIPES].

  Args:
    bin_size: scalar.

  Raises:
    TypeError: it is not one number.
  """
  bin_size = tf.convert_to_tensor(bin_size)
  if bin_size.shape.rank != 0:
    raise _checks.type_error(
      'bin_size', 'a scalar', f'a tensor of shape {bin_size.shape}'
    )
  return tf.fill([NUM_STRIPES], bin_size)


def ladder(rung: tf.Tensor) -> tf.Tensor:
  """Returns the bin sizes of a calibration round, float32 [NUM_STRIPES].

  Args:
    rung: int32 scalar, how many steps of eight up; see `LOWEST_RUNG`.

  Raises:
    TypeError: it is no int32.
  """
  rung = tf.convert_to_tensor(rung)
  if rung.dtype != tf.int32 or rung.shape.rank != 0:
    raise _checks.type_error(
      'rung', 'an int32 scalar', f'{rung.dtype.name} of shape {rung.shape}'
    )
  exponent = tf.cast(rung + tf.range(NUM_STRIPES), tf.float64)
  ratio = tf.constant(_LADDER_RATIO, tf.float64)
  return tf.cast(_LADDER_BASE * tf.pow(ratio, exponent), tf.float32)


def ladder_around(bin_size: tf.Tensor) -> tf.Tensor:
  """Returns the bin sizes of a calibration with a guess, float32 [NUM_STRIPES].

  Half of the stripes have the bin size of the guess. The others are every
  second one of `ladder(0)`, from which any scale is found if the guess is
  wrong.

  Args:
    bin_size: float32 scalar, of the guess.
  """
  half = NUM_STRIPES // 2
  return tf.sort(
    tf.concat([tf.fill([half], bin_size), ladder(tf.constant(0))[1::2]], axis=0)
  )


def is_ladder(bin_sizes: tf.Tensor) -> tf.Tensor:
  """Tells a ladder of ascending bin sizes [16] from equal ones, scalar bool."""
  return bin_sizes[-1] > bin_sizes[0]


def to_stripes(x: tf.Tensor) -> tf.Tensor:
  """Views `x` as rows of `NUM_STRIPES`, padding with zeros if it must.

  Args:
    x: tensor of static shape with any number of elements.

  Returns:
    Tensor [rows, NUM_STRIPES] of the same dtype; no copy if the number of
    elements is a multiple of `NUM_STRIPES`.
  """
  size = x.shape.num_elements()
  padding = -size % NUM_STRIPES
  flat = tf.reshape(x, [-1])
  if padding:
    flat = tf.pad(flat, [[0, padding]])
  return tf.reshape(flat, [-1, NUM_STRIPES])


def from_stripes(rows: tf.Tensor, shape: tf.TensorShape) -> tf.Tensor:
  """Inverse of `to_stripes` for a tensor of the given static shape."""
  flat = tf.reshape(rows, [-1])
  size = shape.num_elements()
  if flat.shape.num_elements() != size:
    flat = flat[:size]
  return tf.reshape(flat, shape)


def stripe_counts(size: int) -> np.ndarray:
  """Returns how many of `size` coordinates each stripe has, float64 [16]."""
  stripe = np.arange(NUM_STRIPES)
  return ((size - stripe + NUM_STRIPES - 1) // NUM_STRIPES).astype(np.float64)


def widen(rows: tf.Tensor) -> Tuple[tf.Tensor, int]:
  """Views rows of stripes as fewer, longer rows.

  Broadcasting along short rows takes half as long again as along long ones.

  Args:
    rows: tensor [n, NUM_STRIPES] of static shape.

  Returns:
    A tensor [n / repeats, repeats * NUM_STRIPES] and `repeats`, by which a
    vector of stripes must be tiled to match it.
  """
  repeats = math.gcd(rows.shape[0], _ROWS_AT_ONCE)
  shape = [rows.shape[0] // repeats, repeats * NUM_STRIPES]
  return tf.reshape(rows, shape), repeats

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fast Hadamard transforms of many orders, in plain TensorFlow.

All entries of the matrix are +-1/sqrt(D). D need not be a power of two: it may
be any m1 * m2 * 2**p with m1 and m2 among the orders up to 64 that the
constructions of Sylvester and Paley give (see `hadamard_matrices`). Padding is
then at most 6 % from d = 1024 on and 1.5 % on average, where powers of two cost
up to 100 %.

The matrix is a Kronecker product of small matrices, `factors(D)`, and is
applied as one small dense multiplication per factor. Measured on two x86-64
cores, radix 16 costs least per bit of log2(D); the search for the factors
weighs the stages accordingly. Beside its input and its result a transform holds
one tensor of D values at a time.

The layout of the result: input index (a, b, c) becomes output index (b, c, a),
where a runs over the first factor. A run of neighbouring nonzero inputs that
shares its a therefore has the same squared norm in each of the 16 stripes
(index modulo 16, see `stripes`), whatever their pattern.
"""

import functools
import itertools
from typing import List, Optional, Tuple

import numpy as np
import tensorflow as tf

from tff_autotune_secagg import _checks
from tff_autotune_secagg.numerics.reading import stripes
from tff_autotune_secagg.numerics.rotation import hadamard_matrices

# Paley's constructions and doubling give every order 4 * odd up to 60.
_ODD_PARTS = (1, 3, 5, 7, 9, 11, 13, 15)
_MAX_FACTOR = 64

# A stage of radix r costs moving the tensor plus r multiplications per
# coordinate. Moving costs about this many multiplications (measured).
_MOVE_COST = 16

hadamard_matrix = hadamard_matrices.hadamard_matrix


def _odd_products():
  """Maps the odd part of an available order to its factors 4 * odd."""
  best = {}
  for pair in itertools.combinations_with_replacement(_ODD_PARTS, 2):
    parts = tuple(4 * odd for odd in pair if odd > 1)
    odd = pair[0] * pair[1]
    rank = (len(parts), sum(parts))
    if odd not in best or rank < (len(best[odd]), sum(best[odd])):
      best[odd] = parts
  return best


_FACTORS_OF_ODD = _odd_products()
# The smallest order of each odd part; its others are that times 2**p.
_BASE_ORDERS = tuple(
  int(np.prod(parts, dtype=np.int64)) for parts in _FACTORS_OF_ODD.values()
)


def padded_dim(dim: int) -> int:
  """Returns the smallest available order that is at least `dim`.

  Guarantees:
    For `dim >= 1024` the result is at most `1.06 * dim` and a multiple of 16.
    Every result is its own `padded_dim`.

  Args:
    dim: Python int, at least 1.

  Returns:
    Python int m1 * m2 * 2**p with m1, m2 <= 64.

  Raises:
    TypeError, ValueError: `dim` is not an int; is below 1.
  """
  dim = _checks.check_int('dim', dim, minimum=1)
  # -(-a // b) is the ceiling of a / b; floats pad too short above 2**24.
  return min(
    base << (-(-dim // base) - 1).bit_length() for base in _BASE_ORDERS
  )


@functools.lru_cache(maxsize=None)
def factors(order: int) -> Tuple[int, ...]:
  """Returns the orders of the small matrices that `transform` multiplies by.

  Args:
    order: Python int, an available order: one that `padded_dim` returns.

  Returns:
    Ints of at most 64 whose product is `order`; `(1,)` for order 1. The first
    factor is a multiple of 16 if any factor can be.

  Raises:
    TypeError, ValueError: `order` is not an int; is not available.
  """
  if padded_dim(order) != order:
    raise ValueError(
      f'`order` must be an available Hadamard order, found {order}. The next'
      f' one is {padded_dim(order)}.'
    )
  exponent = (order & -order).bit_length() - 1
  parts = _FACTORS_OF_ODD[order >> exponent]
  num_bits = exponent - 2 * len(parts)
  candidates = []
  for absorbed in itertools.product(range(4), repeat=len(parts)):
    stages = [part << bits for part, bits in zip(parts, absorbed)]
    left = num_bits - sum(absorbed)
    if left < 0 or max(stages, default=1) > _MAX_FACTOR:
      continue
    for num_stages in range(left + 1):
      radices = _split_bits(left, num_stages)
      if radices is not None:
        candidates.append(stages + radices)

  def rank(sizes):
    # A multiple of 16 as the first factor makes the stripes even, see above.
    uneven = all(size % stripes.NUM_STRIPES for size in sizes)
    return uneven, sum(_MOVE_COST + size for size in sizes)

  chosen = min(candidates, key=rank)
  chosen.sort(
    key=lambda r: (r % stripes.NUM_STRIPES != 0, r & (r - 1) != 0, -r)
  )
  return tuple(chosen) or (1,)


def _split_bits(num_bits: int, num_stages: int) -> Optional[List[int]]:
  """Powers of two, as equal as can be, with product 2**num_bits, or None."""
  if not num_stages:
    return None if num_bits else []
  low, high = divmod(num_bits, num_stages)
  radices = [2 << low] * high + [1 << low] * (num_stages - high)
  return None if radices[0] > _MAX_FACTOR else radices


def _stage_matrices(order: int, dtype: tf.DType, transpose: bool):
  """The factors' matrices; together they are scaled by 1 / sqrt(order).

  Each matrix takes an exact power of two near 1 / sqrt(radix), which keeps the
  stages in the range of the input without an error. The last matrix takes the
  rest of the scale.
  """
  sizes = factors(order)
  scales = [2.0 ** -round(np.log2(size) / 2) for size in sizes]
  scales[-1] = 1.0 / (np.sqrt(order) * np.prod(scales[:-1]))
  matrices = []
  for size, scale in zip(sizes, scales):
    signs = hadamard_matrix(size)
    # A byte an entry: clients get the graph with each model.
    signs = tf.constant(signs.T if transpose else signs, tf.int8)
    matrices.append(tf.cast(signs, dtype) * dtype.as_numpy_dtype(scale))
  return sizes, matrices


def check_tensor(x) -> tf.Tensor:
  """Returns `x` as a tensor with a static last dimension, or raises."""
  x = tf.convert_to_tensor(x)
  if x.dtype not in (tf.float32, tf.float64):
    raise TypeError(
      f'`x` must be of dtype float32 or float64, found {x.dtype.name}. Cast'
      ' it first.'
    )
  if not x.shape.rank or x.shape[-1] is None:
    raise ValueError(
      f'`x` must have a last dimension known statically, found shape {x.shape}.'
    )
  return x


def transform(x: tf.Tensor) -> tf.Tensor:
  """Multiplies the last axis by an orthonormal Hadamard matrix.

  Guarantees:
    Linear; the matrix has entries +-1/sqrt(D) and depends on D only. NaN and
    infinities spread over the row of x they stand in.

  Args:
    x: float32 or float64 tensor [..., D], D static and an available order.

  Returns:
    Tensor of the shape and dtype of `x`.

  Raises:
    TypeError, ValueError: another dtype; D not known or not available.
  """
  x = check_tensor(x)
  order = x.shape[-1]
  sizes, matrices = _stage_matrices(order, x.dtype, transpose=False)
  is_vector = x.shape.rank == 1
  y = x
  # Each stage works on the last axis and puts it in front of the others, as a
  # by-product of the multiplication: (a, b, c) -> (c, a, b) -> (b, c, a).
  for size, matrix in reversed(list(zip(sizes[1:], matrices[1:]))):
    y = _multiply_last_to_front(y, order, size, matrix, is_vector)
  y = tf.matmul(tf.reshape(y, [-1, sizes[0]]), matrices[0], transpose_b=True)
  return _reshape_like(y, x)


def inverse_transform(x: tf.Tensor) -> tf.Tensor:
  """Multiplies the last axis by the transpose of the matrix of `transform`.

  This inverts `transform` up to rounding: at most 2e-6 relative to the norm at
  D = 2**20 in float32.

  Args:
    x: float32 or float64 tensor [..., D], D static and an available order.

  Returns:
    Tensor like `x`.

  Raises:
    TypeError, ValueError: as `transform`.
  """
  x = check_tensor(x)
  order = x.shape[-1]
  sizes, matrices = _stage_matrices(order, x.dtype, transpose=True)
  y = x
  is_vector = x.shape.rank == 1
  if len(sizes) > 1:  # (b, c, a) -> (a, b, c)
    y = _multiply_last_to_front(y, order, sizes[0], matrices[0], is_vector)
  inner = order // sizes[0]
  for size, matrix in zip(sizes[1:-1], matrices[1:-1]):
    inner //= size
    y = tf.matmul(matrix, tf.reshape(y, [-1, size, inner]))
  y = tf.matmul(tf.reshape(y, [-1, sizes[-1]]), matrices[-1], transpose_b=True)
  return _reshape_like(y, x)


def _multiply_last_to_front(y, order, size, matrix, is_vector):
  """Views y as [..., order / size, size], returns [..., size, order / size]."""
  # For a vector the two-dimensional product is much faster than a batch of one.
  y = tf.reshape(y, ([] if is_vector else [-1]) + [order // size, size])
  return tf.matmul(matrix, y, transpose_b=True)


def _reshape_like(y, x):
  if x.shape.is_fully_defined():
    return tf.reshape(y, x.shape)
  return tf.ensure_shape(tf.reshape(y, tf.shape(x)), x.shape)

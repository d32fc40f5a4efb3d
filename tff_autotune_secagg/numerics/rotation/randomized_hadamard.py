# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Randomized Hadamard rotation of a vector of any size.

A vector of d values is padded with zeros to D, its signs are flipped at random
and a Hadamard matrix over sqrt(D) is applied: the rotation R = HD of Bonawitz
et al. (2019, arXiv:1912.00131), section 3.
"""

import tensorflow as tf

from tff_autotune_secagg.numerics.rotation import hadamard

_BITS_PER_WORD = 32


def random_sign_bits(dim: int, seed: tf.Tensor) -> tf.Tensor:
  """Draws fair random signs, 32 from each random word.

  Args:
    dim: Python int, number of signs.
    seed: int32 or int64 tensor [2].

  Returns:
    int32 tensor [dim], each 0 (plus) or -2**31, the sign bit of float32
    (minus), each with probability exactly 1/2. The same on every device.
  """
  num_words = -(-dim // _BITS_PER_WORD)
  words = tf.random.stateless_uniform(
    [1, num_words], seed, None, None, tf.int32, alg='philox'
  )
  shifts = tf.range(_BITS_PER_WORD, dtype=tf.int32)[:, tf.newaxis]
  bits = tf.bitwise.left_shift(words, shifts)
  bits = tf.bitwise.bitwise_and(bits, tf.int32.min)
  bits = tf.reshape(bits, [num_words * _BITS_PER_WORD])
  return bits if dim % _BITS_PER_WORD == 0 else bits[:dim]


def flip_signs(x: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
  """Multiplies coordinates by signs, +1 or -1, that follow from the seed.

  Applied twice with one seed it gives back `x` bit for bit.

  Args:
    x: float32 or float64 tensor [D], D static.
    seed: int32 or int64 tensor [2].

  Returns:
    Tensor of the shape and dtype of `x`.

  Raises:
    TypeError, ValueError: another dtype; D not known.
  """
  x = hadamard.check_tensor(x)
  bits = random_sign_bits(x.shape[0], seed)
  if x.dtype == tf.float32:
    flipped = tf.bitwise.bitwise_xor(tf.bitcast(x, tf.int32), bits)
    return tf.bitcast(flipped, tf.float32)
  return tf.where(bits < 0, -x, x)


def rotate(x: tf.Tensor, seed: tf.Tensor, num_rotations: int = 1) -> tf.Tensor:
  """Pads a vector to `padded_dim` and rotates it at random.

  Guarantees:
    Linear for a given seed and keeps the norm, so that a rotated sum is the sum
    of the rotated vectors.
  Limits:
    One rotation leaves a vector of j equal nonzeros with an excess kurtosis of
    -2/j; two make it normal.

  Args:
    x: float32 or float64 tensor [d], d static and at least 1.
    seed: int32 or int64 tensor [2]; the same for all vectors to be summed.
    num_rotations: Python int, at least 1, one after the other.

  Returns:
    Tensor [padded_dim(d)] of the dtype of `x`.

  Raises:
    TypeError, ValueError: another dtype; d not known.
  """
  x = hadamard.check_tensor(x)
  dim = x.shape[0]
  y = (
    tf.pad(x, [[0, hadamard.padded_dim(dim) - dim]])
    if hadamard.padded_dim(dim) > dim
    else x
  )
  for number in range(num_rotations):
    y = hadamard.transform(flip_signs(y, _rotation_seed(seed, number)))
  return y


def inverse_rotate(
  y: tf.Tensor, seed: tf.Tensor, dim: int, num_rotations: int = 1
) -> tf.Tensor:
  """Inverse of `rotate`: also the least squares solution for any `y`.

  Args:
    y: float32 or float64 tensor [padded_dim(dim)].
    seed: the seed given to `rotate`.
    dim: Python int, size of the vector that was rotated.
    num_rotations: as given to `rotate`.

  Returns:
    Tensor [dim] of the dtype of `y`.

  Raises:
    TypeError, ValueError: another dtype; another size.
  """
  y = hadamard.check_tensor(y)
  if y.shape[0] != hadamard.padded_dim(dim):
    raise ValueError(
      f'`y` must have `padded_dim({dim})` = {hadamard.padded_dim(dim)}'
      f' entries, found {y.shape[0]}.'
    )
  for number in reversed(range(num_rotations)):
    y = flip_signs(hadamard.inverse_transform(y), _rotation_seed(seed, number))
  return y if y.shape[0] == dim else y[:dim]


def _rotation_seed(seed: tf.Tensor, number: int) -> tf.Tensor:
  return tf.random.experimental.stateless_fold_in(seed, number, alg='philox')

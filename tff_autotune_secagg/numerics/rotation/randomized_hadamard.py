# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Randomized Hadamard rotation of a vector of any size.

A vector of d values is padded with zeros to D, its signs are flipped at random
and a Hadamard matrix over sqrt(D) is applied: the rotation R = HD of Bonawitz
et al. (2019, arXiv:1912.00131), section 3.
"""

import functools
from typing import List, Sequence

import tensorflow as tf

from tff_autotune_secagg.numerics import seeds
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
  return _sign_bits(seeds.stream(seed), dim)


def _sign_bits(stream, dim):
  """Returns one sign from each bit of the stream's words."""
  num_words = -(-dim // _BITS_PER_WORD)
  words = seeds.words(stream, [1, num_words], tf.int32)
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
  return _flip(x, random_sign_bits(x.shape[0], seed))


def _flip(x, bits):
  """Multiplies by the signs that the bits are."""
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
  return _rotate(x, _flips(seed, num_rotations))


def rotate_by(x: tf.Tensor, streams: Sequence[seeds.Stream]) -> tf.Tensor:
  """As `rotate`, with a rotation for each of the streams."""
  return _rotate(x, _flips_by(streams))


def _rotate(x, flips):
  """Pads and rotates, once for each way of flipping signs."""
  x = hadamard.check_tensor(x)
  dim = x.shape[0]
  y = (
    tf.pad(x, [[0, hadamard.padded_dim(dim) - dim]])
    if hadamard.padded_dim(dim) > dim
    else x
  )
  for flip in flips:
    y = hadamard.transform(flip(y))
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
  return _inverse_rotate(y, dim, _flips(seed, num_rotations))


def inverse_rotate_by(
  y: tf.Tensor, streams: Sequence[seeds.Stream], dim: int
) -> tf.Tensor:
  """Inverse of `rotate_by`, as `inverse_rotate` is of `rotate`."""
  return _inverse_rotate(y, dim, _flips_by(streams))


def _inverse_rotate(y, dim, flips):
  """Rotates back, the last way of flipping signs first."""
  y = hadamard.check_tensor(y)
  if y.shape[0] != hadamard.padded_dim(dim):
    raise ValueError(
      f'`y` must have `padded_dim({dim})` = {hadamard.padded_dim(dim)}'
      f' entries, found {y.shape[0]}.'
    )
  for flip in reversed(flips):
    y = flip(hadamard.inverse_transform(y))
  return y if y.shape[0] == dim else y[:dim]


def sign_streams(seed: tf.Tensor, num_rotations: int) -> List[seeds.Stream]:
  """Returns the streams of the signs that `rotate` has with a seed.

  Args:
    seed: int32 or int64 tensor [2].
    num_rotations: Python int.
  """
  return [
    seeds.stream(_rotation_seed(seed, number))
    for number in range(num_rotations)
  ]


def _flips(seed, num_rotations):
  """Returns the flips of signs before each rotation, by a seed."""
  return [
    functools.partial(flip_signs, seed=_rotation_seed(seed, number))
    for number in range(num_rotations)
  ]


def _flips_by(streams):
  """Returns the flips of signs before each rotation, by streams."""
  return [functools.partial(_flip_by, stream=stream) for stream in streams]


def _flip_by(x, stream):
  return _flip(x, _sign_bits(stream, x.shape[0]))


def _rotation_seed(seed: tf.Tensor, number: int) -> tf.Tensor:
  return tf.random.experimental.stateless_fold_in(seed, number)

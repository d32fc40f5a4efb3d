# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Numbers of a few bits, packed into bytes without a gap."""

import numpy as np
import tensorflow as tf

_BITS_OF_A_BYTE = 8


def pack(numbers: tf.Tensor, bits: int) -> tf.Tensor:
  """Packs numbers of a few bits, the lowest bit of the first number first.

  Args:
    numbers: integer tensor [n] of 0 .. 2**bits - 1, n static and a multiple of
      eight.
    bits: Python int in 1 .. 8.

  Returns:
    uint8 tensor [n bits / 8].
  """
  if bits == _BITS_OF_A_BYTE:
    return tf.cast(numbers, tf.uint8)
  digits = _binary(tf.cast(numbers, tf.int32), bits)
  return tf.cast(_number(digits, _BITS_OF_A_BYTE), tf.uint8)


def unpack(packed: tf.Tensor, bits: int) -> tf.Tensor:
  """Undoes `pack`.

  Args:
    packed: uint8 tensor [n bits / 8].
    bits: Python int in 1 .. 8.

  Returns:
    int32 tensor [n].
  """
  numbers = tf.cast(packed, tf.int32)
  if bits == _BITS_OF_A_BYTE:
    return numbers
  return _number(_binary(numbers, _BITS_OF_A_BYTE), bits)


def _binary(numbers, bits):
  """Returns the binary digits of all numbers, one number after the other."""
  shifted = tf.bitwise.right_shift(tf.expand_dims(numbers, -1), np.arange(bits))
  return tf.bitwise.bitwise_and(shifted, 1)


def _number(digits, bits):
  """Returns the numbers that every `bits` of the binary digits spell."""
  digits = tf.reshape(digits, [-1, bits])
  return tf.reduce_sum(digits * 2 ** np.arange(bits), axis=-1)

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Smooth tables of integers, small in a graph and exact once it runs.

What a graph holds as a constant, every client downloads. A table whose rows are
samples of smooth functions is almost all redundancy, though its integers look
random: their differences of a few orders are small numbers, and compress. The
graph adds them up again. All of this is modulo a power of two, where sums of
differences are exact whatever their size.

No TFF here: NumPy to pack, TensorFlow to unpack.
"""

from typing import NamedTuple, Tuple
import zlib

import numpy as np
import tensorflow as tf

_WORD_BITS = 64


class PackedRows(NamedTuple):
  """What a graph needs to make a table.

  Attributes:
    compressed: Differences of the given order along the rows, int64,
      little-endian, compressed by zlib.
    shape: Rows and columns.
    order: How often differences were taken.
    bits: The values are below 2**bits; 64 for all of int64.
  """

  compressed: bytes
  shape: Tuple[int, int]
  order: int
  bits: int


def pack(rows: np.ndarray, *, order: int, bits: int = _WORD_BITS) -> PackedRows:
  """Packs a table.

  Args:
    rows: integer array [rows, columns]; below 64 bits not negative.
    order: int, at least 0. Any gives the table back; the best is that which
      leaves fewest bytes.
    bits: int, 1 to 64. Differences are taken modulo 2**bits.

  Returns:
    What `unpack` takes.
  """
  # In the upper bits of a word: there the machine's integers wrap at 2**bits.
  shift = _WORD_BITS - bits
  left = rows.astype(np.int64).view(np.uint64) << np.uint64(shift)
  for _ in range(order):
    left[:, 1:] -= left[:, :-1].copy()
  differences = left.view(np.int64) >> np.int64(shift)
  compressed = zlib.compress(differences.astype('<i8').tobytes(), 9)
  return PackedRows(compressed, rows.shape, order, bits)


def unpack(packed: PackedRows) -> tf.Tensor:
  """Makes the table in the graph: int64 tensor [rows, columns].

  Guarantees: equal to what was packed, bit for bit, on every machine. A session
  computes it once and keeps it (constant folding).
  """
  raw = tf.io.decode_compressed(tf.constant(packed.compressed), 'ZLIB')
  rows = tf.reshape(tf.io.decode_raw(raw, tf.int64), packed.shape)
  # Unsigned, for which wrapping is defined.
  rows = tf.bitcast(rows, tf.uint64)
  for _ in range(packed.order):
    rows = tf.cumsum(rows, axis=1)
  mask = tf.constant(2**packed.bits - 1, tf.uint64)
  return tf.bitcast(tf.bitwise.bitwise_and(rows, mask), tf.int64)

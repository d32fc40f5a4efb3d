# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rounding to integer bins, residues modulo k, and reading residues back.

The code is zero-centred: a value z bins wide becomes the integer
`floor(z + u)` for an offset u that is uniform on [0, 1), and that integer is
reduced to `0 .. modulus - 1`. The sum of such residues over clients, again
reduced, stands for the integer of that residue class nearest to 0. Unlike the
code of Bonawitz et al. (2019, arXiv:1912.00131), section 3, which sends the
lower end of a range to 0, decoding needs no client count.

Bin sizes are those of the sixteen stripes, see `stripes`.
"""

import tensorflow as tf

from tff_autotune_secagg.numerics import seeds
from tff_autotune_secagg.numerics.reading import stripes

# Coordinates of one client larger than this many bins are drawn uniformly from
# all residues: the cast to int32 needs |z| < 2**31.
_MAX_BINS = 2**30

# Values and moduli up to this size are reduced exactly in float32.
_MAX_FLOAT_REDUCTION = 2**21

# Powers of a multiplier for modulus 2**32 with good lattices, see
# `uniform_offsets`.
_MULTIPLIERS = tuple(pow(2891336453, power, 2**32) for power in range(4))


def is_power_of_two(number: int) -> bool:
  """Tells whether a positive Python int is a power of two."""
  return number & (number - 1) == 0


def num_bits(modulus: int) -> int:
  """Returns the bits that a residue takes on the wire, at least 1."""
  return (modulus - 1).bit_length()


def payload_bytes(num_coordinates: int, bits: int) -> int:
  """Returns the bytes of as many numbers of so many bits each, packed."""
  return -(-num_coordinates * bits // 8)


def sum_modulus(num_levels: int, num_clients: int) -> int:
  """Returns the smallest modulus that tells all sums apart.

  For clients that send a number of 0 .. num_levels - 1 each.
  """
  return num_clients * (num_levels - 1) + 1


def sum_dtype(modulus: int) -> tf.DType:
  """Returns the dtype in which residues may be added before the reduction.

  A sum of int32 may overflow. That is harmless for a power of two, where it is
  off by a multiple of the modulus, and wrong for every other modulus.
  """
  return tf.int32 if is_power_of_two(modulus) else tf.int64


def max_client_bins(modulus: int) -> int:
  """Returns the size, in bins, from which a value carries no information.

  A float32 of 2**21 * modulus bins is a multiple of modulus / 4, so that its
  residue would be one of four values and say nothing of the value; without
  this limit the residue of still larger ones is 0, which reads as "no update".
  """
  return min(2**21 * modulus, _MAX_BINS)


def uniform_offsets(num: int, seed: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
  """Draws `num` numbers uniform on [0, 1), one random word for every four.

  A 32-bit word w yields w, a w, a^2 w and a^3 w modulo 2^32 with an odd a. Each
  is exactly uniform, as multiplying by an odd number permutes the words. Two of
  one word are points of the lattice of a linear congruential generator with
  that multiplier, chosen by L'Ecuyer (1999, Mathematics of Computation 68) so
  that points spread evenly in 2 to 4 dimensions; their correlation is below
  1e-5, and offsets of different words are independent. Rounding needs no more:
  the variance of its error depends on single offsets and pairs of them.

  Args:
    num: Python int.
    seed: int32 or int64 tensor [2].
    dtype: tf.float32 or tf.float64.

  Returns:
    Tensor [num] of `dtype`, multiples of 2**-24 for float32 and of 2**-32 for
    float64. The same on every device.
  """
  num_words = -(-num // len(_MULTIPLIERS))
  words = seeds.words(seeds.stream(seed), [1, num_words], tf.uint32)
  words = words * tf.constant(_MULTIPLIERS, tf.uint32)[:, tf.newaxis]
  words = tf.reshape(words, [len(_MULTIPLIERS) * num_words])
  if words.shape[0] != num:
    words = words[:num]
  if dtype == tf.float32:
    # The top 24 bits, so that the cast is exact and stays below 1.
    words = tf.bitwise.right_shift(words, tf.constant(8, tf.uint32))
    return tf.cast(tf.bitcast(words, tf.int32), dtype) * 2.0**-24
  return tf.cast(tf.cast(words, tf.int64), dtype) * 2.0**-32


def encode(
  values: tf.Tensor, bin_sizes: tf.Tensor, seed: tf.Tensor, *, modulus: int
) -> tf.Tensor:
  """Rounds values to bins at random and reduces the bins modulo `modulus`.

  With `z = values / bin_size`, the result is `floor(z)` or `floor(z) + 1`
  modulo `modulus`, the latter where the coordinate's offset is below the
  fraction of z. Coordinates of `max_client_bins(modulus)` bins or more, and
  NaN, become a residue drawn uniformly.

  Args:
    values: float32 or float64 tensor of static shape.
    bin_sizes: float32 tensor [NUM_STRIPES], positive.
    seed: int32 or int64 tensor [2]: private to the client and round for
      stochastic rounding, shared by all clients for dither.
    modulus: Python int in 2 .. 2**30.

  Returns:
    int32 tensor of the shape of `values`, in `0 .. modulus - 1`.
  """
  if not values.shape.num_elements():
    return tf.zeros(values.shape, tf.int32)
  rows = stripes.to_stripes(values)
  offsets = uniform_offsets(rows.shape.num_elements(), seed, rows.dtype)
  bins = tf.reshape(_divide_stripes(rows, bin_sizes), [-1])
  limit = max_client_bins(modulus)
  if not is_power_of_two(modulus):
    limit = min(limit, _MAX_FLOAT_REDUCTION)

  def round_all():
    return _reduce_whole(_round_up_above(bins, offsets), modulus)

  def round_readable():
    readable = tf.abs(bins) < max_client_bins(modulus)
    safe = tf.where(readable, bins, tf.floor(offsets * modulus))
    integers = tf.cast(_round_up_above(safe, offsets), tf.int32)
    return reduce_modulo(integers, modulus)

  # If the squared norm is below limit^2 then so is every square, and NaN is not
  # below: one pass over the tensor where a test of each coordinate takes four.
  is_small = tf.nn.l2_loss(bins) < 0.25 * float(limit) ** 2
  residues = tf.cond(is_small, round_all, round_readable)
  return stripes.from_stripes(residues, values.shape)


def _divide_stripes(rows: tf.Tensor, bin_sizes: tf.Tensor) -> tf.Tensor:
  """Divides rows [n, NUM_STRIPES] by bin sizes, in the widest rows that fit."""
  wide, repeats = stripes.widen(rows)
  return wide / tf.tile(tf.cast(bin_sizes, rows.dtype), [repeats])


def _round_up_above(bins: tf.Tensor, offsets: tf.Tensor) -> tf.Tensor:
  """Returns floor(bins), plus 1 where the offset is below the fraction."""
  floor = tf.floor(bins)
  # The fraction is exact, where `floor(z + u)` would round z + u first and be
  # biased by half a unit in the last place of z. The difference of fraction and
  # offset lies in (-1, 1) and has the right sign.
  return floor + tf.math.ceil(bins - floor - offsets)


def _reduce_whole(floats: tf.Tensor, modulus: int) -> tf.Tensor:
  """Reduces whole numbers of at most `_MAX_FLOAT_REDUCTION` to int32 residues.

  Integer division costs four times as much as these float operations. The half
  keeps the quotient away from whole numbers by 1 / (2 modulus), more than its
  rounding error; products and differences are exact below 2**24. Powers of two
  need no division.
  """
  if is_power_of_two(modulus) or modulus > _MAX_FLOAT_REDUCTION:
    return reduce_modulo(tf.cast(floats, tf.int32), modulus)
  quotient = tf.floor((floats + 0.5) * (1.0 / modulus))
  return tf.cast(floats - quotient * float(modulus), tf.int32)


def reduce_modulo(integers: tf.Tensor, modulus: int) -> tf.Tensor:
  """Reduces integers to `0 .. modulus - 1`, with the same shape and dtype."""
  if is_power_of_two(modulus):
    # Two's complement makes the mask exact for negative integers as well.
    return tf.bitwise.bitwise_and(
      integers, tf.constant(modulus - 1, integers.dtype)
    )
  return tf.math.floormod(integers, tf.constant(modulus, integers.dtype))


def centre(residues: tf.Tensor, modulus: int) -> tf.Tensor:
  """Maps residues to the integer of their class nearest to 0.

  Args:
    residues: integer tensor in `0 .. modulus - 1`.
    modulus: Python int in 2 .. 2**30.

  Returns:
    Integer tensor in `-(modulus // 2) .. (modulus - 1) // 2`: for an even
    modulus the tie `modulus / 2` goes to the negative side.
  """
  if is_power_of_two(modulus):
    half = tf.constant(modulus // 2, residues.dtype)
    return reduce_modulo(residues + half, modulus) - half
  wrapped = tf.cast(residues >= (modulus + 1) // 2, residues.dtype)
  return residues - tf.constant(modulus, residues.dtype) * wrapped

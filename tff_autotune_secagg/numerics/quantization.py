# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rounding to integer bins, residues modulo k, and reading residues back.

The code is zero-centred: a value z bins wide becomes the integer
`floor(z + u)` for an offset u that is uniform on [0, 1), and that integer is
reduced to `0 .. modulus - 1`. The sum of such residues over clients, again
reduced, stands for the integer of that residue class nearest to 0. Unlike the
code of Bonawitz et al. (2019, arXiv:1912.00131), section 3, which sends the
lower end of a range to 0, decoding needs no client count.

Bin sizes are a vector of `NUM_STRIPES`; entry i of a flattened value uses
`bin_sizes[i % NUM_STRIPES]`. They are all equal except in a calibration round.

No TFF here: everything is TensorFlow on dense tensors.
"""

import enum
import math
from typing import Sequence, Tuple

import numpy as np
import tensorflow as tf

# Stripes of a calibration round. Sixteen of ratio 8 cover 13 decades.
NUM_STRIPES = 16

# Entries of one client larger than this many bins are drawn uniformly from all
# residues: the cast to int32 needs |z| < 2**31.
_MAX_BINS = 2**30

# Values and moduli up to this size are reduced exactly in float32.
_MAX_FLOAT_REDUCTION = 2**21

# Powers of a multiplier for modulus 2**32 with good lattices, see
# `uniform_offsets`.
_MULTIPLIERS = tuple(pow(2891336453, power, 2**32) for power in range(4))

_ROWS_AT_ONCE = 64


class Rounding(enum.Enum):
  """How a client rounds to integers.

  STOCHASTIC: offsets are private to each client and round, so errors of
    different clients are independent: 1/6 bin^2 each for entries spread over a
    bin or more, unbiased for every entry.
  DITHER: subtractive dither (Roberts 1962): offsets come from the round's
    shared seed and the server subtracts them again: 1/12 bin^2 per client and
    no private randomness, so a run repeats bit for bit. Safe only where clients
    differ by about half a bin or more, otherwise their errors add coherently;
    the coarse bins of a calibration round are not, so that there each client's
    offsets come from the shared seed and its own values, and stay.
  """

  STOCHASTIC = 'stochastic'
  DITHER = 'dither'


class Decoding(enum.Enum):
  """How the server reads a residue of the sum.

  POSTERIOR_MEAN: the mean of the true sum given its residue and the fitted
    normal; never worse than dropping the round.
  CENTRED: the representative nearest to 0 times the bin size, as in the paper:
    unbiased where nothing wraps.
  """

  POSTERIOR_MEAN = 'posterior_mean'
  CENTRED = 'centred'


def max_client_bins(modulus: int) -> int:
  """Returns the size, in bins, from which an entry carries no information.

  A float32 of 2**21 * modulus bins is a multiple of modulus / 4, so that its
  residue would be one of four values and say nothing of the value; without
  this limit the residue of still larger ones is 0, which reads as "no update".
  """
  return min(2**21 * modulus, _MAX_BINS)


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
  """Returns how many of `size` entries fall in each stripe, float64 [16]."""
  stripe = np.arange(NUM_STRIPES)
  return ((size - stripe + NUM_STRIPES - 1) // NUM_STRIPES).astype(np.float64)


def is_calibration(bin_sizes: tf.Tensor) -> tf.Tensor:
  """Tells a ladder of ascending bin sizes [16] from equal ones, scalar bool."""
  return bin_sizes[-1] > bin_sizes[0]


def dither_seed(
  leaves: Sequence[tf.Tensor], bin_sizes: tf.Tensor, shared_seed: tf.Tensor
) -> tf.Tensor:
  """Returns the seed of a client's offsets under dither.

  In an ordinary round it is the shared one. Bins of a calibration round are
  mostly so coarse that errors of shared offsets would add coherently, so that
  each client derives a seed from its values: independent between clients that
  differ at all, and the same when the round is repeated.

  Args:
    leaves: the client's tensors, at least one.
    bin_sizes: [NUM_STRIPES].
    shared_seed: int64 [2], of the round.

  Returns:
    int64 [2].
  """

  def of_values():
    seed = shared_seed
    for leaf in leaves:
      digest = tf.raw_ops.Fingerprint(
        data=tf.reshape(leaf, [1, -1]), method='farmhash64'
      )
      seed = tf.random.experimental.stateless_fold_in(
        seed, tf.bitcast(digest[0], tf.int64)
      )
    return seed

  return tf.cond(is_calibration(bin_sizes), of_values, lambda: shared_seed)


def dithered_clients(num_clients: tf.Tensor, bin_sizes: tf.Tensor) -> tf.Tensor:
  """Returns how many clients used the shared offsets, like `num_clients`."""
  none = tf.zeros_like(num_clients)
  return tf.where(is_calibration(bin_sizes), none, num_clients)


def uniform_offsets(num: int, seed: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
  """Draws `num` numbers uniform on [0, 1), one random word for every four.

  A 32-bit word w yields w, a w, a^2 w and a^3 w modulo 2^32 with an odd a. Each
  is exactly uniform, as multiplying by an odd number permutes the words. Two of
  one word are points of the lattice of a linear congruential generator with
  that multiplier, chosen by L'Ecuyer (1999, Mathematics of Computation 68) so
  that points spread evenly in 2 to 4 dimensions; their correlation is below
  1e-5, and offsets of different words are independent. Rounding needs no more:
  its error energy depends on single offsets and pairs of them.

  Args:
    num: Python int.
    seed: int32 or int64 tensor [2].
    dtype: tf.float32 or tf.float64.

  Returns:
    Tensor [num] of `dtype`, multiples of 2**-24 for float32 and of 2**-32 for
    float64. The same on every device.
  """
  num_words = -(-num // len(_MULTIPLIERS))
  words = tf.random.stateless_uniform(
    [1, num_words], seed, None, None, tf.uint32, alg='philox'
  )
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
  modulo `modulus`, the latter where the entry's offset is below the fraction of
  z. Entries of `max_client_bins(modulus)` bins or more, and NaN, become a
  residue drawn uniformly.

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
  rows = to_stripes(values)
  offsets = uniform_offsets(rows.shape.num_elements(), seed, rows.dtype)
  bins = tf.reshape(_divide_stripes(rows, bin_sizes), [-1])
  limit = max_client_bins(modulus)
  if not _is_power_of_two(modulus):
    limit = min(limit, _MAX_FLOAT_REDUCTION)

  def round_all():
    return _reduce_whole(_round_up_above(bins, offsets), modulus)

  def round_readable():
    readable = tf.abs(bins) < max_client_bins(modulus)
    safe = tf.where(readable, bins, tf.floor(offsets * modulus))
    integers = tf.cast(_round_up_above(safe, offsets), tf.int32)
    return reduce_modulo(integers, modulus)

  # If the energy is below limit^2 then so is every entry, and NaN is not below:
  # one pass over the tensor where a test of each entry takes four.
  is_small = tf.nn.l2_loss(bins) < 0.25 * float(limit) ** 2
  residues = tf.cond(is_small, round_all, round_readable)
  return from_stripes(residues, values.shape)


def _divide_stripes(rows: tf.Tensor, bin_sizes: tf.Tensor) -> tf.Tensor:
  """Divides rows [n, NUM_STRIPES] by bin sizes, in the widest rows that fit."""
  wide, repeats = widen(rows)
  return wide / tf.tile(tf.cast(bin_sizes, rows.dtype), [repeats])


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
  if _is_power_of_two(modulus) or modulus > _MAX_FLOAT_REDUCTION:
    return reduce_modulo(tf.cast(floats, tf.int32), modulus)
  quotient = tf.floor((floats + 0.5) * (1.0 / modulus))
  return tf.cast(floats - quotient * float(modulus), tf.int32)


def _is_power_of_two(number: int) -> bool:
  return number & (number - 1) == 0


def reduce_modulo(integers: tf.Tensor, modulus: int) -> tf.Tensor:
  """Reduces integers to `0 .. modulus - 1`, with the same shape and dtype."""
  if _is_power_of_two(modulus):
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
  if _is_power_of_two(modulus):
    half = tf.constant(modulus // 2, residues.dtype)
    return reduce_modulo(residues + half, modulus) - half
  wrapped = tf.cast(residues >= (modulus + 1) // 2, residues.dtype)
  return residues - tf.constant(modulus, residues.dtype) * wrapped


def centred_bins(
  residues: tf.Tensor,
  dither_seed: tf.Tensor,
  num_clients: tf.Tensor,
  *,
  modulus: int,
  rounding: Rounding,
  dtype: tf.DType,
) -> tf.Tensor:
  """Reads summed residues as bins in `[-modulus / 2, modulus / 2)`.

  Args:
    residues: int32 tensor of static shape, the sum modulo `modulus`.
    dither_seed: int32 or int64 tensor [2], the seed the clients encoded with;
      not used for stochastic rounding.
    num_clients: scalar number of summands that used the offsets of
      `dither_seed`, 0 if each had its own; not used for stochastic rounding.
    modulus: Python int in 2 .. 2**30.
    rounding: the clients' mode.
    dtype: tf.float32 or tf.float64.

  Returns:
    `dtype` tensor [rows, NUM_STRIPES]: whole numbers for stochastic rounding;
    for dither the mean of the offsets' sum is subtracted and the difference is
    centred again. Padding added by `to_stripes` reads as an arbitrary number
    for dither.
  """
  bins = tf.cast(centre(to_stripes(residues), modulus), dtype)
  if rounding is Rounding.STOCHASTIC:
    return bins
  offsets = tf.reshape(
    uniform_offsets(bins.shape.num_elements(), dither_seed, dtype), bins.shape
  )
  # `encode` rounds up where offset < fraction, so its z + u has u = 1 - offset.
  bins -= tf.cast(num_clients, dtype) * (0.5 - offsets)
  return bins - modulus * tf.floor(bins / modulus + 0.5)

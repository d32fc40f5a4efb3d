# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Discrete Gaussian noise around real centres, drawn from an exact table.

The discrete Gaussian of standard deviation s on the integers, centred at a real
number y, takes the value j with probability proportional to
exp(-(j - y)^2 / (2 s^2)). One draw rounds y and adds noise to it: for s of
`STDDEV_BINS` its mean is y up to 1e-15 and its variance s^2 up to 1e-14. The
centre may be any real number; here it is a multiple of 1 / `GRID`, its fraction
being a row of a table.

A row is drawn from by the alias method (Walker 1977; Vose 1991): a column is
chosen uniformly, and the result is the column's own integer or its alias,
whichever a random number below or above the column's threshold says. Rows are
made of Python integers, with no floats: probabilities are multiples of
2**-`PROBABILITY_BITS`, each off by less than two. Drawing compares integers
too. The table is made on first use, in about a second, rather than kept as a
file: it is the same on every machine, and a test compares it with mpmath. A
graph holds it packed (`packed_rows`), bit for bit.

No TFF here: everything is Python integers, or TensorFlow on dense tensors.
"""

import decimal
import fractions
import functools
from typing import List, NamedTuple, Tuple

import numpy as np
import tensorflow as tf

from tff_autotune_secagg.numerics import seeds
from tff_autotune_secagg.numerics.privacy import packed_rows

# Variance of one draw, 1.4^2, in squared bins. With less variance sums are no
# longer close to a sampled Gaussian, see `distributed_noise`; more costs bits.
VARIANCE_BINS = fractions.Fraction(49, 25)
STDDEV_BINS = 1.4

# Centres are multiples of 1 / GRID bins.
_GRID_BITS = 12
GRID = 2**_GRID_BITS

# Integers of a row, counted from the floor of the centre. The next integer
# outside is 16 bins or more away: 11 standard deviations, probability below
# 1e-28.
_COLUMN_BITS = 5
_NUM_COLUMNS = 2**_COLUMN_BITS
FIRST_OFFSET = 1 - _NUM_COLUMNS // 2

# One random word of 32 bits serves one coordinate: from the top, bits compared
# with the threshold, the column, and the rounding of the centre to the grid.
_HIGH_BITS = 32 - _COLUMN_BITS - _GRID_BITS
_COLUMN_MASK = (_NUM_COLUMNS - 1) << _GRID_BITS
_TIE_LIMIT = 2 ** (_COLUMN_BITS + _GRID_BITS)

# Bits compared in the one case of 2**15 in which the high bits are equal.
_LOW_BITS = 63
_COLUMN_PROBABILITY = 2 ** (_HIGH_BITS + _LOW_BITS)
PROBABILITY_BITS = _COLUMN_BITS + _HIGH_BITS + _LOW_BITS

# Binary and decimal digits of the intermediate results. The context names all
# of its settings: what it does not name would be the caller's.
_FIXED_POINT_BITS = 256
_DECIMALS = decimal.Context(
  prec=100,
  rounding=decimal.ROUND_HALF_EVEN,
  Emin=-999999,
  Emax=999999,
  capitals=1,
  clamp=0,
  flags=[],
  traps=[],
)

# Differences between neighbouring fractions that leave fewest bytes of a row.
_ENTRIES_ORDER, _LOW_BITS_ORDER = 2, 6

# The seeds that a seed is split into.
_WORDS, _LOW_BITS_OF_TIES = 0, 1
_NUM_STREAMS = 2


class AliasTable(NamedTuple):
  """Rows for all fractions; entry `column * GRID + fraction` of each array.

  Attributes:
    entries: int32 [32 * 4096]. The top bits, read as a signed number, are the
      high bits of the threshold less half their range; the next ones are the
      alias.
    low_bits: int64 [32 * 4096], the other 63 bits of the threshold.
  """

  entries: np.ndarray
  low_bits: np.ndarray


def _fixed_point_exp(exponent: fractions.Fraction) -> int:
  """Returns exp(exponent) in units of 2**-_FIXED_POINT_BITS."""
  with decimal.localcontext(_DECIMALS):
    ratio = decimal.Decimal(exponent.numerator) / exponent.denominator
    return int(ratio.exp() * 2**_FIXED_POINT_BITS)


def probabilities() -> List[List[int]]:
  """Returns the probabilities of all rows, as integers.

  The weight of offset m for the fraction y is exp(-m^2 / 2 s^2) exp(m y / s^2):
  the factor that they share drops out.

  Returns:
    For each fraction 0 .. GRID - 1, in units of 1 / GRID bins, the
    probabilities of the offsets FIRST_OFFSET .. FIRST_OFFSET + 31 from the
    floor of the centre in units of 2**-PROBABILITY_BITS. They add up to 1
    exactly, and each is off by less than two units, the neglect of the integers
    outside included.
  """
  offsets = range(FIRST_OFFSET, FIRST_OFFSET + _NUM_COLUMNS)
  gaussian = [_fixed_point_exp(-m * m / (2 * VARIANCE_BINS)) for m in offsets]
  step = _fixed_point_exp(1 / (GRID * VARIANCE_BINS))
  ratio = 1 << _FIXED_POINT_BITS
  rows = []
  for _ in range(GRID):
    tilt, total, sums = 1 << _FIXED_POINT_BITS, 0, [0]
    for weight in gaussian:
      total += weight * tilt
      sums.append(total)
      tilt = tilt * ratio >> _FIXED_POINT_BITS
    bounds = [(partial << PROBABILITY_BITS) // total for partial in sums]
    rows.append([high - low for low, high in zip(bounds, bounds[1:])])
    ratio = ratio * step >> _FIXED_POINT_BITS
  return rows


def _alias_row(row: List[int]) -> List[Tuple[int, int]]:
  """Returns (threshold, alias) of each column; probabilities as integers.

  Out of `_COLUMN_PROBABILITY`, a column yields itself for numbers below its
  threshold and otherwise its alias.
  """
  left = list(row)
  columns = [(0, column) for column in range(len(row))]
  small = [c for c, weight in enumerate(left) if weight < _COLUMN_PROBABILITY]
  large = [c for c, weight in enumerate(left) if weight > _COLUMN_PROBABILITY]
  while small:
    column, donor = small.pop(), large[-1]
    columns[column] = (left[column], donor)
    left[donor] -= _COLUMN_PROBABILITY - left[column]
    if left[donor] <= _COLUMN_PROBABILITY:
      large.pop()
      if left[donor] < _COLUMN_PROBABILITY:
        small.append(donor)
  return columns


@functools.lru_cache(maxsize=None)
def alias_table() -> AliasTable:
  """Returns the table that `sample` draws from, unpacked."""
  half_range = 2 ** (_HIGH_BITS - 1)
  entries = np.empty([_NUM_COLUMNS, GRID], np.int32)
  low_bits = np.empty([_NUM_COLUMNS, GRID], np.int64)
  for fraction, row in enumerate(probabilities()):
    for column, (threshold, alias) in enumerate(_alias_row(row)):
      high, low = divmod(threshold, 2**_LOW_BITS)
      entry = (high - half_range) * _TIE_LIMIT + (alias << _GRID_BITS)
      entries[column, fraction] = entry
      low_bits[column, fraction] = low
  return AliasTable(np.reshape(entries, [-1]), np.reshape(low_bits, [-1]))


@functools.lru_cache(maxsize=None)
def _packed_table() -> Tuple[packed_rows.PackedRows, packed_rows.PackedRows]:
  """The arrays of `alias_table`: 0.13 MB in a graph, in place of 1.6 MB."""
  entries, low_bits = (
    np.reshape(array, [_NUM_COLUMNS, GRID]) for array in alias_table()
  )
  return (
    packed_rows.pack(entries, order=_ENTRIES_ORDER),
    packed_rows.pack(low_bits, order=_LOW_BITS_ORDER, bits=_LOW_BITS),
  )


def _entries() -> tf.Tensor:
  """`AliasTable.entries`, unpacked by the graph."""
  rows = packed_rows.unpack(_packed_table()[0])
  return tf.cast(tf.reshape(rows, [-1]), tf.int32)


def _low_bits() -> tf.Tensor:
  """`AliasTable.low_bits`, unpacked by the graph."""
  return tf.reshape(packed_rows.unpack(_packed_table()[1]), [-1])


def random_words(num: int, seed: tf.Tensor) -> tf.Tensor:
  """Draws one word for each coordinate.

  Args:
    num: Python int.
    seed: int32 or int64 tensor [2], for one client and round only. All of its
      bits count.

  Returns:
    int32 tensor [num], uniform on all of int32. The same on every device.
  """
  return tf.random.stateless_uniform(
    [num],
    seeds.split(seed, _NUM_STREAMS)[_WORDS],
    None,
    None,
    tf.int32,
    alg='philox',
  )


def round_to_grid(scaled: tf.Tensor, words: tf.Tensor) -> tf.Tensor:
  """Rounds real numbers up or down at random, unbiased.

  Uses the lowest bits of the words, which `sample` does not: the noise is
  independent of the centre even though one word serves both.

  Args:
    scaled: float32 or float64 tensor [num], centres in units of 1 / GRID bins.
    words: int32 tensor [num] from `random_words`.

  Returns:
    Tensor like `scaled` of whole numbers at most 1 away. Their means are off by
    less than 2**-12, and by half a unit in the last place of the dtype. 0, NaN
    and infinities stay.
  """
  low = tf.bitwise.bitwise_and(words, GRID - 1)
  return tf.floor(scaled + tf.cast(low, scaled.dtype) * (1.0 / GRID))


def sample(
  grid_points: tf.Tensor, words: tf.Tensor, seed: tf.Tensor
) -> tf.Tensor:
  """Draws integers from the discrete Gaussian around each centre.

  Guarantees:
    Every integer has its row's probability, given words that are uniform; draws
    of different words are independent.

  Args:
    grid_points: int32 tensor [num], the centres in units of 1 / GRID bins; of
      any size below 2**31 - 2**17.
    words: int32 tensor [num] from `random_words`.
    seed: the seed `words` were drawn from.

  Returns:
    int32 tensor [num], in bins.
  """
  index = tf.bitwise.bitwise_or(
    tf.bitwise.bitwise_and(grid_points, GRID - 1),
    tf.bitwise.bitwise_and(words, _COLUMN_MASK),
  )
  # `gather_nd` takes two thirds of the time of `gather`.
  entry = tf.gather_nd(_entries(), index[:, tf.newaxis])
  # If the word is below the threshold, it is the smaller number, and holds its
  # own column. Otherwise the entry is smaller, and holds the alias.
  drawn = tf.bitwise.bitwise_and(tf.minimum(words, entry), _COLUMN_MASK)
  drawn = _settle_ties(drawn, words, entry, index, seed)
  # The columns are multiples of GRID, so that they do not disturb the fraction.
  floor = tf.bitwise.right_shift(grid_points + drawn, _GRID_BITS)
  return floor + FIRST_OFFSET


def _settle_ties(drawn, words, entry, index, seed):
  """Draws anew where the high bits of word and threshold are equal."""
  differing = tf.bitcast(tf.bitwise.bitwise_xor(words, entry), tf.uint32)
  ties = tf.where(differing < _TIE_LIMIT)
  word, tied_entry, tied_index = (
    tf.gather_nd(tensor, ties) for tensor in (words, entry, index)
  )
  low = tf.random.stateless_uniform(
    tf.shape(word),
    seeds.split(seed, _NUM_STREAMS)[_LOW_BITS_OF_TIES],
    None,
    None,
    tf.int64,
    alg='philox',
  )
  low = tf.bitwise.bitwise_and(low, tf.int64.max)
  threshold = tf.gather(_low_bits(), tied_index)
  settled = tf.bitwise.bitwise_and(
    tf.where(low < threshold, word, tied_entry), _COLUMN_MASK
  )
  return tf.tensor_scatter_nd_update(drawn, ties, settled)

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""A round of which a prediction is subtracted before anything is read.

Residues hold the sum z modulo W. A server that has a prediction p of it knows
those of z - c p as well, for any c, and needs room for this *residual* only. c
is chosen by the residues themselves: the residual that spreads least has the
largest mean cosine. All that is done to a sum is then done to the residual, and
c p is added to the result.

The prediction comes from earlier rounds and is rotated anew, so that for a
given c the residual is as normal as the sum, and is decoded as well. c is one
number from thousands of coordinates; what its choice adds is far below the
rounding.

Three things differ from a sum of that size:

- An error as large as the residual is a small one of the sum. The residual is
  let through unshrunk until its error is that of a dropped *sum*.
- A residual that cannot be told from the rounding is no lost sum. It is as
  small as a server may wish: the next bins are those for the largest residual
  that would have been missed, or for half of what was observed.
- A sum that cannot be read although predictions could may be one that is not
  what was predicted. Its size is then known, about that of the prediction, and
  nothing has to be found out by a calibration.

Calibrations are read without a prediction: they ask for the size of the sum.
"""

import math
from typing import NamedTuple, Optional, Sequence

import numpy as np
import tensorflow as tf

from tff_autotune_secagg.numerics.reading import fitting
from tff_autotune_secagg.numerics.reading import signal_bound
from tff_autotune_secagg.numerics.reading import stripes

# Of the coefficients that are tried. It bounds what a prediction is worth:
# the residual keeps about 0.05^2 / 12 of the prediction's square. That is as
# well: a much smaller residual would have a peak that no step hits.
_STEP = 0.05
COEFFICIENTS = tuple(_STEP * np.arange(29))

# A coefficient must win by so many standard errors.
_WINS_BY = 5.0

# Coordinates that they are tried on.
MAX_SAMPLE = 2**16

# One client's rounding follows from its size, which is not the residual's.
_FEWEST_CLIENTS = 2.0

# A sum is taken for one that was not as predicted if the prediction is so much
# of the largest size that could have been read.
_EXPLAINS = 0.8

# Of more periods than this no step of the coefficients finds a residual.
_MAX_PERIODS = 1e3

# Rows of stripes of each leaf; None for leaves without coordinates.
_Leaves = Sequence[Optional[tf.Tensor]]


class _Chosen(NamedTuple):
  """The coefficient and what belongs to it; float64 scalars, in bins^2.

  Attributes:
    coefficient: c.
    prediction: mean square of p.
    removed: mean square of the sum less that of the residual.
    removed_error: standard error of `removed`.
  """

  coefficient: tf.Tensor
  prediction: tf.Tensor
  removed: tf.Tensor
  removed_error: tf.Tensor


class Subtraction:
  """A prediction in bins, its coefficient, and a round without it."""

  def __init__(
    self,
    expected: Sequence[tf.Tensor],
    leaf_bins: _Leaves,
    bin_sizes: tf.Tensor,
    num_clients: tf.Tensor,
    modulus: int,
  ):
    """Chooses the coefficient.

    Args:
      expected: the rotated prediction of the sum, a float32 tensor for each
        leaf, finite.
      leaf_bins: centred bins of the sum without its dither, float32 or float64
        [rows, NUM_STRIPES]; None for leaves without coordinates.
      bin_sizes: float64 [NUM_STRIPES], those of the round.
      num_clients: float64 scalar, clients in the sum.
      modulus: Python int.
    """
    self._modulus = modulus
    self._bin_size = bin_sizes[0]
    self._is_ordinary = tf.logical_not(stripes.is_ladder(bin_sizes))
    is_usable = tf.logical_and(
      self._is_ordinary, num_clients >= _FEWEST_CLIENTS
    )
    scale = tf.minimum(1.0 / self._bin_size, 1e30)
    scale = tf.where(is_usable, scale, tf.zeros_like(scale))
    scale = tf.cast(scale, tf.float32)
    self._bins = _within_reach(
      [
        None if bins is None else stripes.to_stripes(leaf) * scale
        for leaf, bins in zip(expected, leaf_bins)
      ],
      _MAX_PERIODS * modulus,
    )
    sizes = [leaf.shape.num_elements() for leaf in expected]
    self._chosen = _choose(
      *_sample(leaf_bins, self._bins, sizes), modulus=modulus
    )
    self._is_used = self._chosen.coefficient > 0.0

  def without(self, leaf_bins: _Leaves) -> _Leaves:
    """Returns bins without the prediction, centred again.

    Args:
      leaf_bins: as for the constructor, with the dither or without it.
    """

    def subtract(bins, predicted):
      shift = tf.cast(self._chosen.coefficient, tf.float32) * predicted
      bins -= tf.cast(shift, bins.dtype)
      return bins - self._modulus * tf.floor(bins / self._modulus + 0.5)

    return self._map(subtract, leaf_bins)

  def put_back(
    self, decoded: _Leaves, fitted: fitting.WrappedNormalFit
  ) -> _Leaves:
    """Returns values with the prediction; nothing if nothing was read.

    Args:
      decoded: values of the residual, of the dtypes and shapes of the bins.
      fitted: of the residual.
    """
    scale = self._chosen.coefficient * self._bin_size
    scale = tf.where(fitted.is_blind, tf.zeros_like(scale), scale)

    def add(rows, predicted):
      return rows + tf.cast(tf.cast(scale, tf.float32) * predicted, rows.dtype)

    return self._map(add, decoded)

  def _map(self, function, leaves):
    return [
      None if rows is None else function(rows, predicted)
      for rows, predicted in zip(leaves, self._bins)
    ]

  def of_residual(
    self, fitted: fitting.WrappedNormalFit
  ) -> fitting.WrappedNormalFit:
    """Returns the fit, with the size and the gains of a residual.

    A size for a residual below the rounding, and the gain up to which it errs
    by no more than a dropped sum.
    """
    is_below = self._is_below(fitted, tf.zeros_like(fitted.sum_stddev))
    stddev = tf.where(is_below, fitted.readable_from, fitted.sum_stddev)
    observed = tf.maximum(tf.square(fitted.observed_stddev), 1e-300)
    most = tf.minimum(tf.square(stddev) / observed, 1.0)
    return fitted._replace(
      sum_stddev=stddev,
      gain=tf.where(is_below, most, fitted.gain),
      max_gain=self._max_gain(fitted.max_gain, observed),
    )

  def _max_gain(self, max_gain, observed):
    """Returns the gain h from where on an error exceeds that of a dropped sum.

    The error S_r^2 - 2 h S_r^2 + h^2 sigma_o^2 is at most S_r^2 + M, with S_r^2
    of the residual and M what was removed: h^2 - max_gain h - M / sigma_o^2 is
    at most 0.

    Args:
      max_gain: that for M = 0.
      observed: sigma_o^2.
    """
    doubt = signal_bound.DOUBT * self._chosen.removed_error
    removed = tf.maximum(self._chosen.removed - doubt, 0.0)
    removed = tf.where(self._is_used, removed, tf.zeros_like(removed))
    removed = removed * tf.square(self._bin_size)
    half = max_gain / 2.0
    return tf.minimum(half + tf.sqrt(half * half + removed / observed), 2.0)

  def for_tuner(
    self, fitted: fitting.WrappedNormalFit
  ) -> fitting.WrappedNormalFit:
    """Returns the fit, with a size for a sum that was not as predicted.

    Args:
      fitted: of `of_residual`.
    """
    fitted = self._no_leap(fitted)
    stddev = self._bin_size * tf.sqrt(self._chosen.prediction)
    is_other = tf.logical_and(fitted.is_blind, self._is_ordinary)
    is_other = tf.logical_and(is_other, stddev > _EXPLAINS * fitted.readable_to)
    is_other = tf.logical_and(is_other, tf.math.is_finite(stddev))
    return fitted._replace(
      sum_stddev=tf.where(is_other, stddev, fitted.sum_stddev),
      observed_stddev=tf.where(is_other, stddev, fitted.observed_stddev),
      is_blind=tf.logical_and(fitted.is_blind, tf.logical_not(is_other)),
      # Of a blind sum it is so large that nothing would be learned.
      log_stddev_error=tf.where(
        is_other, tf.zeros_like(stddev), fitted.log_stddev_error
      ),
    )

  def _no_leap(
    self, fitted: fitting.WrappedNormalFit
  ) -> fitting.WrappedNormalFit:
    """Returns the fit with a size that a residual below the rounding may have.

    The rounding of clients that agree is less than that of independent ones, so
    that their residual can look like rounding alone and be most of what was
    observed. Bins for a much smaller one would lose the next round.
    """
    is_below = self._is_below(fitted, fitted.readable_from)
    likely = tf.maximum(fitted.sum_stddev, fitted.observed_stddev[0] / 2.0)
    stddev = tf.where(is_below, likely, fitted.sum_stddev)
    return fitted._replace(sum_stddev=stddev)

  def _is_below(self, fitted, size):
    """Tells whether a residual was looked at and is no larger than a size."""
    is_nothing = tf.logical_or(fitted.is_blind, fitted.is_zero)
    is_below = tf.logical_and(
      tf.logical_not(is_nothing), fitted.sum_stddev <= size
    )
    return tf.logical_and(is_below, self._is_used)

  def share(self, fitted: fitting.WrappedNormalFit) -> tf.Tensor:
    """Returns the square of the residual over that of the sum.

    Args:
      fitted: of `of_residual`.

    Returns:
      float64 scalar in 0 to 1: 1 - rho^2 for a correlation rho of sum and
      prediction. 1 where nothing is subtracted, and for an unreadable sum.
    """
    residual = tf.square(fitted.sum_stddev / self._bin_size)
    more = tf.maximum(self._chosen.removed, 0.0)
    is_used = tf.logical_and(self._is_used, residual > 0.0)
    rest = residual / tf.maximum(residual + more, 1e-300)
    return tf.where(is_used, rest, tf.ones_like(rest))


def _within_reach(predicted: _Leaves, limit: float) -> _Leaves:
  """Returns predictions, or zeros if any coordinate is beyond a limit."""
  largest = [
    tf.reduce_max(tf.abs(rows)) for rows in predicted if rows is not None
  ]
  is_near = tf.reduce_all([tf.constant(True), *(x < limit for x in largest)])
  return [
    None if rows is None else tf.where(is_near, rows, tf.zeros_like(rows))
    for rows in predicted
  ]


def _sample(
  leaf_bins: _Leaves,
  predicted: _Leaves,
  sizes: Sequence[int],
):
  """Returns bins and predictions of at most `MAX_SAMPLE` coordinates.

  A part of each leaf.

  Returns:
    Two float32 tensors [m], and how many of the m are coordinates.
  """
  total = max(sum(sizes), 1)
  bins, shifts, count = [_nothing()], [_nothing()], 0
  for rows, shift, size in zip(leaf_bins, predicted, sizes):
    if rows is None:
      continue
    wanted = -(-size * min(total, MAX_SAMPLE) // total)
    num_rows = -(-wanted // stripes.NUM_STRIPES)
    bins.append(tf.reshape(tf.cast(rows[:num_rows], tf.float32), [-1]))
    shifts.append(tf.reshape(shift[:num_rows], [-1]))
    count += min(size, num_rows * stripes.NUM_STRIPES)
  return tf.concat(bins, 0), tf.concat(shifts, 0), count


def _nothing() -> tf.Tensor:
  return tf.zeros([0], tf.float32)


def _choose(
  bins: tf.Tensor, predicted: tf.Tensor, count: int, *, modulus: int
) -> _Chosen:
  """Returns the coefficient of least spread; 0 unless it is clearly better.

  Args:
    bins: float32 [m], centred, padding is 0.
    predicted: float32 [m], bins.
    count: Python int, how many of them are coordinates.
    modulus: Python int.
  """
  if not count:
    zero = tf.zeros([], tf.float64)
    return _Chosen(zero, zero, zero, zero)
  best = tf.argmax(_cosine_sums(bins, predicted, modulus), output_type=tf.int32)
  coefficient = tf.gather(tf.constant(COEFFICIENTS, tf.float64), best)
  residual = bins - tf.cast(coefficient, tf.float32) * predicted
  # By pairs: what the rounding does to a coordinate, it does to both.
  angle = math.pi / modulus
  before, after = (
    tf.cast(tf.square(tf.sin(angle * x)), tf.float64) for x in (bins, residual)
  )
  better = before - after
  mean = tf.reduce_sum(better) / count
  variance = tf.reduce_sum(tf.square(better)) / count - tf.square(mean)
  limit = _WINS_BY * tf.sqrt(tf.maximum(variance, 0.0) / count)
  wins = tf.logical_and(best > 0, mean > limit)
  coefficient = tf.where(wins, coefficient, tf.zeros_like(coefficient))
  # By Stein's identity E p sin(a r) = a E p r E cos(a r) for normal p and r.
  predicted = tf.cast(predicted, tf.float64)
  cosine = tf.maximum(1.0 - 2.0 * tf.reduce_sum(after) / count, 1e-3)
  sines = tf.sin(2.0 * angle * tf.cast(residual, tf.float64))
  products = sines / (2.0 * angle * cosine)
  removed = coefficient * (coefficient * predicted + 2.0 * products) * predicted
  mean = tf.reduce_sum(removed) / count
  variance = tf.reduce_sum(tf.square(removed)) / count - tf.square(mean)
  return _Chosen(
    coefficient=coefficient,
    prediction=tf.reduce_sum(tf.square(predicted)) / count,
    removed=mean,
    removed_error=tf.sqrt(tf.maximum(variance, 0.0) / count),
  )


def _cosine_sums(bins, predicted, modulus):
  """Returns sums of cos(2 pi (bins - c predicted) / modulus), all c.

  float32 [29]. Padding adds 1.
  """
  # A turn for each step, in the place of a sine: a tenth of the time.
  scale = 2.0 * math.pi / modulus
  point, turn = (
    tf.complex(tf.cos(angle), tf.sin(angle))
    for angle in (scale * bins, -_STEP * scale * predicted)
  )
  sums = []
  for _ in COEFFICIENTS:
    sums.append(tf.reduce_sum(tf.math.real(point)))
    point *= turn
  return tf.stack(sums)

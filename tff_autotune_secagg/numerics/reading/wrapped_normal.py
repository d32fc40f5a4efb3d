# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The standard deviation of a normal that is seen only modulo a period.

Residues of the summed, rotated updates are a sample of a wrapped normal around
0: the sum of integers that are normal up to rounding, reduced modulo k. Its
first trigonometric moment about 0 is `C = E cos(2 pi S / k) =
exp(-(2 pi s / k)^2 / 2)` for a standard deviation of s bins (Mardia and Jupp
2000, section 3.5.7), which the integer lattice does not bias.

The paper (Bonawitz et al. 2019, arXiv:1912.00131, section 4) fits by the length
of the mean direction, which does not know where the centre is. The random signs
of the rotation put the centre at 0, so that the cosine alone is the better
statistic: it needs no bias correction, a sum that is one constant is read as
size and not as centre, and a uniform sum is told apart at a smaller sample.

The working quantity is the mean versine 1 - C = mean of 2 sin^2(pi S / k),
which keeps its relative accuracy for standard deviations far below one bin.
"""

import math

import tensorflow as tf

# A sum is readable if C is this many standard errors above what uniform data
# give. The one-sided false alarm rate of a normal is 2.9e-7 per statistic.
BLIND_Z = 5.0

# Standard deviations from this part of the period on decode to 0: what the
# posterior mean could still save there is below 1e-4 of the squared norm.
MAX_PERIODS = 0.6

# The posterior mean needs no smaller standard deviation to see the edges.
_MIN_PERIODS = 0.12

_ROWS_OF_SHORT_SUM = 64


def sum_versines(bins: tf.Tensor, modulus: int) -> tf.Tensor:
  """Sums 2 sin^2(pi * bins / modulus) over the rows.

  Args:
    bins: float32 or float64 tensor [rows, ...] of static shape, in bins, in
      `[-modulus / 2, modulus / 2]`. Those of 0, such as padding, add nothing.
    modulus: Python int, the period in bins.

  Returns:
    float64 tensor [...]; its relative error is a few units in the last place
    of the dtype of `bins`, however small the bins are.
  """
  sines = tf.sin(bins * (math.pi / modulus))
  # Short sums in the dtype of `bins`, where there is little to lose; the long
  # sum over them in float64.
  block = math.gcd(bins.shape[0], _ROWS_OF_SHORT_SUM)
  blocks = [bins.shape[0] // block, block] + bins.shape[1:].as_list()
  short = tf.reduce_sum(tf.reshape(sines * sines, blocks), axis=1)
  return 2.0 * tf.reduce_sum(tf.cast(short, tf.float64), axis=0)


def stddev_periods(mean_versine: tf.Tensor) -> tf.Tensor:
  """Returns the standard deviation whose mean versine is given.

  Args:
    mean_versine: float64 tensor in [0, 2].

  Returns:
    float64 tensor, periods: 0 for 0, infinity where the mean cosine is not
    positive. Never NaN.
  """
  resolved = mean_versine < 1.0
  safe = tf.where(resolved, mean_versine, tf.zeros_like(mean_versine))
  periods = tf.sqrt(-2.0 * tf.math.log1p(-safe)) / (2.0 * math.pi)
  return tf.where(resolved, periods, math.inf * tf.ones_like(periods))


def mean_cosine(periods: tf.Tensor) -> tf.Tensor:
  """Returns the mean cosine of a wrapped normal of that standard deviation."""
  return tf.exp(-2.0 * math.pi**2 * tf.square(periods))


def log_variance_information(
  cosine: tf.Tensor, num_coordinates: tf.Tensor
) -> tf.Tensor:
  """Returns the Fisher information of a mean cosine about ln(stddev^2).

  With C = exp(-2 pi^2 p^2) at p periods, var(C) = (1 - C^2)^2 / 2N for a
  wrapped normal and d C / d ln p^2 = C ln C.

  Args:
    cosine: float64 tensor C, as of `mean_cosine`.
    num_coordinates: float64 tensor N, broadcastable.

  Returns:
    float64 tensor; N / 2, its limit, for standard deviations near 0.
  """
  # The bounds keep (C ln C)^2 / (1 - C^2)^2 at its limit, 1/4, without 0 / 0.
  cosine = tf.clip_by_value(cosine, 1e-300, 1.0 - 1e-9)
  slope = tf.square(cosine * tf.math.log(cosine))
  return 2.0 * num_coordinates * slope / tf.square(1.0 - tf.square(cosine))


def fewest_coordinates(modulus: int) -> int:
  """Returns from how many coordinates on any sum `is_readable`: 13, or 26."""
  return math.floor(BLIND_Z**2 / _precision(modulus)) + 1


def _precision(modulus: int) -> float:
  """Inverse variance of the cosine of one uniform residue."""
  return 1.0 if modulus == 2 else 2.0


def is_readable(
  mean_versine: tf.Tensor, num_coordinates: tf.Tensor, modulus: int
) -> tf.Tensor:
  """Tells where the mean cosine is significantly above that of uniform data.

  For num_coordinates uniform residues the mean cosine has mean 0 and variance
  1 / (2 num_coordinates), or 1 / num_coordinates for a modulus of 2.

  Args:
    mean_versine: float64 tensor.
    num_coordinates: float64 tensor, broadcastable; 0 are never readable.
    modulus: Python int, number of values a residue has.

  Returns:
    bool tensor; True for uniform data with probability about 2.9e-7.
  """
  cosine_squared = tf.square(1.0 - mean_versine)
  significant = (
    _precision(modulus) * num_coordinates * cosine_squared > BLIND_Z**2
  )
  return tf.logical_and(mean_versine < 1.0, significant)


def readable_periods(num_coordinates: tf.Tensor, modulus: int) -> tf.Tensor:
  """Returns the largest standard deviation that `is_readable`, in periods.

  float64 like `num_coordinates`; 0 where nothing is readable.
  """
  precision = 1.0 if modulus == 2 else 2.0
  cosine = BLIND_Z / tf.sqrt(precision * num_coordinates)
  return stddev_periods(tf.maximum(1.0 - cosine, 0.0))


def posterior_mean_periods(x: tf.Tensor, periods: tf.Tensor) -> tf.Tensor:
  """Returns the mean of an unwrapped normal given its value modulo 1.

  The candidates x + j, weighted by the normal density, for j in -2..2; with a
  standard deviation of at most `MAX_PERIODS` the rest is below 3e-4 periods.

  Args:
    x: float32 or float64 tensor [..., S] in [-1/2, 1/2], in periods.
    periods: tensor [S], standard deviation of the unwrapped variable, periods.

  Returns:
    Tensor like `x`: x itself up to shrinkage near the edges, 0 at the edges and
    where `periods` exceeds `MAX_PERIODS`. Odd in x.
  """
  stddev = tf.clip_by_value(periods, _MIN_PERIODS, MAX_PERIODS)
  stddev = tf.cast(stddev, x.dtype)
  # With q = exp(-1 / 2 s^2) and e = exp(-x / s^2), the weight of j relative to
  # that of 0 is q^(j^2) e^j. The clip keeps e^2 inside float32.
  q = tf.exp(-0.5 / tf.square(stddev))
  e = tf.exp(-x / tf.square(stddev))
  inverse = 1.0 / e
  plus, minus = e + inverse, e - inverse
  q4 = tf.pow(q, 4)
  both = q4 * plus
  weight = (1.0 - 2.0 * q4) + plus * (q + both)
  shift = minus * (q + 2.0 * both)
  mean = x + shift / weight
  usable = tf.cast(periods <= MAX_PERIODS, x.dtype)
  return mean * usable


def normal_tail(x: tf.Tensor) -> tf.Tensor:
  """Upper tail Q(x) of the standard normal, accurate for large x."""
  return 0.5 * tf.math.erfc(x / math.sqrt(2.0))

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Variance that rounding to integers adds, for normal entries of any spread.

A client's entries are normal with a spread of s bins. By the Fourier series of
the sawtooth, stochastic rounding adds the variance

    v(s) = 1/6 - (1 / pi^2) sum_m exp(-2 pi^2 m^2 s^2) / m^2       [bins^2]

which is 1/6 for s of a bin or more and sqrt(2 / pi) s for s near 0, where an
entry is rarely rounded away from 0. The modes of shared offsets follow from the
same function, because the difference of two independent clients is normal with
a spread of sqrt(2) s. Assumed: clients are independent and of equal size.
"""

import math

import numpy as np
import tensorflow as tf

from tff_autotune_secagg.numerics import bisection
from tff_autotune_secagg.numerics import quantization

# Below this spread, v(s) is E|z| - E z^2 up to 1e-4; above it, four terms of
# the series are exact to 1e-9.
_SERIES_FROM = 0.25

# Subtractive dither of n clients has errors that add coherently below this
# spread of a client in bins.
MIN_DITHER_SPREAD = 0.5

# Largest spread told from the raw sum under dither: from MIN_DITHER_SPREAD on,
# the sum after the dither's subtraction says more.
_MAX_COARSE_SPREAD = 0.6


def stochastic_variance(spread: tf.Tensor) -> tf.Tensor:
  """Returns v(s) in bins^2 for float64 spreads s in bins."""
  spread = tf.maximum(spread, 0.0)
  small = math.sqrt(2 / math.pi) * spread - tf.square(spread)
  orders = (math.pi * np.arange(1, 5)) ** 2
  terms = tf.exp(-2.0 * orders * tf.square(spread)[..., tf.newaxis]) / orders
  series = 1 / 6 - tf.reduce_sum(terms, axis=-1)
  return tf.where(spread < _SERIES_FROM, small, series)


def decoded_variance(
  spread: tf.Tensor, num_clients: tf.Tensor, rounding: quantization.Rounding
) -> tf.Tensor:
  """Returns the rounding variance of the decoded sum over clients.

  Args:
    spread: float64, standard deviation of one client's entries in bins.
    num_clients: float64, number of clients.
    rounding: the clients' mode; dither is meant after its subtraction.

  Returns:
    float64, bins^2 per client: `num_clients` times it is the variance of the
    sum. For dither at most `num_clients / 12`, reached by equal clients.
  """
  if rounding is quantization.Rounding.STOCHASTIC:
    return stochastic_variance(spread)
  covariance = 1 / 12 - stochastic_variance(math.sqrt(2) * spread) / 2
  return 1 / 12 + (num_clients - 1) * covariance


def dithered_spread(
  versine: tf.Tensor, num_clients: tf.Tensor, modulus: int
) -> tf.Tensor:
  """Finds the spread of clients whose offsets are shared, from their raw sum.

  Where bins are coarse, most clients send 0 and the others agree, because they
  share the offset: the sum is far from normal. Given the offset U, however,
  clients are independent, so that with phi(U) = E exp(2 pi i q / k) of one

      E cos(2 pi S / k) = integral over U of Re phi(U)^n

  exactly. The spread that gives the observed mean is found by bisection.

  Args:
    versine: float64 tensor [S], mean versine of the sum before the dither is
      subtracted.
    num_clients: float64 scalar n of at least 1.
    modulus: Python int k.

  Returns:
    float64 tensor [S], a client's spread in bins, at most `_MAX_COARSE_SPREAD`;
    0 for 0.
  """
  high = math.log(_MAX_COARSE_SPREAD) + 0.0 * versine
  floor = high - 30.0

  def is_below(log_spread):
    expected = _dithered_versine(tf.exp(log_spread), num_clients, modulus)
    return expected < versine

  solution = bisection.bisect(is_below, floor, high)
  found = tf.logical_and(solution > floor + 1e-6, versine > 0.0)
  return tf.where(found, tf.exp(solution), tf.zeros_like(versine))


def _dithered_versine(spread, num_clients, modulus):
  """Returns 1 - E cos(2 pi S / k) for n clients with a shared offset."""
  # Nodes are even in ln U, where any spread far below a bin shows alike. Half
  # of the offsets are enough: U and 1 - U have conjugate phi.
  nodes, weights = np.polynomial.legendre.leggauss(96)
  logs = math.log(0.5) - 12.5 * (nodes + 1.0)
  offsets = np.exp(logs)
  weights = 2.0 * 12.5 * weights * offsets
  real, imaginary = 0.0, 0.0
  for j in range(1, 4):
    angle, before = 2 * np.pi * j / modulus, 2 * np.pi * (j - 1) / modulus
    cosines = math.cos(angle) - math.cos(before)
    sines = math.sin(angle) - math.sin(before)
    above = _normal_tail((j - offsets) / spread[:, tf.newaxis])
    below = _normal_tail((j - 1 + offsets) / spread[:, tf.newaxis])
    real += cosines * (above + below)
    imaginary += sines * (above - below)
  log_norm = 0.5 * tf.math.log1p(
    tf.maximum(real * (2.0 + real) + tf.square(imaginary), -1.0 + 1e-12)
  )
  angle = num_clients * tf.atan2(imaginary, 1.0 + real)
  versine = -tf.math.expm1(num_clients * log_norm)
  versine += (1.0 - versine) * 2.0 * tf.square(tf.sin(angle / 2))
  return tf.reduce_sum(versine * weights, axis=1)


def _normal_tail(x):
  """Upper tail of the standard normal."""
  return 0.5 * tf.math.erfc(x / math.sqrt(2.0))


def remove_rounding(
  observed_stddev_bins: tf.Tensor, num_clients: tf.Tensor
) -> tf.Tensor:
  """Solves observed^2 = sum^2 + n v(sum / sqrt(n)) for the sum's spread.

  Args:
    observed_stddev_bins: float64 tensor, the fitted spread of summed residues.
    num_clients: float64 scalar n; values below 1 are read as 1.

  Returns:
    float64 tensor in bins, at most `observed_stddev_bins`; 0 for 0. An observed
    spread below what rounding alone gives comes back as 0 as well.
  """
  num_clients = tf.maximum(num_clients, 1.0)
  target = tf.square(observed_stddev_bins)
  # Bisection of the logarithm: the answer may be 10 decades below.
  high = tf.math.log(tf.maximum(observed_stddev_bins, 1e-30))
  floor = high - 30.0

  def is_below(log_stddev):
    stddev = tf.exp(log_stddev)
    spread = stddev / tf.sqrt(num_clients)
    noise = num_clients * stochastic_variance(spread)
    return tf.square(stddev) + noise < target

  solution = bisection.bisect(is_below, floor, high)
  found = tf.logical_and(solution > floor + 1e-6, observed_stddev_bins > 0)
  return tf.where(found, tf.exp(solution), tf.zeros_like(target))

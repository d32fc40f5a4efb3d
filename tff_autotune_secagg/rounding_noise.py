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

import tensorflow as tf

from tff_autotune_secagg import _bisection
from tff_autotune_secagg import quantization

# Below this spread, v(s) is E|z| - E z^2 up to 1e-4; above it, four terms of the
# series are exact to 1e-9.
_SERIES_FROM = 0.25

# Subtractive dither of n clients has errors that add coherently below this
# spread of a client in bins.
MIN_DITHER_SPREAD = 0.5


def stochastic_variance(spread: tf.Tensor) -> tf.Tensor:
  """Returns v(s) in bins^2 for float64 spreads s in bins."""
  spread = tf.maximum(spread, 0.0)
  small = math.sqrt(2 / math.pi) * spread - tf.square(spread)
  series = 1 / 6 - sum(
      tf.exp(-2 * (math.pi * m) ** 2 * tf.square(spread)) / (math.pi * m) ** 2
      for m in range(1, 5)
  )
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


def raw_variance(
    spread: tf.Tensor, num_clients: tf.Tensor, rounding: quantization.Rounding
) -> tf.Tensor:
  """Like `decoded_variance`, for the sum before dither is subtracted.

  Unlike the decoded variance it grows with the spread, so that a spread far
  below one bin can be told from one of half a bin.
  """
  variance = stochastic_variance(spread)
  if rounding is quantization.Rounding.STOCHASTIC:
    return variance
  covariance = variance - stochastic_variance(math.sqrt(2) * spread) / 2
  return variance + (num_clients - 1) * covariance


def remove_rounding(
    observed_stddev_bins: tf.Tensor, num_clients: tf.Tensor, variance_fn
) -> tf.Tensor:
  """Solves observed^2 = sum^2 + n v(sum / sqrt(n)) for the sum's spread.

  Args:
    observed_stddev_bins: float64 tensor, the fitted spread of summed residues.
    num_clients: float64 scalar n; values below 1 are read as 1.
    variance_fn: maps (spread of a client, n) to bins^2 per client, such that
      the right side grows with the spread.

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
    noise = num_clients * variance_fn(spread, num_clients)
    return tf.square(stddev) + noise < target

  solution = _bisection.bisect(is_below, floor, high)
  found = tf.logical_and(solution > floor + 1e-6, observed_stddev_bins > 0)
  return tf.where(found, tf.exp(solution), tf.zeros_like(target))

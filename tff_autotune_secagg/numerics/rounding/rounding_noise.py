# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Variance that rounding to integers adds to normal coordinates of any size.

A client's coordinates are normal with a standard deviation of s bins. By the
Fourier series of the sawtooth, stochastic rounding adds the variance::

    v(s) = 1/6 - (1 / pi^2) sum_m exp(-2 pi^2 m^2 s^2) / m^2       [bins^2]

which is 1/6 for s of a bin or more and sqrt(2 / pi) s for s near 0, where a
coordinate is rarely rounded away from 0. The variance of shared offsets follows
from the same function, because the difference of two independent clients is
normal with a standard deviation of sqrt(2) s. Assumed: clients are independent
and of equal size.
"""

import math

import numpy as np
import tensorflow as tf

from tff_autotune_secagg.numerics import bisection
from tff_autotune_secagg.numerics.rounding import modes

# Below this standard deviation, v(s) is E|z| - E z^2 up to 1e-4; above it, four
# terms of the series are exact to 1e-9.
_SERIES_FROM_BINS = 0.25


def stochastic_variance(client_stddev_bins: tf.Tensor) -> tf.Tensor:
  """Returns v(s) in bins^2 for float64 standard deviations s in bins."""
  s = tf.maximum(client_stddev_bins, 0.0)
  small = math.sqrt(2 / math.pi) * s - tf.square(s)
  orders = (math.pi * np.arange(1, 5)) ** 2
  squares = tf.expand_dims(tf.square(s), -1)
  terms = tf.exp(-2.0 * orders * squares) / orders
  series = 1 / 6 - tf.reduce_sum(terms, axis=-1)
  return tf.where(s < _SERIES_FROM_BINS, small, series)


def decoded_variance(
  client_stddev_bins: tf.Tensor,
  num_clients: tf.Tensor,
  rounding: modes.Rounding,
) -> tf.Tensor:
  """Returns the rounding variance of the decoded sum over the client count.

  Args:
    client_stddev_bins: float64, standard deviation of one client's coordinates.
    num_clients: float64, number of clients.
    rounding: the clients' mode. For dither, the sum is that after the
      subtraction.

  Returns:
    float64, bins^2 per client: multiply it by `num_clients` for the variance of
    the sum. For dither it is at most `num_clients / 12`, reached by equal
    clients.
  """
  if rounding is modes.Rounding.STOCHASTIC:
    return stochastic_variance(client_stddev_bins)
  difference = math.sqrt(2) * client_stddev_bins
  covariance = 1 / 12 - stochastic_variance(difference) / 2
  return 1 / 12 + (num_clients - 1) * covariance


def stddev_without_rounding(
  observed_stddev_bins: tf.Tensor, num_clients: tf.Tensor
) -> tf.Tensor:
  """Solves observed^2 = sum^2 + n v(sum / sqrt(n)) for the sum's deviation.

  Args:
    observed_stddev_bins: float64 tensor, fitted to the summed residues.
    num_clients: float64 scalar n; values below 1 are read as 1.

  Returns:
    float64 tensor in bins, at most `observed_stddev_bins`; 0 for 0, and 0 where
    rounding alone explains more than was observed.
  """
  num_clients = tf.maximum(num_clients, 1.0)
  target = tf.square(observed_stddev_bins)
  # Bisection of the logarithm: the answer may be 10 decades below.
  high = tf.math.log(tf.maximum(observed_stddev_bins, 1e-30))
  floor = high - 30.0

  def is_below(log_stddev):
    stddev = tf.exp(log_stddev)
    client_stddev = stddev / tf.sqrt(num_clients)
    noise = num_clients * stochastic_variance(client_stddev)
    return tf.square(stddev) + noise < target

  solution = bisection.bisect(is_below, floor, high)
  found = tf.logical_and(solution > floor + 1e-6, observed_stddev_bins > 0)
  return tf.where(found, tf.exp(solution), tf.zeros_like(target))

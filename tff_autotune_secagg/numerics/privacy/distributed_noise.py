# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Noise that clients share out: bin size, clipping, privacy, modulus.

Each client clips its rotated update to norm c, counts it in bins of size b and
draws a discrete Gaussian of s = `discrete_gaussian.STDDEV_BINS` bins around
every coordinate. With b = z c / (s sqrt(n)), n being the fewest clients whose
noise a sum holds, the sum's noise has standard deviation z c in every
coordinate: that of the central Gaussian mechanism of noise multiplier z.

Theorem. Let S be the sum of n such draws whose real centres add up to M. For
every integer j, P(S = j) = N(j; M, n s^2) (1 + t) with a small t. Write
`sum (x_i - y_i)^2 = (j - M)^2 / n + |Q(x - y)|^2` for the integer vectors x
that add up to j, Q projecting on the vectors that add up to 0. Then Q x runs
over a shifted copy of the lattice A_{n-1}, and by Poisson summation the sum of
`exp(-|.|^2 / 2 s^2)` over it is the same for all shifts up to a factor
1 +- e_n::

  e_n = sum over w != 0 of the dual lattice of exp(-2 pi^2 s^2 |w|^2)
      < 1.001 * 2 n exp(-2 pi^2 s^2 (1 - 1 / n)),
  e_1 = 2 sum over m >= 1 of exp(-2 pi^2 s^2 m^2), the same for Z.

The normalizing sums of n draws add factors of 1 +- e_1. The convolution of
discrete Gaussians is due to Peikert (2010, CRYPTO).

Corollary. A discrete Gaussian of s bins around a draw of N(M, (n - 1) s^2) has
the law of S up to such factors. So S is a post-processing of the Gaussian
mechanism of multiplier z sqrt(1 - 1 / n) up to factors exp(+-tau / 2) in the
probability of each coordinate's value: with the (eps, delta) of that mechanism
over all rounds, sums of D coordinates in T rounds have
(eps + T D tau, exp(T D tau / 2) delta). Here n counts the client in question
and others that keep their noise to themselves. What further clients send only
adds to a sum that is private already, and so does reduction modulo k.

A sample of the coordinates. Let a round send any m of D coordinates, scaled in
any way, chosen by public coins, by what earlier rounds released, or by whoever
wants to know; and let the centres of what is sent be within the limit. Given
the choice, which clients' fresh noise does not depend on, the round is one of m
coordinates. So all of this holds with m in place of D, and with D as a bound.
Putting the coordinates back is a post-processing. That nobody knows the choice
beforehand is not made use of.

A client computes in bins, where clip and noise are constants. So no clip norm
that a server may state, and no state, can weaken the guarantee.

No TFF here: everything is Python numbers, or TensorFlow on dense tensors.
"""

import fractions
import math

import tensorflow as tf

from tff_autotune_secagg.numerics.privacy import discrete_gaussian

# Half a period, in standard deviations of the sum: 6e-5 of the coordinates
# wrap, at 0.4 % of the noise's squared norm.
DEFAULT_MARGIN_STDDEVS = 4.0

# Sums of squares of whole numbers below this are exact in float64.
MAX_SQUARED_GRID_NORM = 2**52


def bin_size(
  clip_norm: float, noise_multiplier: float, min_clients: int
) -> float:
  """Returns b = z c / (s sqrt(n)), in units of values; also for tensors c."""
  stddev = discrete_gaussian.STDDEV_BINS * math.sqrt(min_clients)
  return clip_norm * (noise_multiplier / stddev)


def max_squared_grid_norm(noise_multiplier: float, min_clients: int) -> int:
  """Returns the largest squared norm that a client's centres may have.

  It is (c / b)^2 = s^2 n / z^2, rounded down, and does not depend on c.

  Args:
    noise_multiplier: positive float, z.
    min_clients: int of at least 2, n.

  Returns:
    Python int, in squared units of 1 / GRID bins, from exact fractions.

  Raises:
    ValueError: the result does not fit the arithmetic of `grid_clipping`.
  """
  multiplier = fractions.Fraction(noise_multiplier)
  squared_bins = discrete_gaussian.VARIANCE_BINS * min_clients / multiplier**2
  squared = math.floor(squared_bins * discrete_gaussian.GRID**2)
  if squared >= MAX_SQUARED_GRID_NORM:
    raise ValueError(
      f'`noise_multiplier` {noise_multiplier:g} is too small for `min_clients`'
      f' {min_clients}: a clipped update would be {math.sqrt(squared_bins):.3g}'
      ' bins long, more than the 16,384 that the sampler takes. Raise'
      ' `noise_multiplier`.'
    )
  return squared


def effective_noise_multiplier(
  noise_multiplier: float, min_clients: int
) -> float:
  """Returns the multiplier z sqrt(1 - 1 / n) to account for."""
  return noise_multiplier * math.sqrt(1.0 - 1.0 / min_clients)


def privacy_loss_per_coordinate(min_clients: int) -> float:
  """Returns tau, what a coordinate of one round adds to epsilon.

  Two neighbouring sums both differ from the sampled Gaussian by a factor of at
  most (1 + e_n) / (1 - e_1)^n in one direction and 1 / (1 - e_1) in the other,
  or by the inverse factors, which are no larger.

  Args:
    min_clients: int of at least 2, n.

  Returns:
    float: 3e-8 for 2 clients, 4e-14 for 10, 2e-14 for 100, 2e-12 for 10,000.
  """
  rate = 2.0 * math.pi**2 * float(discrete_gaussian.VARIANCE_BINS)
  one = 2.002 * math.exp(-rate)
  many = 2.002 * min_clients * math.exp(-rate * (1.0 - 1.0 / min_clients))
  # The logarithms of 1 / (1 - x) bound those of 1 + x too.
  return -2.0 * (math.log1p(-many) + (min_clients + 1) * math.log1p(-one))


def sampling_distance(min_clients: int, dim: int) -> float:
  """Returns the total variation between drawn and ideal noise of a round.

  In T rounds it adds at most (1 + exp(eps)) T times this to delta, or T times
  this and what `table_loss` adds to epsilon.

  Args:
    min_clients: int, clients whose noise the guarantee rests on.
    dim: int, coordinates of the rotated vector.

  Returns:
    float: each of 32 probabilities of a draw is off by less than two units.
  """
  unit = 2.0**-discrete_gaussian.PROBABILITY_BITS
  return min_clients * dim * 32 * unit


def noise_stddev_bins(num_clients: int) -> float:
  """Returns the standard deviation of the noise of a sum, in bins."""
  return discrete_gaussian.STDDEV_BINS * math.sqrt(num_clients)


def sum_stddev_bins(
  *,
  num_clients: int,
  noise_multiplier: float,
  min_clients: int,
  dim: int,
  alignment: float = 0.0,
) -> float:
  """Returns the standard deviation of a coordinate of the rotated sum.

  Args:
    num_clients: int, clients in the sum, at least `min_clients`.
    noise_multiplier: z, positive.
    min_clients: n of the bin size.
    dim: int, coordinates of the rotated vector.
    alignment: norm of the sum of clipped updates over that of as many parallel
      updates of full length, 0 to 1.

  Returns:
    float, in bins.
  """
  squared_grid_norm = max_squared_grid_norm(noise_multiplier, min_clients)
  squared_clip_bins = squared_grid_norm / discrete_gaussian.GRID**2
  signal = (alignment * num_clients) ** 2 * squared_clip_bins / dim
  return math.hypot(noise_stddev_bins(num_clients), math.sqrt(signal))


def seen_alignment(
  sum_variance_bins: tf.Tensor,
  num_clients: tf.Tensor,
  *,
  squared_grid_norm: int,
  dim: int,
) -> tf.Tensor:
  """Returns the alignment of clients that a sum's variance shows.

  This is the inverse of `sum_stddev_bins`. It is a function of the noised sum,
  so it costs no privacy.

  Args:
    sum_variance_bins: float64 scalar, the fitted variance of a coordinate of
      the rotated sum, in squared bins.
    num_clients: float64 scalar, clients in the sum.
    squared_grid_norm: from `max_squared_grid_norm`.
    dim: int, coordinates of the rotated vector.

  Returns:
    float64 scalar, at least 0: 0 where the noise hides the sum.
  """
  noise = num_clients * float(discrete_gaussian.VARIANCE_BINS)
  squared_clip_bins = squared_grid_norm / discrete_gaussian.GRID**2
  signal = tf.maximum(sum_variance_bins - noise, 0.0) * dim
  return tf.sqrt(signal / squared_clip_bins) / num_clients


def smallest_modulus(
  sum_stddev: float, margin_stddevs: float = DEFAULT_MARGIN_STDDEVS
) -> int:
  """Returns the smallest modulus with room for a sum.

  Args:
    sum_stddev: float, in bins, planned (`sum_stddev_bins`) or seen.
    margin_stddevs: half a period, in units of `sum_stddev`.

  Returns:
    int: 36, 112, 355, 1120 for the noise alone of 10, 100, 1,000, 10,000
    clients.
  """
  return max(2, math.ceil(2.0 * margin_stddevs * sum_stddev))

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The error of a round at a bin size, and the bin size of least error.

Notation, per coordinate of the rotated sum: signal variance sigma^2, n clients,
modulus k, bin size b, period W = k b, rounding variance n v b^2, observed
variance sigma_tot^2 = sigma^2 + n v b^2 and half period in observed standard
deviations r = (W / 2) / sigma_tot. The wrap probability is alpha = 2 Q(r) with
the normal tail Q. NMSE is the squared norm of the error over the squared norm
of the true sum.
The errors themselves are those of `decoding_error`.
"""

import math
from typing import NamedTuple, Optional, Tuple

import numpy as np
from scipy import special
import tensorflow as tf

from tff_autotune_secagg import _checks
from tff_autotune_secagg.numerics import bisection
from tff_autotune_secagg.numerics.reading import decoding_error
from tff_autotune_secagg.numerics.rounding import dither
from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.rounding import rounding_noise

# What is planned with: the standard deviation of what is not known of the next
# round's ln sigma. Trainings of even clients have 0.03 to 0.17, of uneven ones
# 0.4.
DEFAULT_SIZE_UNCERTAINTY = 0.1

# The search for the best bin size: from half a period of 1.5 sigma, below which
# 1,024 coordinates can not be read, to 400, which uncertain sizes may need; in
# steps of 9 %, then of 0.6 % between the neighbours of the best.
_HALF_PERIODS = (1.5, 400.0)
_COARSE_CANDIDATES = 65
_FINE_CANDIDATES = 31
# Errors are looked up by ln of the bin size over the size of the sum: from a
# period in which all wraps, to bins a thousand times as wide as the widest
# candidate is for the size that is expected.
_LOOKUP_STEP = 0.04
_LOOKUP_HALF_PERIODS = (0.3, 4e5)
# Where all bins lose the round the least error of any decoding decides.
_TIE_BREAK = 1e-3


class OperatingPoint(NamedTuple):
  """One way to run a round: float64 tensors of equal shape.

  Attributes:
    half_period_stddevs: r, half the period in observed standard deviations.
    bin_per_stddev: b / sigma, bin size in standard deviations of the true sum.
    noise_share: f, the part of the observed variance that is rounding.
  """

  half_period_stddevs: tf.Tensor
  bin_per_stddev: tf.Tensor
  noise_share: tf.Tensor


def operating_point(
  half_period_stddevs: tf.Tensor,
  num_clients: tf.Tensor,
  modulus: int,
  rounding: modes.Rounding,
) -> OperatingPoint:
  """Finds the bin size of half a period of r observed standard deviations.

  Solves (k b / 2 r)^2 = sigma^2 + n b^2 v(sigma / (sqrt(n) b)) for b / sigma.
  With v constant this is b = 2 r sigma / sqrt(k^2 - 4 r^2 n v).

  Args:
    half_period_stddevs: float64 tensor, r.
    num_clients: float64 scalar n.
    modulus: Python int k.
    rounding: the clients' mode. For dither, only bins of at most two standard
      deviations of a client are looked at; r out of reach there gets the
      largest of them.

  Returns:
    An `OperatingPoint` with the half period that was asked for, or reached.
  """
  low = tf.math.log(2.0 * half_period_stddevs / modulus)
  high = _at_most_largest(low + 30.0, num_clients, rounding)

  def is_short(log_bin):
    found = _at_bin_size(tf.exp(log_bin), num_clients, modulus, rounding)
    return found.half_period_stddevs < half_period_stddevs

  log_bin = bisection.bisect(is_short, low, high)
  return _at_bin_size(tf.exp(log_bin), num_clients, modulus, rounding)


def _at_bin_size(bin_per_stddev, num_clients, modulus, rounding):
  """Returns the `OperatingPoint` of bin sizes in units of sigma."""
  squared_bin = num_clients * tf.square(bin_per_stddev)
  noise = squared_bin * rounding_noise.decoded_variance(
    tf.math.rsqrt(squared_bin), num_clients, rounding
  )
  observed = 1.0 + noise
  return OperatingPoint(
    half_period_stddevs=modulus * bin_per_stddev / 2 / tf.sqrt(observed),
    bin_per_stddev=bin_per_stddev,
    noise_share=noise / observed,
  )


def _at_most_largest(log_bins, num_clients, rounding):
  """Returns ln of bins in units of sigma, or of the largest to look at."""
  if rounding is modes.Rounding.STOCHASTIC:
    return log_bins
  largest = -math.log(dither.MIN_CLIENT_STDDEV_BINS)
  return tf.minimum(log_bins, largest - 0.5 * tf.math.log(num_clients))


def normal_nodes(size_uncertainty: float) -> Tuple[tf.Tensor, tf.Tensor]:
  """Returns nodes and weights [9] of ln(sigma' / sigma), taken as normal."""
  nodes, weights = np.polynomial.hermite_e.hermegauss(9)
  log_sizes = tf.constant(size_uncertainty * nodes, tf.float64)
  return log_sizes, tf.constant(weights / weights.sum(), tf.float64)


def expected_nmse(
  point: OperatingPoint,
  num_clients: tf.Tensor,
  rounding: modes.Rounding,
  decoding: modes.Decoding,
  log_sizes: tf.Tensor,
  weights: tf.Tensor,
) -> tf.Tensor:
  """Returns the mean error of a bin size over sizes of the sum.

  Args:
    point: of any shape [...], the bin size relative to a sigma.
    num_clients: float64 scalar.
    rounding: the clients' mode.
    decoding: the server's mode.
    log_sizes: float64 [nodes], ln of the sum's size relative to that sigma.
    weights: float64 [nodes], their probabilities.

  Returns:
    float64 [...], the NMSE, relative to the size that each node has.
  """
  errors = _nmse_of_sizes(point, num_clients, rounding, decoding, log_sizes)
  return tf.reduce_sum(errors * weights, axis=-1)


def _nmse_of_sizes(point, num_clients, rounding, decoding, log_sizes):
  """Returns the errors of `expected_nmse` at each node, [..., nodes]."""
  b = tf.expand_dims(point.bin_per_stddev, -1) * tf.sqrt(num_clients)
  size = tf.exp(log_sizes)
  variance = rounding_noise.decoded_variance(size / b, num_clients, rounding)
  noise = tf.square(b) * variance
  observed = tf.square(size) + noise
  half_period = tf.expand_dims(point.half_period_stddevs, -1)
  signal_share = 1.0 - tf.expand_dims(point.noise_share, -1)
  half_period /= tf.sqrt(observed * signal_share)
  share = noise / observed
  most = share
  if rounding is modes.Rounding.STOCHASTIC:
    # What the gains rest on; one client has nobody to cancel with.
    most = tf.where(num_clients > 1.0, tf.square(b) / 6.0 / observed, share)
  return decoding_error.nmse(half_period, share, decoding, most)


def best_operating_point(
  num_clients: tf.Tensor,
  modulus: int,
  rounding: modes.Rounding,
  decoding: modes.Decoding,
  log_sizes: tf.Tensor,
  weights: tf.Tensor,
) -> OperatingPoint:
  """Returns the `OperatingPoint` of least expected error.

  That of the posterior mean for `Decoding.UNBIASED`, which has the same optimum
  where the size is known. No error counts for more than the 1 of a round that
  is dropped.

  Args:
    num_clients: float64 scalar of at least 1.
    modulus: Python int.
    rounding: the clients' mode.
    decoding: the server's mode.
    log_sizes: float64 [nodes], ln of sizes in units of the sigma that
      `bin_per_stddev` is relative to.
    weights: float64 [nodes], their probabilities.

  Returns:
    Scalars.
  """

  error_of = _error_lookup(num_clients, modulus, rounding, decoding)

  def best_of(log_bins):
    errors = error_of(tf.expand_dims(log_bins, -1) - log_sizes)
    return tf.argmin(tf.linalg.matvec(errors, weights))

  ends = tf.math.log(2.0 * tf.constant(_HALF_PERIODS, tf.float64) / modulus)
  low, high = tf.unstack(_at_most_largest(ends, num_clients, rounding))
  step = (high - low) / (_COARSE_CANDIDATES - 1)
  log_bins = low + step * np.arange(_COARSE_CANDIDATES)
  index = best_of(log_bins)
  fine = step * np.linspace(-1.0, 1.0, _FINE_CANDIDATES)
  near = tf.clip_by_value(log_bins[index] + fine, low, log_bins[-1])
  best = near[best_of(near)]
  return _at_bin_size(tf.exp(best), num_clients, modulus, rounding)


def criterion(decoding: modes.Decoding) -> modes.Decoding:
  """Returns the decoding whose error decides about bin sizes and moduli.

  An unbiased sum that loses half of what it could tell errs as one that was
  dropped. Where a forecast is wide, its error would give up on half of the
  sizes for the sake of the other half; that of the posterior mean counts what
  there is to be told.
  """
  if decoding is modes.Decoding.UNBIASED:
    return modes.Decoding.POSTERIOR_MEAN
  return decoding


def _error_lookup(num_clients, modulus, rounding, decoding):
  """Returns a function of ln(bin size / size of the sum) to what it costs.

  The error depends on nothing else of the two, so that a few hundred of them
  serve all candidates and all sizes, by linear interpolation. None counts for
  more than the 1 of a round that is dropped: those of centred decoding have no
  bound, and sizes that hardly occur would decide.
  """
  low, high = (math.log(2.0 * r) for r in _LOOKUP_HALF_PERIODS)
  num_steps = math.ceil((high - low) / _LOOKUP_STEP)
  # The modulus of a planner is a tensor.
  start = low - tf.math.log(tf.cast(modulus, tf.float64))
  ratios = tf.exp(start + _LOOKUP_STEP * np.arange(num_steps + 1.0))
  points = _at_bin_size(ratios, num_clients, modulus, rounding)
  certain = tf.zeros([1], tf.float64)

  def errors_of(decoding):
    errors = _nmse_of_sizes(points, num_clients, rounding, decoding, certain)
    return tf.minimum(errors[:, 0], 1.0)

  table = errors_of(criterion(decoding))
  if decoding is modes.Decoding.CENTRED:
    table += _TIE_BREAK * errors_of(modes.Decoding.POSTERIOR_MEAN)

  def lookup(log_ratios):
    position = (log_ratios - start) / _LOOKUP_STEP
    position = tf.clip_by_value(position, 0.0, num_steps - 0.001)
    index = tf.cast(position, tf.int32)
    left, right = tf.gather(table, index), tf.gather(table, index + 1)
    return left + (right - left) * (position - tf.cast(index, tf.float64))

  return lookup


def paper_operating_point(
  wrap_probability: float,
  num_clients: tf.Tensor,
  modulus: int,
  rounding: modes.Rounding,
) -> OperatingPoint:
  """Returns the fixed point of the paper's rule b = 2 z sigma_tot / (k - 1)."""
  half_period = normal_quantile(wrap_probability) * modulus / (modulus - 1)
  half_period = tf.convert_to_tensor(half_period, tf.float64)
  return operating_point(half_period, num_clients, modulus, rounding)


def normal_quantile(wrap_probability: float) -> float:
  """Returns the r at which a normal leaves [-r, r] with this probability."""
  # Half the smallest of floats is 0, whose r is infinite.
  return float(-special.ndtri(max(wrap_probability / 2, 1e-300)))


def check_wrap_probability(
  wrap_probability: Optional[float],
) -> Optional[float]:
  """Returns the wrap probability as a float in (0, 1), or None, or raises."""
  if wrap_probability is None:
    return None
  return _checks.check_float(
    'wrap_probability', wrap_probability, above=0, below=1
  )

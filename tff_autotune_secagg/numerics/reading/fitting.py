# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the server learns from one masked sum: its size, or that it is blind.

The input is a sum of versines for each of the sixteen stripes. In an ordinary
round all bins are equal and the stripes are one sample. In a calibration round
bins grow from stripe to stripe; the fit anchors on the coarse side, where
nothing wraps, and refines with every finer stripe that the anchor shows to be
readable.

Two numbers come of it. The size is the best estimate for clients that are
independent, and what the tuner learns from. The gains that the sum is decoded
with rest on `signal_bound`, which holds for any clients.
"""

import math
from typing import NamedTuple

import tensorflow as tf

from tff_autotune_secagg.numerics import subgraphs
from tff_autotune_secagg.numerics.reading import signal_bound
from tff_autotune_secagg.numerics.reading import stripe_readings
from tff_autotune_secagg.numerics.reading import stripes
from tff_autotune_secagg.numerics.reading import wrapped_normal
from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.rounding import rounding_noise

# Walking from coarse to fine, the first stripe with at least this standard
# deviation has a finer neighbour, eight times nearer, that may be unreadable.
_ANCHOR_PERIODS = 1 / 32
_REFINEMENTS = 3

# Decodes to 0.
_UNDECODABLE_PERIODS = 2.0 * wrapped_normal.MAX_PERIODS


class WrappedNormalFit(NamedTuple):
  """A fitted round; all tensors float64 or bool, finite.

  Attributes:
    sum_stddev: scalar, root mean square of a coordinate of the true rotated
      sum, units of the values, for independent clients. 0 if blind, and 0 if
      the sum can not be told from the rounding of an ordinary round.
    observed_stddev: [NUM_STRIPES], that of the stripe's coordinates with the
      rounding noise of its bin size. Where nothing is known of a stripe it is
      so large that it decodes to 0. 0 if blind.
    gain: [NUM_STRIPES], the share of signal in the observed variance, 0 to 1:
      the estimate, but at most twice what is beyond doubt. Decoding with it has
      at most the error that `decoding_error.error_of_gain` predicts for it.
    max_gain: [NUM_STRIPES], 0 to 2: a larger gain could err by more than a
      dropped round.
    is_blind: scalar bool, the sum says nothing about its size.
    is_zero: scalar bool, every residue is 0.
    log_stddev_error: scalar, standard error of ln(sum_stddev), at most 1.
    readable_from: scalar, `sum_stddev` that an ordinary round of the finest
      bins would still have told from 0.
    readable_to: scalar, that one of the coarsest bins would have told from
      infinity.
  """

  sum_stddev: tf.Tensor
  observed_stddev: tf.Tensor
  gain: tf.Tensor
  max_gain: tf.Tensor
  is_blind: tf.Tensor
  is_zero: tf.Tensor
  log_stddev_error: tf.Tensor
  readable_from: tf.Tensor
  readable_to: tf.Tensor


@subgraphs.traced_once
def fit(
  sample: stripe_readings.Sample, *, modulus: int, rounding: modes.Rounding
) -> WrappedNormalFit:
  """Fits the standard deviation of the true sum to the residues of a round.

  Args:
    sample: the round.
    modulus: Python int.
    rounding: the clients' mode.

  Returns:
    A `WrappedNormalFit`, finite for every input. Uniform residues are called
    readable with probability 2.9e-7 per statistic: one in an ordinary round
    (two with dither), up to sixteen in a calibration round.
  """
  seen = stripe_readings.look(sample, modulus, rounding)
  anchor = _anchor(seen.reading.is_readable, seen.raw, modulus)
  is_blind = tf.logical_not(tf.gather(seen.reading.is_readable, anchor))
  independent, information = _refine(
    tf.gather(seen.reading.sum_stddev, anchor), seen, modulus
  )
  observed, noise = _observe(seen, modulus)
  bounded = signal_bound.bound(observed, noise, seen.bin_sizes)
  stddev = _unless_clients_cancel(independent, bounded, seen, modulus)
  is_drowned = tf.logical_and(
    signal_bound.is_drowned(observed, noise, bounded), _may_drown(seen)
  )
  variance, is_known = signal_bound.of_stripes(observed, bounded)
  # What copies share is no normal, and twice its bound no bound.
  share = bounded.variance
  most = tf.where(seen.are_alike, share, bounded.doubled)
  if rounding is modes.Rounding.STOCHASTIC:
    # One client has nobody to cancel with: its rounding follows from its size.
    is_one = seen.clients <= 1.0
    own = tf.square(stddev)
    bins = stddev / seen.bin_sizes
    rounded = tf.square(seen.bin_sizes) * rounding_noise.stochastic_variance(
      bins
    )
    variance = tf.where(is_one, own + rounded, variance)
    is_known = tf.logical_or(is_known, is_one)
    share = tf.where(is_one, own, share)
    most = tf.where(is_one, 2.0 * own, most)
  # What is not known is as wide as decodes to 0.
  is_known = tf.logical_and(is_known, seen.reading.is_decodable)
  is_known = tf.logical_and(is_known, tf.logical_not(is_blind))
  unknown = tf.square(_UNDECODABLE_PERIODS * modulus * seen.bin_sizes)
  variance = tf.where(is_known, variance, tf.maximum(variance, unknown))

  def gain_of(signal):
    gain = signal / tf.maximum(variance, 1e-300)
    return tf.where(is_known, gain, tf.zeros_like(gain))

  nothing = tf.zeros_like(stddev)
  readable = _readable_range(sample, seen.clients, modulus)
  # Of a sum beside more noise: what would have been told from it.
  least = tf.sqrt(signal_bound.DOUBT * observed.error[0])
  return WrappedNormalFit(
    sum_stddev=tf.where(tf.logical_or(is_blind, is_drowned), nothing, stddev),
    observed_stddev=tf.where(is_blind, nothing, tf.sqrt(variance)),
    gain=tf.minimum(gain_of(share), 1.0),
    max_gain=tf.minimum(gain_of(most), 2.0),
    is_blind=is_blind,
    # Not `==`: on tensors of the graphs that TFF traces it compares identities.
    is_zero=tf.equal(tf.reduce_sum(sample.raw_versines), 0.0),
    log_stddev_error=0.5 / tf.sqrt(tf.maximum(information, 0.25)),
    readable_from=tf.where(is_drowned, least, readable['readable_from']),
    readable_to=readable['readable_to'],
  )


def _may_drown(seen):
  """Tells whether a sum that is not seen calls for a calibration."""
  # Calibrations of dither decode nothing, and clients that are alike would be
  # sent from each to the next.
  is_ordinary = tf.logical_not(tf.logical_or(seen.is_ladder, seen.are_alike))
  return tf.logical_and(is_ordinary, seen.clients > 1.0)


def _anchor(is_readable, raw, modulus):
  """Returns the index of the stripe to trust first."""
  last = stripes.NUM_STRIPES - 1
  periods = tf.where(
    is_readable, raw.stddev_bins / modulus, tf.ones_like(raw.stddev_bins)
  )
  wide = tf.cast(periods >= _ANCHOR_PERIODS, tf.int32)
  index = tf.range(last + 1)
  # The coarsest wide stripe, or the finest of all if none is wide.
  coarsest_wide = tf.reduce_max(index * wide)
  coarser = tf.minimum(coarsest_wide + 1, last)
  return tf.where(tf.gather(is_readable, coarsest_wide), coarsest_wide, coarser)


def _refine(stddev, seen, modulus):
  """Returns the mean of the stripes by what each tells, and what they tell.

  That is the Fisher information about ln(stddev^2).
  """
  readable = tf.cast(seen.reading.is_readable, tf.float64)
  for _ in range(_REFINEMENTS):
    cosine, share = _expected(stddev, seen, modulus)
    information = tf.square(share) * wrapped_normal.log_variance_information(
      cosine, seen.num_coordinates
    )
    # Which stripes a calibration should listen to.
    is_trusted = tf.cast(cosine > stripe_readings.MIN_COSINE, tf.float64)
    weight = readable * information * is_trusted
    total = tf.reduce_sum(weight)
    refined = tf.sqrt(
      tf.reduce_sum(weight * tf.square(seen.reading.sum_stddev))
      / tf.maximum(total, 1e-300)
    )
    stddev = tf.where(total > 0.0, refined, stddev)
  # An ordinary round is one stripe, whose estimate is the best there is.
  return stddev, tf.where(seen.is_ladder, total, information[0])


def _expected(stddev, seen, modulus):
  """Returns the mean cosine of each stripe, and the signal's share, [16].

  For a sum of that size of independent clients.
  """
  bins = stddev / seen.bin_sizes
  noise = seen.clients * rounding_noise.stochastic_variance(
    bins / tf.sqrt(seen.clients)
  )
  observed = tf.square(bins) + noise
  share = tf.square(bins) / tf.maximum(observed, 1e-300)
  return wrapped_normal.mean_cosine(tf.sqrt(observed) / modulus), share


def _observe(seen, modulus):
  """Returns the stripes' `Observed`, and the most noise there can be in them.

  Of dither, after its subtraction.
  """
  read = seen.decoded
  stddev_bins = tf.where(
    read.is_readable, read.stddev_bins, tf.ones_like(seen.bin_sizes)
  )
  information = wrapped_normal.log_variance_information(
    wrapped_normal.mean_cosine(stddev_bins / modulus), seen.num_coordinates
  )
  observed = signal_bound.observe(
    stddev_bins,
    seen.bin_sizes,
    information,
    seen.num_coordinates,
    read.is_readable,
  )
  return observed, seen.max_noise_bins * tf.square(seen.bin_sizes)


def _unless_clients_cancel(stddev, bounded, seen, modulus):
  """Returns the size to learn from a calibration whose clients nearly cancel.

  The size of independent clients is refuted where it predicts that a stripe has
  wrapped, and the stripe and all between are readable: then the finest of them
  tells. It is also where the bound is clearly above it.
  """
  cosine, _ = _expected(stddev, seen, modulus)
  is_readable = seen.raw.is_readable
  index = tf.range(stripes.NUM_STRIPES)
  last = stripes.NUM_STRIPES - 1
  trusted = tf.logical_and(is_readable, cosine > stripe_readings.MIN_COSINE)
  first = tf.reduce_min(tf.where(trusted, index, last + 1))
  is_gap = tf.logical_and(index < first, tf.logical_not(is_readable))
  finest = tf.reduce_max(tf.where(is_gap, index, -tf.ones_like(index))) + 1
  finest = tf.minimum(finest, last)
  least = tf.sqrt(bounded.variance)
  cancel = tf.logical_and(seen.clients > 1.0, seen.is_ladder)
  refuted = tf.logical_and(finest < first, first <= last)
  refuted = tf.logical_and(refuted, least < stddev / 2.0)
  told = tf.maximum(least, tf.gather(seen.reading.sum_stddev, finest))
  stddev = tf.where(tf.logical_and(cancel, refuted), told, stddev)
  is_more = tf.logical_and(seen.is_ladder, least > math.sqrt(2.0) * stddev)
  return tf.where(is_more, least, stddev)


def _readable_range(sample, clients, modulus):
  """Returns the ends of the readable sizes, see `WrappedNormalFit`."""
  num_coordinates = tf.maximum(tf.reduce_sum(sample.counts), 1.0)
  # All residues are 0 with probability e^-5 if five of them are expected not to
  # be: a client's coordinate of s bins is rounded away from 0 with probability
  # sqrt(2 / pi) s.
  expected = num_coordinates * tf.sqrt(clients * 2.0 / math.pi)
  return dict(
    readable_from=5.0 * sample.bin_sizes[0] / expected,
    readable_to=sample.bin_sizes[-1]
    * modulus
    * wrapped_normal.readable_periods(num_coordinates, modulus),
  )

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the server learns from one masked sum: its size, or that it is blind.

The input is a sum of versines for each of the sixteen stripes. In an ordinary
round all bins are equal and the stripes are one sample. In a calibration round
bins grow eightfold from stripe to stripe; the fit anchors on the coarse side,
where nothing wraps, and refines with every finer stripe that the anchor shows
to be readable.
"""

import math
from typing import NamedTuple

import tensorflow as tf

from tff_autotune_secagg.numerics.reading import readings
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
  """A fitted round; all tensors float64 or bool.

  Attributes:
    sum_stddev: scalar, root mean square of a coordinate of the true rotated
      sum, in units of the values. 0 if blind.
    observed_stddev: [NUM_STRIPES], the same with the rounding noise of each
      stripe's bin size; many periods, which decode to 0, where dither's errors
      may add coherently. 0 if blind.
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
  is_blind: tf.Tensor
  is_zero: tf.Tensor
  log_stddev_error: tf.Tensor
  readable_from: tf.Tensor
  readable_to: tf.Tensor


class Sample(NamedTuple):
  """A round as the fit sees it; float64.

  Attributes:
    raw_versines: [NUM_STRIPES], sums of versines of the residues.
    decoded_versines: the same after dither was subtracted; equal to
      `raw_versines` for stochastic rounding.
    counts: [NUM_STRIPES], coordinates of each stripe.
    bin_sizes: [NUM_STRIPES], equal or ascending, units of the values.
    num_clients: scalar, clients whose residues were summed.
  """

  raw_versines: tf.Tensor
  decoded_versines: tf.Tensor
  counts: tf.Tensor
  bin_sizes: tf.Tensor
  num_clients: tf.Tensor


def fit(
  sample: Sample, *, modulus: int, rounding: modes.Rounding
) -> WrappedNormalFit:
  """Fits the standard deviation of the true sum to the residues of a round.

  Args:
    sample: the round.
    modulus: Python int.
    rounding: the clients' mode.

  Returns:
    A `WrappedNormalFit`, finite for every input. Uniform residues are called
    readable with probability 2.9e-7 per statistic: one in an ordinary round,
    up to sixteen in a calibration round.
  """
  is_ladder = stripes.is_ladder(sample.bin_sizes)
  clients = tf.maximum(sample.num_clients, 1.0)
  num_coordinates = readings.per_stripe_or_pooled(sample.counts, is_ladder)
  raw = readings.Stripes(sample.raw_versines, sample.counts, is_ladder, modulus)
  if rounding is modes.Rounding.STOCHASTIC:
    reading = readings.read_stochastic(raw, sample.bin_sizes, clients)
  else:
    decoded = readings.Stripes(
      sample.decoded_versines, sample.counts, is_ladder, modulus
    )
    reading = readings.read_dither(
      raw, decoded, sample.bin_sizes, clients, is_ladder, modulus
    )

  anchor = _anchor(reading.is_readable, raw, modulus)
  is_blind = tf.logical_not(tf.gather(reading.is_readable, anchor))
  stddev, information = _refine(
    tf.gather(reading.sum_stddev, anchor),
    reading,
    sample.bin_sizes,
    num_coordinates,
    clients,
    modulus,
  )
  stddev = tf.where(is_blind, tf.zeros_like(stddev), stddev)
  observed = _observed_stddev(stddev, reading, sample, clients, rounding)
  unknown = _UNDECODABLE_PERIODS * modulus * sample.bin_sizes
  unknown = tf.maximum(observed, unknown)
  observed = tf.where(reading.is_decodable, observed, unknown)
  return WrappedNormalFit(
    sum_stddev=stddev,
    observed_stddev=tf.where(is_blind, tf.zeros_like(observed), observed),
    is_blind=is_blind,
    # Not `==`: on tensors of the graphs that TFF traces it compares identities.
    is_zero=tf.equal(tf.reduce_sum(sample.raw_versines), 0.0),
    log_stddev_error=0.5 / tf.sqrt(tf.maximum(information, 0.25)),
    **_readable_range(sample, clients, modulus),
  )


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


def _refine(stddev, reading, bin_sizes, num_coordinates, clients, modulus):
  """Returns the mean of the stripes by what each tells, and what they tell.

  That is the Fisher information about ln(stddev^2).
  """
  readable = tf.cast(reading.is_readable, tf.float64)
  for _ in range(_REFINEMENTS):
    information, is_trusted = _information(
      stddev, bin_sizes, num_coordinates, clients, modulus
    )
    weight = readable * information * tf.cast(is_trusted, tf.float64)
    total = tf.reduce_sum(weight)
    refined = tf.sqrt(
      tf.reduce_sum(weight * tf.square(reading.sum_stddev))
      / tf.maximum(total, 1e-300)
    )
    stddev = tf.where(total > 0.0, refined, stddev)
  # An ordinary round is one stripe, whose estimate is the best there is.
  is_ladder = stripes.is_ladder(bin_sizes)
  return stddev, tf.where(is_ladder, total, information[0])


def _information(stddev, bin_sizes, num_coordinates, clients, modulus):
  """Fisher information of each stripe about ln(stddev^2), and whom to trust.

  float64 [16] and bool [16]: which stripes a calibration should listen to.

  With C = exp(-2 pi^2 p^2) at p observed periods, var(C) = (1 - C^2)^2 / 2N for
  a wrapped normal, d C / d ln p^2 = C ln C, and ln of the signal moves the
  observed variance by the signal's share of it.
  """
  bins = stddev / bin_sizes
  noise = clients * rounding_noise.stochastic_variance(bins / tf.sqrt(clients))
  observed = tf.square(bins) + noise
  share = tf.square(bins) / tf.maximum(observed, 1e-300)
  # The floor keeps (C ln C)^2 / (1 - C^2)^2 at its limit, 1/4, without 0 / 0.
  periods = tf.maximum(tf.sqrt(observed) / modulus, 1e-5)
  cosine = wrapped_normal.mean_cosine(periods)
  log_cosine = tf.math.log(tf.maximum(cosine, 1e-300))
  slope = tf.square(cosine * log_cosine)
  information = 2.0 * num_coordinates * slope
  information /= tf.square(1.0 - tf.square(cosine))
  information *= tf.square(share)
  return information, cosine > readings.MIN_COSINE


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


def _observed_stddev(stddev, reading, sample, clients, rounding):
  """Returns the standard deviation with the rounding of each stripe's bins."""
  client_stddev_bins = stddev / (sample.bin_sizes * tf.sqrt(clients))
  variance_bins = clients * rounding_noise.decoded_variance(
    client_stddev_bins, clients, rounding
  )
  variance_bins = tf.maximum(variance_bins, reading.min_variance_bins)
  return tf.sqrt(
    tf.square(stddev) + variance_bins * tf.square(sample.bin_sizes)
  )

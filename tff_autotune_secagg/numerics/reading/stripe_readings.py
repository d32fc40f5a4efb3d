# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What each stripe of a masked sum says of its size, before the fit."""

from typing import NamedTuple

import tensorflow as tf

from tff_autotune_secagg.numerics.reading import stripes
from tff_autotune_secagg.numerics.reading import wrapped_normal
from tff_autotune_secagg.numerics.rounding import dither
from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.rounding import rounding_noise

# A calibration stripe below this mean cosine is not trusted as an anchor, nor
# used by the refinement if it is predicted to be below it: where coordinates
# are of equal size (a sparse update) a wrapped stripe can look readable.
MIN_COSINE = 0.3

# Clients that share the dither are taken for alike from this multiple of the
# noise of independent ones on.
_ALIKE = 1.1


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


class Reading(NamedTuple):
  """What the stripes say before they are combined; [NUM_STRIPES] each.

  Attributes:
    sum_stddev: estimate of every stripe, units of the values.
    is_readable: whether to believe it.
    dither_variance_bins: variance of the rounding that the sum shows under a
      dither, bins^2; 0 for stochastic rounding.
    is_decodable: whether the error of a decoded coordinate is known.
  """

  sum_stddev: tf.Tensor
  is_readable: tf.Tensor
  dither_variance_bins: tf.Tensor
  is_decodable: tf.Tensor


class Seen(NamedTuple):
  """A round whose stripes have been looked at.

  Attributes:
    reading: of the stripes.
    raw: the `Stripes` of the residues.
    decoded: those after dither was subtracted.
    max_noise_bins: float64 [NUM_STRIPES], the most variance that rounding can
      have, bins^2.
    are_alike: scalar bool, whether clients that share a dither look like copies
      of each other.
    bin_sizes: float64 [NUM_STRIPES].
    num_coordinates: float64 [NUM_STRIPES], in each sample.
    clients: float64 scalar, at least 1.
    is_ladder: scalar bool.
  """

  reading: Reading
  raw: 'Stripes'
  decoded: 'Stripes'
  max_noise_bins: tf.Tensor
  are_alike: tf.Tensor
  bin_sizes: tf.Tensor
  num_coordinates: tf.Tensor
  clients: tf.Tensor
  is_ladder: tf.Tensor


def look(sample, modulus, rounding):
  """Looks at the stripes of a round.

  Args:
    sample: the round.
    modulus: Python int.
    rounding: the clients' mode.
  """
  bin_sizes = sample.bin_sizes
  is_ladder = stripes.is_ladder(bin_sizes)
  clients = tf.maximum(sample.num_clients, 1.0)
  raw = Stripes(sample.raw_versines, sample.counts, is_ladder, modulus)
  max_noise_bins = tf.fill(bin_sizes.shape, clients / 6.0)
  are_alike = tf.constant(False)
  if rounding is modes.Rounding.STOCHASTIC:
    decoded = raw
    reading = _read_stochastic(raw, bin_sizes, clients)
  else:
    decoded = Stripes(
      sample.decoded_versines, sample.counts, is_ladder, modulus
    )
    reading = _read_dither(raw, decoded, bin_sizes, clients, is_ladder, modulus)
    shared = reading.dither_variance_bins
    max_noise_bins = tf.where(is_ladder, max_noise_bins, shared)
    are_alike = shared[0] > _ALIKE * clients * dither.UNIFORM_VARIANCE
  return Seen(
    reading,
    raw,
    decoded,
    max_noise_bins,
    are_alike,
    bin_sizes,
    _per_stripe_or_pooled(sample.counts, is_ladder),
    clients,
    is_ladder,
  )


def _per_stripe_or_pooled(totals, is_ladder):
  """Returns the stripes' totals of a ladder, or their sum in each of them."""
  pooled = tf.fill([stripes.NUM_STRIPES], tf.reduce_sum(totals))
  return tf.where(is_ladder, totals, pooled)


class Stripes:
  """Standard deviation and readability of each stripe from its versines."""

  def __init__(self, versines, counts, is_ladder, modulus):
    """Reads sums of versines [NUM_STRIPES] of so many coordinates."""
    num_coordinates = _per_stripe_or_pooled(counts, is_ladder)
    mean_versine = _per_stripe_or_pooled(versines, is_ladder) / tf.maximum(
      num_coordinates, 1.0
    )
    self.cosine = 1.0 - mean_versine
    readable = wrapped_normal.is_readable(
      mean_versine, num_coordinates, modulus
    )
    trusted = tf.logical_or(tf.logical_not(is_ladder), self.cosine > MIN_COSINE)
    self.is_readable = tf.logical_and(readable, trusted)
    periods = wrapped_normal.stddev_periods(mean_versine)
    # Unreadable stripes are never used; any finite number will do.
    self.stddev_bins = modulus * tf.where(
      self.is_readable, periods, tf.ones_like(periods)
    )


def _read_stochastic(raw, bin_sizes, clients):
  """Returns the `Reading` if every client has offsets of its own."""
  stddev_bins = rounding_noise.stddev_without_rounding(raw.stddev_bins, clients)
  return Reading(
    bin_sizes * stddev_bins,
    raw.is_readable,
    tf.zeros_like(bin_sizes),
    tf.ones_like(raw.is_readable),
  )


def _read_dither(raw, decoded, bin_sizes, clients, is_ladder, modulus):
  """Returns the `Reading` if clients share the dither.

  The raw sum tells the size while the clients' values stay within a bin or so;
  where their standard deviation is half a bin or more, subtracting the dither
  leaves white noise of 1/12 for each client and a better statistic. Offsets of
  a calibration round are not shared.
  """
  private = _read_stochastic(raw, bin_sizes, clients)
  both = tf.logical_and(raw.is_readable, decoded.is_readable)
  # What an unreadable stripe says is that no clients are alike.
  coherent = tf.where(
    both,
    dither.coherent_variance(
      raw.stddev_bins, decoded.stddev_bins, clients, modulus
    ),
    clients * dither.UNIFORM_VARIANCE,
  )
  # Not needed of a ladder; in an ordinary round the stripes are one sample.
  client_stddev_bins = dither.client_stddev_bins(
    1.0 - raw.cosine[:1], clients, modulus
  )
  wide = client_stddev_bins >= dither.MIN_CLIENT_STDDEV_BINS
  from_decoded = tf.logical_and(
    decoded.is_readable, tf.logical_or(tf.logical_not(raw.is_readable), wide)
  )
  stddev_bins = tf.where(
    from_decoded,
    tf.sqrt(tf.maximum(tf.square(decoded.stddev_bins) - coherent, 0.0)),
    tf.sqrt(clients) * client_stddev_bins,
  )
  # Equal clients have equal offsets even in a calibration round. Their errors
  # add coherently, which the few coordinates of a stripe can not show.
  is_decodable = tf.fill(raw.is_readable.shape, tf.logical_not(is_ladder))
  return Reading(
    tf.where(is_ladder, private.sum_stddev, bin_sizes * stddev_bins),
    tf.logical_or(raw.is_readable, from_decoded),
    coherent,
    is_decodable,
  )

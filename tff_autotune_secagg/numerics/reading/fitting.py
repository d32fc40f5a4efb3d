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

from tff_autotune_secagg.numerics.reading import signal_bound
from tff_autotune_secagg.numerics.reading import stripes
from tff_autotune_secagg.numerics.reading import wrapped_normal
from tff_autotune_secagg.numerics.rounding import dither
from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.rounding import rounding_noise

# Walking from coarse to fine, the first stripe with at least this standard
# deviation has a finer neighbour, eight times nearer, that may be unreadable.
_ANCHOR_PERIODS = 1 / 32
_REFINEMENTS = 3

# A calibration stripe below this mean cosine is not trusted as an anchor, nor
# used by the refinement if it is predicted to be below it: where coordinates
# are of equal size (a sparse update) a wrapped stripe can look readable.
_MIN_COSINE = 0.3

# Clients that share the dither are taken for alike from this multiple of the
# noise of independent ones on.
_ALIKE = 1.1

# Decodes to 0.
_UNDECODABLE_PERIODS = 2.0 * wrapped_normal.MAX_PERIODS


class WrappedNormalFit(NamedTuple):
  """A fitted round; all tensors float64 or bool, finite.

  Attributes:
    sum_stddev: scalar, root mean square of a coordinate of the true rotated
      sum, units of the values, for independent clients. 0 if blind, and 0 if
      the sum can not be told from the rounding of an ordinary round.
    observed_stddev: [NUM_STRIPES], the same with the rounding noise of each
      stripe's bin size; many periods, which decode to 0, where nothing is known
      of a stripe. 0 if blind.
    gain: [NUM_STRIPES], the share of signal in the observed variance that is
      beyond doubt, 0 to 1. Decoding with it has at most the error that
      `decoding_error.error_of_gain` predicts for it.
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
  seen = _look(sample, modulus, rounding)
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


class _Reading(NamedTuple):
  """What the stripes say before they are combined; [NUM_STRIPES] each.

  Attributes:
    sum_stddev: estimate of every stripe, units of the values.
    is_readable: whether to believe it.
    min_variance_bins: least variance of the rounding, bins^2.
    is_decodable: whether the error of a decoded coordinate is known.
  """

  sum_stddev: tf.Tensor
  is_readable: tf.Tensor
  min_variance_bins: tf.Tensor
  is_decodable: tf.Tensor


class _Seen(NamedTuple):
  """A round whose stripes have been looked at.

  Attributes:
    reading: of the stripes.
    raw: the `_Stripes` of the residues.
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

  reading: _Reading
  raw: '_Stripes'
  decoded: '_Stripes'
  max_noise_bins: tf.Tensor
  are_alike: tf.Tensor
  bin_sizes: tf.Tensor
  num_coordinates: tf.Tensor
  clients: tf.Tensor
  is_ladder: tf.Tensor


def _look(sample, modulus, rounding):
  """Returns what there is to `_Seen`."""
  bin_sizes = sample.bin_sizes
  is_ladder = stripes.is_ladder(bin_sizes)
  clients = tf.maximum(sample.num_clients, 1.0)
  raw = _Stripes(sample.raw_versines, sample.counts, is_ladder, modulus)
  max_noise_bins = tf.fill(bin_sizes.shape, clients / 6.0)
  are_alike = tf.constant(False)
  if rounding is modes.Rounding.STOCHASTIC:
    decoded = raw
    reading = _read_stochastic(raw, bin_sizes, clients)
  else:
    decoded = _Stripes(
      sample.decoded_versines, sample.counts, is_ladder, modulus
    )
    reading = _read_dither(raw, decoded, bin_sizes, clients, is_ladder, modulus)
    shared = reading.min_variance_bins
    max_noise_bins = tf.where(is_ladder, max_noise_bins, shared)
    are_alike = shared[0] > _ALIKE * clients * dither.UNIFORM_VARIANCE
  return _Seen(
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


def _may_drown(seen):
  """Tells whether a sum that is not seen calls for a calibration."""
  # Calibrations of dither decode nothing, and clients that are alike would be
  # sent from each to the next.
  is_ordinary = tf.logical_not(tf.logical_or(seen.is_ladder, seen.are_alike))
  return tf.logical_and(is_ordinary, seen.clients > 1.0)


def _per_stripe_or_pooled(totals, is_ladder):
  """Returns the stripes' totals of a ladder, or their sum in each of them."""
  pooled = tf.fill([stripes.NUM_STRIPES], tf.reduce_sum(totals))
  return tf.where(is_ladder, totals, pooled)


class _Stripes:
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
    trusted = tf.logical_or(
      tf.logical_not(is_ladder), self.cosine > _MIN_COSINE
    )
    self.is_readable = tf.logical_and(readable, trusted)
    periods = wrapped_normal.stddev_periods(mean_versine)
    # Unreadable stripes are never used; any finite number will do.
    self.stddev_bins = modulus * tf.where(
      self.is_readable, periods, tf.ones_like(periods)
    )


def _read_stochastic(raw, bin_sizes, clients):
  """Returns the `_Reading` if every client has offsets of its own."""
  stddev_bins = rounding_noise.stddev_without_rounding(raw.stddev_bins, clients)
  return _Reading(
    bin_sizes * stddev_bins,
    raw.is_readable,
    tf.zeros_like(bin_sizes),
    tf.ones_like(raw.is_readable),
  )


def _read_dither(raw, decoded, bin_sizes, clients, is_ladder, modulus):
  """Returns the `_Reading` if clients share the dither.

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
  return _Reading(
    tf.where(is_ladder, private.sum_stddev, bin_sizes * stddev_bins),
    tf.logical_or(raw.is_readable, from_decoded),
    coherent,
    is_decodable,
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
    is_trusted = tf.cast(cosine > _MIN_COSINE, tf.float64)
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
  trusted = tf.logical_and(is_readable, cosine > _MIN_COSINE)
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

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the server learns from one masked sum: its spread, or that it is blind.

The input is a mean versine for each of the sixteen stripes. In an ordinary
round all bins are equal and the stripes are one sample. In a calibration round
bins grow eightfold from stripe to stripe; the fit anchors on the coarse side,
where nothing wraps, and refines with every finer stripe that the anchor shows
to be readable.
"""

import math
from typing import NamedTuple

import tensorflow as tf

from tff_autotune_secagg.numerics import quantization
from tff_autotune_secagg.numerics import rounding_noise
from tff_autotune_secagg.numerics import wrapped_normal

# Walking from coarse to fine, the first stripe with at least this spread has a
# finer neighbour, eight times nearer, that may be unreadable.
_ANCHOR_PERIODS = 1 / 32
# A calibration stripe below this mean cosine is not trusted as an anchor, nor
# used by the refinement if it is predicted to be below it: where entries are of
# equal size (a sparse update) a wrapped stripe can look readable.
_MIN_COSINE = 0.3
_REFINEMENTS = 3

_UNIFORM_VARIANCE = 1 / 12
# Below it, ln(sin x / x) is -x^2 / 6 up to 2e-6 of itself.
_SMALL_ANGLE = 0.01
# Decodes to 0.
_UNDECODABLE_PERIODS = 2.0 * wrapped_normal.MAX_PERIODS


class WrappedNormalFit(NamedTuple):
  """A fitted round; all tensors float64 or bool.

  Attributes:
    sum_stddev: scalar, root mean square of an entry of the true rotated sum, in
      units of the values. 0 if blind.
    observed_stddev: [NUM_STRIPES], the same with the rounding noise of each
      stripe's bin size; many periods, which decode to 0, in a calibration round
      of dither. 0 if blind.
    is_blind: scalar bool, the sum says nothing about its size.
    is_zero: scalar bool, every residue is 0.
  """

  sum_stddev: tf.Tensor
  observed_stddev: tf.Tensor
  is_blind: tf.Tensor
  is_zero: tf.Tensor


def fit(
  raw_versines: tf.Tensor,
  decoded_versines: tf.Tensor,
  counts: tf.Tensor,
  bin_sizes: tf.Tensor,
  num_clients: tf.Tensor,
  *,
  modulus: int,
  rounding: quantization.Rounding,
) -> WrappedNormalFit:
  """Fits the spread of the true sum to the residues of a round.

  Args:
    raw_versines: float64 [NUM_STRIPES], sums of versines of the residues.
    decoded_versines: the same after dither was subtracted; equal to
      `raw_versines` for stochastic rounding.
    counts: float64 [NUM_STRIPES], entries of each stripe.
    bin_sizes: float64 [NUM_STRIPES], equal or ascending, units of the values.
    num_clients: float64 scalar, clients whose residues were summed.
    modulus: Python int.
    rounding: the clients' mode.

  Returns:
    A `WrappedNormalFit`, finite for every input. Uniform residues are called
    readable with probability 2.9e-7 per statistic: one in an ordinary round,
    up to sixteen in a calibration round.
  """
  is_ladder = quantization.is_calibration(bin_sizes)
  # Not `==`: on tensors of the graphs that TFF traces it compares identities.
  is_zero = tf.equal(tf.reduce_sum(raw_versines), 0.0)

  def pooled(versines):
    total = tf.maximum(tf.reduce_sum(counts), 1.0)
    everywhere = tf.reduce_sum(versines) / total + 0.0 * versines
    return tf.where(is_ladder, versines / tf.maximum(counts, 1.0), everywhere)

  num_entries = tf.where(
    is_ladder, counts, tf.reduce_sum(counts) + 0.0 * counts
  )
  raw = _Stripes(pooled(raw_versines), num_entries, is_ladder, modulus)

  clients = tf.maximum(num_clients, 1.0)
  readable = raw.readable
  # Offsets of a calibration round are not shared, whatever the mode.
  estimates = bin_sizes * rounding_noise.remove_rounding(
    raw.stddev_bins, clients
  )
  if rounding is quantization.Rounding.DITHER:
    decoded = _Stripes(
      pooled(decoded_versines), num_entries, is_ladder, modulus
    )
    coherent_noise = _coherent_noise(raw, decoded, clients, modulus)
    shared, from_decoded = _dither_estimates(
      raw, decoded, coherent_noise, clients, modulus
    )
    estimates = tf.where(is_ladder, estimates, bin_sizes * shared)
    readable = tf.logical_or(readable, from_decoded)

  anchor = _anchor(readable, raw, modulus)
  is_blind = tf.logical_not(tf.gather(readable, anchor))
  stddev = tf.gather(estimates, anchor)
  for _ in range(_REFINEMENTS):
    weight = _information(
      stddev, bin_sizes, num_entries, clients, modulus
    ) * tf.cast(readable, tf.float64)
    total = tf.reduce_sum(weight)
    refined = tf.sqrt(
      tf.reduce_sum(weight * tf.square(estimates)) / tf.maximum(total, 1e-300)
    )
    stddev = tf.where(total > 0.0, refined, stddev)
  stddev = tf.where(is_blind, tf.zeros_like(stddev), stddev)
  spread = stddev / (bin_sizes * tf.sqrt(clients))
  noise = clients * rounding_noise.decoded_variance(spread, clients, rounding)
  if rounding is quantization.Rounding.DITHER:
    noise = tf.maximum(noise, coherent_noise)
  observed = tf.sqrt(tf.square(stddev) + noise * tf.square(bin_sizes))
  if rounding is quantization.Rounding.DITHER:
    # Equal clients have equal offsets even in a calibration round. Their errors
    # add coherently, which so few entries can not show: decode nothing.
    unknown = tf.maximum(observed, _UNDECODABLE_PERIODS * modulus * bin_sizes)
    observed = tf.where(is_ladder, unknown, observed)
  return WrappedNormalFit(
    sum_stddev=stddev,
    observed_stddev=tf.where(is_blind, tf.zeros_like(observed), observed),
    is_blind=is_blind,
    is_zero=is_zero,
  )


class _Stripes:
  """Spread and readability of each stripe from its mean versine."""

  def __init__(self, mean_versine, num_entries, is_ladder, modulus):
    self.cosine = 1.0 - mean_versine
    readable = wrapped_normal.is_readable(mean_versine, num_entries, modulus)
    trusted = tf.logical_or(
      tf.logical_not(is_ladder), self.cosine > _MIN_COSINE
    )
    self.readable = tf.logical_and(readable, trusted)
    periods = wrapped_normal.stddev_periods(mean_versine)
    # Unreadable stripes are never used; any finite number will do.
    self.stddev_bins = modulus * tf.where(
      self.readable, periods, tf.ones_like(periods)
    )


def _dither_estimates(raw, decoded, coherent_noise, clients, modulus):
  """Spread of the true sum where clients share the dither.

  The raw sum tells it while the clients' values stay within a bin or so; where
  they spread over half a bin or more, subtracting the dither leaves white noise
  of 1/12 for each client and a better statistic.

  Returns:
    float64 [16], standard deviations in bins, and bool [16], which of them come
    from the sum with the dither subtracted.
  """
  spread = rounding_noise.dithered_spread(1.0 - raw.cosine, clients, modulus)
  wide = spread >= rounding_noise.MIN_DITHER_SPREAD
  from_decoded = tf.logical_and(
    decoded.readable, tf.logical_or(tf.logical_not(raw.readable), wide)
  )
  signal = tf.sqrt(
    tf.maximum(tf.square(decoded.stddev_bins) - coherent_noise, 0.0)
  )
  stddev_bins = tf.where(from_decoded, signal, tf.sqrt(clients) * spread)
  return stddev_bins, from_decoded


def _coherent_noise(raw, decoded, clients, modulus):
  """Noise of clients, some alike, under dither, bins^2, float64 [16].

  The raw sum is S = d + n (U - 1/2). Errors that the dither U does not explain
  give it the energy E d^2 + n^2 / 12. If m clients round alike, so that d
  contains -m (U - 1/2), it is m n / 6 less: that tells m. Energies are those of
  wrapped sums: a uniform variable of width n has the mean cosine
  sin(pi n / k) / (pi n / k). Never below the n / 12 of independent clients.
  """

  def uniform(width):
    x = math.pi * width / modulus
    # From a period on, a uniform sum is as wide as can be told.
    cosine = tf.sin(tf.minimum(x, math.pi)) / tf.maximum(x, _SMALL_ANGLE)
    log_cosine = tf.where(
      x > _SMALL_ANGLE,
      tf.math.log(tf.maximum(cosine, 1e-3)),
      -tf.square(x) / 6,
    )
    return -2.0 * log_cosine * (modulus / (2 * math.pi)) ** 2

  whole = uniform(clients)
  missing = tf.square(decoded.stddev_bins) + whole - tf.square(raw.stddev_bins)
  alike = clients * tf.clip_by_value(missing / (2.0 * whole), 0.0, 1.0)
  readable = tf.logical_and(raw.readable, decoded.readable)
  alike = tf.where(readable, alike, tf.zeros_like(alike))
  return tf.maximum(
    clients * _UNIFORM_VARIANCE,
    uniform(alike) + (clients - alike) * _UNIFORM_VARIANCE,
  )


def _anchor(readable, raw, modulus):
  """Returns the index of the stripe to trust first."""
  last = quantization.NUM_STRIPES - 1
  periods = tf.where(
    readable, raw.stddev_bins / modulus, tf.ones_like(raw.stddev_bins)
  )
  wide = tf.cast(periods >= _ANCHOR_PERIODS, tf.int32)
  index = tf.range(last + 1)
  # The coarsest wide stripe, or the finest of all if none is wide.
  coarsest_wide = tf.reduce_max(index * wide)
  coarser = tf.minimum(coarsest_wide + 1, last)
  return tf.where(tf.gather(readable, coarsest_wide), coarsest_wide, coarser)


def _information(stddev, bin_sizes, num_entries, clients, modulus):
  """Fisher information of each stripe about ln(stddev^2), float64 [16].

  Of a calibration; bins of one size have equal estimates, to be averaged alike.

  With C = exp(-2 pi^2 p^2) at p observed periods, var(C) = (1 - C^2)^2 / 2N for
  a wrapped normal, d C / d ln p^2 = C ln C, and ln of the signal moves the
  observed variance by the signal's share of it.
  """
  bins = stddev / bin_sizes
  spread = bins / tf.sqrt(clients)
  noise = clients * rounding_noise.stochastic_variance(spread)
  observed = tf.square(bins) + noise
  share = tf.square(bins) / tf.maximum(observed, 1e-300)
  # The floor keeps (C ln C)^2 / (1 - C^2)^2 at its limit, 1/4, without 0 / 0.
  periods = tf.maximum(tf.sqrt(observed) / modulus, 1e-5)
  cosine = wrapped_normal.mean_cosine(periods)
  log_cosine = tf.math.log(tf.maximum(cosine, 1e-300))
  slope = tf.square(cosine * log_cosine)
  information = 2.0 * num_entries * slope / tf.square(1.0 - tf.square(cosine))
  information *= tf.square(share)
  return information * tf.cast(cosine > _MIN_COSINE, tf.float64)


def decode(
  bins: tf.Tensor,
  bin_sizes: tf.Tensor,
  fitted: WrappedNormalFit,
  *,
  modulus: int,
) -> tf.Tensor:
  """Decodes centred bins to their posterior mean in units of the values.

  With u the sum with rounding noise, of spread `observed_stddev`, the result is
  (sum_stddev / observed_stddev)^2 E[u | u mod k b] (design: the minimum mean
  square error estimate if both are normal).

  Args:
    bins: float32 or float64 tensor [rows, NUM_STRIPES], in
      [-modulus / 2, modulus / 2].
    bin_sizes: float64 [NUM_STRIPES].
    fitted: the fit of the same round.
    modulus: Python int.

  Returns:
    Tensor like `bins`; all zeros if the fit is blind.
  """
  periods = fitted.observed_stddev / (modulus * bin_sizes)
  observed = tf.maximum(fitted.observed_stddev, 1e-300)
  gain = tf.square(fitted.sum_stddev / observed)
  wide, repeats = quantization.widen(bins)
  mean = wrapped_normal.posterior_mean_periods(
    wide / modulus, tf.tile(periods, [repeats])
  )
  scale = tf.cast(gain * modulus * bin_sizes, bins.dtype)
  return tf.reshape(mean * tf.tile(scale, [repeats]), bins.shape)

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""How much of a sum is signal beyond doubt, whatever the clients are.

A coordinate of the rounded sum is u = z + e, with z of the true sum and e of
the clients' rounding. Rounding is unbiased, so that E z u = S^2 for any
clients. Let sigma_o^2 = E u^2 be what is observed. A server that decodes to a
gain g times u makes the error E (g u - z)^2 = S^2 - 2 g S^2 + g^2 sigma_o^2. It
is at most the S^2 of a dropped round if and only if::

    g <= 2 S^2 / sigma_o^2.

How large S^2 is, the sum does not tell: where clients nearly cancel, nearly all
of sigma_o^2 can be rounding. But a client's rounding has a variance of at most
b^2 / 6 for normal coordinates, so that n clients leave::

    S^2 >= sigma_o^2 - n b^2 / 6.

A calibration has a second bound, from two stripes with bins of b and r b: the
variance of rounding grows at least r-fold from the one to the other (v(s) / s
falls with s, see `rounding_noise`), so that::

    S^2 >= (r sigma_o(b)^2 - sigma_o(r b)^2) / (r - 1).

Both are estimates with standard errors. A bound that holds is `DOUBT` of them
below the estimate.
"""

from typing import NamedTuple

import tensorflow as tf

from tff_autotune_secagg.numerics.reading import stripes

# Standard errors that a bound stays below its estimate.
DOUBT = 4.0

# With fewer residues that are not 0 in a stripe, its standard error says too
# little.
_FEWEST_NONZERO = 64.0
# The square of 3.
_MOST_UNSEEN = 9.0


class Observed(NamedTuple):
  """Variances before any rounding is taken out; float64 or bool [NUM_STRIPES].

  Attributes:
    variance: sigma_o^2, units of the values squared; 0 where not readable.
    error: its standard error.
    is_readable: whether the stripe tells a variance.
    is_enough: whether it has enough residues that are not 0.
  """

  variance: tf.Tensor
  error: tf.Tensor
  is_readable: tf.Tensor
  is_enough: tf.Tensor


class SignalBound(NamedTuple):
  """What gains rest on; float64 scalars, units of the values squared.

  Attributes:
    variance: the estimate of S^2, but at most twice its lower bound: a gain of
      `variance` / sigma_o^2 never errs by more than a dropped round.
    doubled: twice the lower bound of S^2.
    error: standard error of the estimate that `variance` comes from.
    index: int32, the stripe that it comes from.
  """

  variance: tf.Tensor
  doubled: tf.Tensor
  error: tf.Tensor
  index: tf.Tensor


def observe(
  stddev_bins: tf.Tensor,
  bin_sizes: tf.Tensor,
  information: tf.Tensor,
  num_coordinates: tf.Tensor,
  is_readable: tf.Tensor,
) -> Observed:
  """Returns what the stripes show, with standard errors.

  Args:
    stddev_bins: float64 [NUM_STRIPES], sigma_o / b.
    bin_sizes: float64 [NUM_STRIPES], b.
    information: float64 [NUM_STRIPES], Fisher information about ln sigma_o^2.
    num_coordinates: float64 [NUM_STRIPES], of each stripe; of an ordinary
      round, whose stripes are one sample, all of them.
    is_readable: bool [NUM_STRIPES].
  """
  variance = tf.square(stddev_bins * bin_sizes)
  # Where bins are coarse, the variance is a count of the few residues that are
  # not 0. Its error is that of a Poisson count, and of an upper limit where the
  # count is next to nothing: `DOUBT` times 3 for a count of 0.
  num_nonzero = num_coordinates * tf.square(stddev_bins)
  of_one = tf.square(bin_sizes) / tf.maximum(num_coordinates, 1.0)
  squared_error = tf.square(variance) / tf.maximum(information, 1e-12)
  squared_error += tf.square(of_one) * (num_nonzero + _MOST_UNSEEN)
  nothing = tf.zeros_like(variance)
  return Observed(
    tf.where(is_readable, variance, nothing),
    tf.where(is_readable, tf.sqrt(squared_error), nothing),
    is_readable,
    tf.logical_and(is_readable, num_nonzero > _FEWEST_NONZERO),
  )


def bound(
  observed: Observed, noise: tf.Tensor, bin_sizes: tf.Tensor
) -> SignalBound:
  """Returns the largest bound of all stripes and of all neighbouring pairs.

  Args:
    observed: of the stripes.
    noise: float64 [NUM_STRIPES], the most variance that rounding can have, such
      as n b^2 / 6.
    bin_sizes: float64 [NUM_STRIPES], equal or ascending.
  """
  ratio = bin_sizes[1:] / bin_sizes[:-1]
  is_pair = ratio > 1.5
  ratio = tf.where(is_pair, ratio, 2.0 * tf.ones_like(ratio))
  is_pair = tf.logical_and(is_pair, observed.is_readable[1:])
  variance, error = observed.variance, observed.error
  of_pairs = (ratio * variance[:-1] - variance[1:]) / (ratio - 1.0)
  pair_error = tf.sqrt(tf.square(ratio * error[:-1]) + tf.square(error[1:]))

  is_known = tf.concat(
    [observed.is_enough, tf.logical_and(observed.is_enough[:-1], is_pair)], 0
  )
  estimates = tf.concat([variance - noise, of_pairs], 0)
  errors = tf.concat([error, pair_error / (ratio - 1.0)], 0)
  doubled = 2.0 * (estimates - DOUBT * errors)
  # A variance is never below 0: of few coordinates, whose standard error is
  # large, its logarithm is the better normal.
  relative = error / tf.maximum(variance, 1e-300)
  of_few = 2.0 * (variance * tf.exp(-DOUBT * relative) - noise)
  of_few = tf.concat([of_few, doubled[stripes.NUM_STRIPES :]], 0)
  doubled = tf.maximum(doubled, of_few)
  doubled = tf.where(is_known, doubled, tf.zeros_like(doubled))
  doubled = tf.maximum(doubled, 0.0)
  least = tf.minimum(doubled, tf.maximum(estimates, 0.0))
  best = tf.argmax(least, output_type=tf.int32)
  return SignalBound(
    variance=least[best],
    doubled=tf.reduce_max(doubled),
    error=errors[best],
    index=best % stripes.NUM_STRIPES,
  )


def is_drowned(
  observed: Observed, noise: tf.Tensor, bounded: SignalBound
) -> tf.Tensor:
  """Tells whether the first stripe shows nothing but rounding; scalar bool.

  Only for an ordinary round: there, the sum is too small to be seen beside the
  rounding of its bins.
  """
  rest = tf.abs(observed.variance[0] - noise[0])
  is_near = rest < DOUBT * observed.error[0]
  is_near = tf.logical_and(is_near, observed.is_readable[0])
  return tf.logical_and(is_near, bounded.variance <= 0.0)


def of_stripes(
  observed: Observed, bounded: SignalBound
) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns sigma_o^2 of each stripe and where it can be decoded by it.

  A stripe that shows less than the bound has wrapped, or its coordinates are
  not normal: it is not decodable. Nor is a stripe with too few residues that
  are not 0. A stripe finer than the finest sound one gets that one's variance
  as an upper limit.

  Args:
    observed: of the stripes.
    bounded: their bound.

  Returns:
    float64 [NUM_STRIPES], at least the bound where decodable, and bool
    [NUM_STRIPES].
  """
  doubt = DOUBT * tf.sqrt(tf.square(observed.error) + tf.square(bounded.error))
  is_sound = tf.logical_and(
    observed.is_enough, bounded.variance <= observed.variance + doubt
  )
  index = tf.range(stripes.NUM_STRIPES)
  is_gap = tf.logical_and(index < bounded.index, tf.logical_not(is_sound))
  finest = tf.reduce_max(tf.where(is_gap, index, -tf.ones_like(index))) + 1
  is_finer = tf.logical_and(index < finest, is_sound[bounded.index])
  variance = tf.where(is_finer, observed.variance[finest], observed.variance)
  is_sound = tf.logical_or(is_sound, is_finer)
  least = tf.where(is_sound, bounded.variance, tf.zeros_like(variance))
  return tf.maximum(variance, least), is_sound

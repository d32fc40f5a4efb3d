# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a round reports. A new measurement is one line of `_MEASUREMENTS`.

What it needs is in `FinishedRound`, which `round_codec` fills in. Rounds of
distributed differential privacy report what `stages.share_noise` measures.
"""

import collections
from typing import NamedTuple, Optional, Tuple

import tensorflow as tf

from tff_autotune_secagg.numerics.reading import fitting
from tff_autotune_secagg.numerics.reading import stripes
from tff_autotune_secagg.numerics.reading import wrapped_normal
from tff_autotune_secagg.numerics.rounding import quantization
from tff_autotune_secagg.numerics.tuning import tuners


class FinishedRound(NamedTuple):
  """What there is to report of.

  Attributes:
    tuner: whose settings the round had.
    tuner_state: state of the tuner before the round.
    bin_sizes: float64 [NUM_STRIPES], those of the round.
    fitted: the fit of its sum.
    predicted_nmse: float64 scalar, of `decoding.Decoder`.
    contributing: int32 scalar, clients whose update is not 0.
    rejected: int32 scalar, clients whose update is not finite.
    num_coordinates: Python int, coordinates on the wire.
    size_forecast: what the tuner believed, see `Tuner.size_forecast`.
    unpredicted: if a prediction was subtracted, the square of the rest, which
      the fit and the error are of, over that of the sum; float64 scalar.
  """

  tuner: tuners.Tuner
  tuner_state: collections.OrderedDict
  bin_sizes: tf.Tensor
  fitted: fitting.WrappedNormalFit
  predicted_nmse: tf.Tensor
  contributing: tf.Tensor
  rejected: tf.Tensor
  num_coordinates: int
  size_forecast: Tuple[tf.Tensor, tf.Tensor]
  unpredicted: Optional[tf.Tensor] = None

  @property
  def num_clients(self) -> tf.Tensor:
    """Clients whose update is not 0, float64 scalar."""
    return tf.cast(self.contributing, tf.float64)

  @property
  def num_bits(self) -> int:
    """Bits of a residue."""
    return quantization.num_bits(self.tuner.modulus)


def _bin_size(finished: FinishedRound) -> tf.Tensor:
  """Returns the round's one bin size; of a ladder, what the tuner says."""
  return tf.where(
    stripes.is_ladder(finished.bin_sizes),
    finished.tuner.reported_bin_size(finished.tuner_state),
    tf.cast(finished.bin_sizes[0], tf.float32),
  )


def _sum_stddev(finished: FinishedRound) -> tf.Tensor:
  """Returns the size of the sum, whether or not it was predicted."""
  stddev = finished.fitted.sum_stddev
  if finished.unpredicted is None:
    return stddev
  return stddev / tf.sqrt(finished.unpredicted)


def _num_bytes(finished: FinishedRound) -> tf.Tensor:
  num_bytes = quantization.payload_bytes(
    finished.num_coordinates, finished.num_bits
  )
  return tf.constant(num_bytes, tf.int64)


_MEASUREMENTS = collections.OrderedDict(
  bin_size=_bin_size,
  calibrating=lambda r: stripes.is_ladder(r.bin_sizes),
  blind=lambda r: tf.logical_and(r.fitted.is_blind, r.num_clients > 0.0),
  zero_sum=lambda r: r.fitted.is_zero,
  modulus_too_small=lambda r: r.tuner.modulus_is_too_small(r.num_clients),
  sum_stddev=lambda r: tf.cast(_sum_stddev(r), tf.float32),
  size_forecast=lambda r: r.size_forecast[0],
  size_uncertainty=lambda r: r.size_forecast[1],
  wrap_probability=lambda r: tf.cast(fitted_wrap_probability(r), tf.float32),
  predicted_nmse=lambda r: tf.cast(round_nmse(r), tf.float32),
  num_clients=lambda r: r.contributing,
  rejected_clients=lambda r: r.rejected,
  bits_per_coordinate=lambda r: tf.constant(r.num_bits, tf.int32),
  bytes_per_client=_num_bytes,
)

NAMES = tuple(_MEASUREMENTS)

# What a round with a prediction reports besides.
_OF_PREDICTION = collections.OrderedDict(
  prediction_gain=lambda r: tf.cast(r.unpredicted, tf.float32),
)


def measure(finished: FinishedRound) -> collections.OrderedDict:
  """Returns all measurements of a round, by name."""
  functions = dict(_MEASUREMENTS)
  if finished.unpredicted is not None:
    functions.update(_OF_PREDICTION)
  return collections.OrderedDict(
    (name, function(finished)) for name, function in functions.items()
  )


def fitted_wrap_probability(finished: FinishedRound) -> tf.Tensor:
  """Returns the fitted share of coordinates outside half a period.

  float64 in [0, 1], mean of the stripes; 1 for a blind round.
  """
  observed = tf.maximum(finished.fitted.observed_stddev, 1e-300)
  half_period = finished.tuner.modulus * finished.bin_sizes / 2 / observed
  mean = tf.reduce_mean(2.0 * wrapped_normal.normal_tail(half_period))
  return tf.where(finished.fitted.is_blind, tf.ones_like(mean), mean)


def round_nmse(finished: FinishedRound) -> tf.Tensor:
  """Returns the error expected of a finished round, float64.

  0 for a round without clients; 1 for a blind round, for one whose residues are
  all 0 although clients had something to send, and for one whose residues are
  explained by rounding alone: nothing is known of their sums.
  """
  error = finished.predicted_nmse
  if finished.unpredicted is not None:
    # Of a residual up to what would be that of a dropped sum, or a doubt more.
    error = tf.minimum(error * finished.unpredicted, 1.0)
  return tf.where(finished.num_clients > 0.0, error, tf.zeros_like(error))

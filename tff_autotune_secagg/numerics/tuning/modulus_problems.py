# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Why a modulus may be too small for a cohort."""

from typing import NamedTuple, Optional

import tensorflow as tf

from tff_autotune_secagg.numerics.reading import decoding_error
from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.rounding import rounding_noise
from tff_autotune_secagg.numerics.tuning import operating_point

# Above this predicted error a modulus is called too small for its cohort. Of
# the posterior mean, unless decoding is centred: where it is reached, an
# unbiased sum is no better than a dropped one.
MAX_PREDICTED_NMSE = 0.5


def rule_has_fixed_point(
  wrap_probability: float,
  num_clients: tf.Tensor,
  modulus: int,
  rounding: modes.Rounding,
) -> tf.Tensor:
  """Tells whether the paper's rule converges: k - 1 > 2 z sqrt(n v), bool.

  Rounding of variance v each, 1/6 or 1/12, then grows less than the bins.
  """
  variance = rounding_noise.decoded_variance(
    tf.constant(1e3, tf.float64), num_clients, rounding
  )
  quantile = operating_point.normal_quantile(wrap_probability)
  return modulus - 1 > 2.0 * quantile * tf.sqrt(num_clients * variance)


class ModulusProblems(NamedTuple):
  """Why a modulus may be too small for a cohort; scalar bool tensors.

  Attributes:
    error: the predicted error exceeds `MAX_PREDICTED_NMSE`; with
      `Decoding.UNBIASED` that of the posterior mean does.
    rule: the paper's rule has no fixed point.
    dither: k < 2 r sqrt(n), so that clients of equal size differ by about a bin
      or less. Half a bin is enough if they are independent; the rest is for
      clients that agree in part. One client has nobody to agree with.
  """

  error: tf.Tensor
  rule: tf.Tensor
  dither: tf.Tensor


def find(
  num_clients: tf.Tensor,
  modulus: int,
  wrap_probability: Optional[float],
  rounding: modes.Rounding,
  decoding: modes.Decoding,
) -> ModulusProblems:
  """Tells why no bin size serves this many clients well, if so.

  Args:
    num_clients: float64 scalar; values below 1 are read as 1.
    modulus: Python int.
    wrap_probability: None for the automatic one, or that of the paper's rule.
    rounding: the clients' mode.
    decoding: the server's mode.

  Returns:
    A `ModulusProblems`.
  """
  clients = tf.maximum(num_clients, 1.0)
  never = tf.constant(False)
  if wrap_probability is None:
    known = tf.zeros([1], tf.float64), tf.ones([1], tf.float64)
    found = operating_point.best_operating_point(
      clients, modulus, rounding, decoding, *known
    )
    rule = never
  else:
    found = operating_point.paper_operating_point(
      wrap_probability, clients, modulus, rounding
    )
    rule = tf.logical_not(
      rule_has_fixed_point(wrap_probability, clients, modulus, rounding)
    )
  alike = never
  if rounding is modes.Rounding.DITHER:
    reach = 2.0 * found.half_period_stddevs * tf.sqrt(clients)
    alike = tf.logical_and(clients >= 2.0, modulus < reach)
  error = decoding_error.nmse(
    found.half_period_stddevs,
    found.noise_share,
    operating_point.criterion(decoding),
  )
  return ModulusProblems(error > MAX_PREDICTED_NMSE, rule, alike)

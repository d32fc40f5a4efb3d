# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The planner: how many bits a cohort needs, in plain numbers, before training.

The same functions as the tuner's, `operating_point`, for updates of unknown
size: the error relative to the sum depends on the number of clients, the
modulus and how well the size of the next sum is known.
"""

import functools
from typing import NamedTuple, Optional

import tensorflow as tf

from tff_autotune_secagg import _checks
from tff_autotune_secagg.numerics.reading import wrapped_normal
from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.tuning import modulus_problems
from tff_autotune_secagg.numerics.tuning import operating_point


class _Plan(NamedTuple):
  """What the planner finds for a client count and a modulus; scalar tensors."""

  half_period_stddevs: tf.Tensor
  error: tf.Tensor
  is_too_small: tf.Tensor


@functools.lru_cache(maxsize=64)
def _planner(wrap_probability, rounding, decoding, size_uncertainty):
  """Returns a function of float64 client count and modulus to a `_Plan`.

  It is traced once for all counts and moduli: a bisection that runs operation
  by operation takes 0.2 s.
  """

  def plan(num_clients, modulus):
    nodes = operating_point.normal_nodes(size_uncertainty)
    if wrap_probability is None:
      found = operating_point.best_operating_point(
        num_clients,
        modulus,
        rounding,
        decoding,
        *nodes,
      )
    else:
      found = operating_point.paper_operating_point(
        wrap_probability, num_clients, modulus, rounding
      )
    problems = modulus_problems.find(
      num_clients, modulus, wrap_probability, rounding, decoding
    )
    error = operating_point.expected_nmse(
      found, num_clients, rounding, decoding, *nodes
    )
    return _Plan(
      found.half_period_stddevs,
      error,
      tf.reduce_any(problems),
    )

  spec = tf.TensorSpec([], tf.float64)
  return tf.function(plan, input_signature=[spec, spec], autograph=False)


def _planned(
  num_clients, modulus, wrap_probability, rounding, decoding, size_uncertainty
) -> _Plan:
  """Checks the planner's arguments and returns the plan they lead to."""
  num_clients = _checks.check_count('num_clients', num_clients)
  modulus = _checks.check_modulus(modulus)
  wrap_probability = operating_point.check_wrap_probability(wrap_probability)
  size_uncertainty = _checks.check_float(
    'size_uncertainty', size_uncertainty, at_least=0, at_most=2
  )
  rounding = _checks.check_enum('rounding', rounding, modes.Rounding)
  decoding = _checks.check_enum('decoding', decoding, modes.Decoding)
  planner = _planner(wrap_probability, rounding, decoding, size_uncertainty)
  return planner(
    tf.constant(num_clients, tf.float64), tf.constant(modulus, tf.float64)
  )


@_checks.names_modulus
def optimal_wrap_probability(
  *,
  num_clients: int,
  modulus: int,
  rounding: modes.Rounding = modes.Rounding.STOCHASTIC,
  decoding: modes.Decoding = modes.Decoding.UNBIASED,
  size_uncertainty: float = operating_point.DEFAULT_SIZE_UNCERTAINTY,
) -> float:
  """Returns the wrap probability of least expected error.

  Args:
    num_clients: int in 1 .. 10**15, clients summed in a round.
    modulus: int in 2 .. 2**30.
    rounding: `Rounding` of the clients.
    decoding: `Decoding` of the server.
    size_uncertainty: standard deviation of the forecast of ln(sigma) for the
      next round, 0 to 2: about 0.1 for even clients, 0.4 for uneven clients.

  Returns:
    Probability that a coordinate of the rotated sum leaves half a period.

  Raises:
    TypeError, ValueError: an argument is of the wrong kind or out of range.
  """
  found = _planned(
    num_clients, modulus, None, rounding, decoding, size_uncertainty
  )
  return float(2.0 * wrapped_normal.normal_tail(found.half_period_stddevs))


@_checks.names_modulus
def predicted_nmse(
  *,
  num_clients: int,
  modulus: int,
  wrap_probability: Optional[float] = None,
  rounding: modes.Rounding = modes.Rounding.STOCHASTIC,
  decoding: modes.Decoding = modes.Decoding.UNBIASED,
  size_uncertainty: float = operating_point.DEFAULT_SIZE_UNCERTAINTY,
  prediction_gain: float = 1.0,
) -> float:
  """Predicts the error of a round once the tuner knows the updates' size.

  Holds for clients whose updates are about orthogonal and of like size; clients
  that agree round with less noise.

  Args:
    num_clients: int in 1 .. 10**15, clients summed in a round.
    modulus: int in 2 .. 2**30.
    wrap_probability: None for an automatic choice, or the paper's alpha.
    rounding: `Rounding` of the clients.
    decoding: `Decoding` of the server.
    size_uncertainty: as in `optimal_wrap_probability`; the error is the mean
      over the sizes that the next sum may have.
    prediction_gain: with `predict_sum`, the squared size of what a prediction
      leaves of a sum over that of the sum, above 0 and at most 1, as rounds
      measure it. The error falls by it. 1 for a server that does not predict.

  Returns:
    Squared norm of the error over that of the true sum.

  Raises:
    TypeError, ValueError: an argument is of the wrong kind or out of range.
  """
  found = _planned(
    num_clients, modulus, wrap_probability, rounding, decoding, size_uncertainty
  )
  return _check_gain(prediction_gain) * float(found.error)


def _check_gain(prediction_gain) -> float:
  return _checks.check_float(
    'prediction_gain', prediction_gain, above=0, at_most=1
  )


def plan_modulus(
  num_clients: int,
  target_nmse: float,
  *,
  wrap_probability: Optional[float] = None,
  rounding: modes.Rounding = modes.Rounding.STOCHASTIC,
  decoding: modes.Decoding = modes.Decoding.UNBIASED,
  size_uncertainty: float = operating_point.DEFAULT_SIZE_UNCERTAINTY,
  prediction_gain: float = 1.0,
) -> int:
  """Returns the smallest power of two whose predicted error meets a target.

  It never returns a modulus that a tuner would flag as too small, because the
  paper's rule has no fixed point there, or dither has too many clients, nor one
  that reads too little of the sums that predictions are made of.

  A rule of thumb for the result: half a bit for every doubling of the clients
  and for every halving of the error.

  Args:
    num_clients: int in 1 .. 10**15, clients summed in a round.
    target_nmse: squared norm of the error over that of the true sum, in (0, 1).
    wrap_probability: as in `predicted_nmse`.
    rounding: as in `predicted_nmse`.
    decoding: as in `predicted_nmse`.
    size_uncertainty: as in `predicted_nmse`.
    prediction_gain: as in `predicted_nmse`; `-log2(prediction_gain) / 2` bits.

  Returns:
    A power of two, 4 to 2**30: `log2` of it is the bits per coordinate.

  Raises:
    TypeError: an argument is of the wrong kind.
    ValueError: an argument is out of range, or no modulus reaches the target.
  """
  target_nmse = _checks.check_float(
    'target_nmse', target_nmse, above=0, below=1
  )
  gain = _check_gain(prediction_gain)
  for bits in range(2, _checks.MAX_BITS + 1):
    found = _planned(
      num_clients,
      2**bits,
      wrap_probability,
      rounding,
      decoding,
      size_uncertainty,
    )
    if gain * found.error <= target_nmse and not found.is_too_small:
      return 2**bits
  error = gain * float(found.error)
  raise ValueError(
    f'`target_nmse` {target_nmse:g} is out of reach for {num_clients} clients:'
    f' {_checks.MAX_BITS} bits give {error:.2g}. Raise `target_nmse`'
    + ('.' if wrap_probability is None else ' or leave out `wrap_probability`.')
  )

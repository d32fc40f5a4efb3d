# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ready-made compositions: what most users need."""

from typing import Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_autotune_secagg import _checks
from tff_autotune_secagg import modulus_planning
from tff_autotune_secagg.factories import chain
from tff_autotune_secagg.factories import flatten
from tff_autotune_secagg.factories import mean
from tff_autotune_secagg.factories import modular_sum
from tff_autotune_secagg.factories import norm_limits
from tff_autotune_secagg.factories import prediction
from tff_autotune_secagg.factories import quantize_mod
from tff_autotune_secagg.factories import rotation
from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.tuning import modulus_problems
from tff_autotune_secagg.numerics.tuning import wrapped_normal_tuner
from tff_autotune_secagg.stages import rotate


class AutotunedSecureSumFactory(chain.ChainedFactory):
  """Sums float structures under a secure modular sum, with no range to choose.

  Flattens the value, rotates it by a fresh randomized Hadamard transform,
  rounds it to bins of a tuned size and sums the bins modulo `modulus`. The bin
  size of the next round comes from the standard deviations of the masked sums
  so far, and from nothing else. The first round, and every round after an
  unreadable sum, uses a ladder of bin sizes over 13 decades instead.

  Types:
    `value_type` is any structure of float16, bfloat16, float32 and float64
    tensors; the result has the same type and containers.
  State:
    That of `HadamardRotationFactory` around `QuantizeModFactory`; with
    `predict_sum` one of its own, see docs/state.md.
  Measurements:
    Those of `QuantizeModFactory`; with `predict_sum` also `prediction_gain`.
  Secure signals:
    The residues and two counts: clients whose update is not 0, and rejected
    clients.

  Guarantees:
    With the default decoding the expected squared error of a round is at most
    `predicted_nmse` times the squared norm of the true sum, and that is at most
    1, in every round in which the coordinates of the rotated sum are normal,
    whatever the clients are. Averaged over the rotations the result is the sum,
    in rounds that do not calibrate and whose `predicted_nmse` is clearly below
    1: half of it with 1,024 coordinates, 0.9 with 35,000. A client with a
    coordinate that is not finite adds nothing and is counted. The bin size is
    always finite and positive.
  Limits:
    A sum with a standard deviation below 1e-9 or above 1e4 takes up to four
    rounds to be found, as far as float32 reaches. A sum of a few nonzero
    coordinates is not normal after one rotation; see `num_rotations`. Values of
    fewer than 1024 coordinates cost as much as 1024.

  Reference:
    Bonawitz et al. (2019, arXiv:1912.00131).
  """

  @_checks.names_modulus
  def __init__(
    self,
    *,
    modulus: int,
    wrap_probability: Optional[float] = None,
    num_clients: Optional[int] = None,
    rounding: modes.Rounding = modes.Rounding.STOCHASTIC,
    decoding: modes.Decoding = modes.Decoding.UNBIASED,
    num_rotations: int = 1,
    expected_size: Optional[float] = None,
    predict_sum: bool = False,
    seed: Optional[int] = None,
  ):
    """Initializes the factory.

    Args:
      modulus: int in 2 .. 2**30; its logarithm is the bits per coordinate. See
        `plan_modulus`.
      wrap_probability: None for the value of least error, or a float in (0, 1)
        for the paper's rule with this alpha.
      num_clients: clients expected in a round, 1 to 10**15. If given, a modulus
        too small for them is refused here; if not, it is flagged in the
        measurements.
      rounding: `Rounding` of the clients.
      decoding: `Decoding` of the server.
      num_rotations: rotations one after the other, 1 to 8; 2 for updates with
        only a few nonzero coordinates.
      expected_size: a guess of the first sum's `sum_stddev`, 1e-30 to 1e30, in
        units of the values; None if nothing is known, and with a
        `wrap_probability`. With a good guess half
        of the first round comes through, without one a tenth or two; any
        size is found all the same. `learned_size` takes it from the state of
        an earlier training.
      predict_sum: whether the server predicts each sum from those before, and
        reads only what is left of it. Worth it for successive sums that are
        alike, such as those of a training with 50 clients in a round or more.
        It takes a state as large as the value.
      seed: of the rotations and the dither; int of 0 .. 2**63 - 1, or None to
        draw one in every `initialize`. A saved state brings its own, which
        wins.

    Raises:
      TypeError, ValueError: an argument is of the wrong kind or out of range,
        or `modulus` is too small for `num_clients`.
    """
    modulus = _checks.check_modulus(modulus)
    tuner = wrapped_normal_tuner.WrappedNormalTuner(
      modulus=modulus,
      wrap_probability=wrap_probability,
      rounding=rounding,
      decoding=decoding,
      expected_size=expected_size,
      num_clients=num_clients,
    )
    num_clients = _checks.check_optional_count(
      'num_clients', num_clients, _checks.MAX_COUNT
    )
    if num_clients is not None:
      _check_modulus_fits(num_clients, tuner)
    quantized = quantize_mod.QuantizeModFactory(
      modular_sum.ExactModularSumFactory(modulus=modulus),
      tuner=tuner,
      seed=seed,
    )
    rotated = rotation.HadamardRotationFactory(
      quantized, num_rotations=num_rotations, min_dim=rotate.MIN_DIM, seed=seed
    )
    if _checks.check_bool('predict_sum', predict_sum):
      rotated = prediction.PredictedSumFactory(rotated)
    super().__init__([], flatten.FlattenFactory(rotated))


def _check_modulus_fits(num_clients, tuner):
  """Raises ValueError if the planner says the modulus is too small."""
  modulus, wrap_probability = tuner.modulus, tuner.wrap_probability
  options = dict(
    wrap_probability=wrap_probability,
    rounding=tuner.rounding,
    decoding=tuner.decoding,
  )
  problems = modulus_problems.find(
    tf.constant(num_clients, tf.float64), modulus, **options
  )
  limit = modulus_problems.MAX_PREDICTED_NMSE
  if problems.error:
    error = modulus_planning.predicted_nmse(
      num_clients=num_clients, modulus=modulus, **options
    )
    reason = (
      f'the predicted error is {error:.2g} of the squared norm of the sum,'
      f' above {limit:g}'
    )
  elif problems.rule:
    reason = f'no bin size has `wrap_probability` {wrap_probability:g}'
  elif problems.dither:
    reason = (
      'they may differ by less than a bin, where dither lets their errors add'
    )
  else:
    return
  try:
    fit = modulus_planning.plan_modulus(num_clients, limit, **options)
    change = f'Raise `modulus` to {fit} or more, or lower `num_clients`.'
  except ValueError:  # So many coordinates wrap that no modulus helps.
    change = 'No modulus will do: lower `wrap_probability` or leave it out.'
  raise ValueError(
    f'`modulus` {modulus} is too small for `num_clients` {num_clients}:'
    f' {reason}. {change}' + _checks.modulus_hint(modulus)
  )


@_checks.names_modulus
def autotuned_secure_aggregator(
  *,
  modulus: int = 2**8,
  wrap_probability: Optional[float] = None,
  zeroing: bool = True,
  clipping: bool = True,
  weighted: bool = True,
  num_clients: Optional[int] = None,
  rounding: modes.Rounding = modes.Rounding.STOCHASTIC,
  decoding: modes.Decoding = modes.Decoding.UNBIASED,
  num_rotations: int = 1,
  expected_size: Optional[float] = None,
  predict_sum: bool = False,
  seed: Optional[int] = None,
) -> tff.aggregators.AggregationFactory:
  """Secure mean of model updates, for `model_aggregator=` of TFF's builders.

  Takes the place of `tff.learning.secure_aggregator`: 8 bits per coordinate by
  default, whatever the number of clients, and no range to adapt.

  Secure signals:
    `AutotunedSecureSumFactory` and the mean around it send masked sums only:
    residues, the weight, and counts of contributing and rejected clients.
    `zeroing` adds whether the client's largest coordinate is below a quantile
    estimate, and whether the client was zeroed; `clipping` adds whether its
    norm is below another estimate, and whether it was clipped. All of them are
    secure sums. For each signal of zeroing and clipping TFF also counts, by
    secure sums, the clients that sent it and the clients that sent a value out
    of its range; no client does.
  Measurements:
    `round_measurements` finds them. `bin_size`, `sum_stddev` and
    `size_forecast` are in units of what is summed: if `weighted`, of updates
    times weights, and TFF's builders weigh by the number of examples.

  Args:
    modulus: int in 2 .. 2**30; its logarithm is the bits per coordinate.
    wrap_probability: None for an automatic choice, or the paper's alpha.
    zeroing: whether a client with an extremely large coordinate is replaced by
      zeros, as TFF's aggregators do: a corrupted client must not cost a round.
      The limit is learned. It begins at 21 and grows by a factor of up to 10 in
      a round, so updates of 1,000 are all zeroed in the first two rounds. A
      client whose update is not finite is rejected, with its weight.
    clipping: whether the norm of updates is clipped adaptively, as TFF's
      aggregators do. The limit is learned: it begins at a norm of 1, and about
      a fifth of the clients is above it. The secure sum does not need it.
    weighted: True for `build_weighted_fed_avg`, False for
      `build_unweighted_fed_avg`.
    num_clients: as in `AutotunedSecureSumFactory`.
    rounding: as in `AutotunedSecureSumFactory`.
    decoding: as in `AutotunedSecureSumFactory`.
    num_rotations: as in `AutotunedSecureSumFactory`.
    expected_size: as in `AutotunedSecureSumFactory`; of the sum of updates
      times weights, if the mean is weighted.
    predict_sum: as in `AutotunedSecureSumFactory`.
    seed: as in `AutotunedSecureSumFactory`.

  Returns:
    A `tff.aggregators.WeightedAggregationFactory`, or an unweighted one.

  Raises:
    TypeError, ValueError: an argument is of the wrong kind or out of range.
  """
  zeroing = _checks.check_bool('zeroing', zeroing)
  clipping = _checks.check_bool('clipping', clipping)
  weighted = _checks.check_bool('weighted', weighted)
  factory = AutotunedSecureSumFactory(
    modulus=modulus,
    wrap_probability=wrap_probability,
    num_clients=num_clients,
    rounding=rounding,
    decoding=decoding,
    num_rotations=num_rotations,
    expected_size=expected_size,
    predict_sum=predict_sum,
    seed=seed,
  )
  if weighted:
    factory = mean.SecureMeanFactory(factory)
  else:
    factory = mean.SecureUnweightedMeanFactory(factory)
  factory = norm_limits.limited(factory, zeroing=zeroing, clipping=clipping)
  if zeroing or clipping:
    factory = flatten.flatten_first(factory)
  return factory

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The aggregators of `aggregators.parse` as means without TFF.

This package's rounds are its own code (`SumSimulation`), the others NumPy.
Sizes on the wire are those of the TFF factories of the same texts.
"""

import dataclasses
from typing import Callable, Dict

import numpy as np

from experiments.common import aggregator_factories
from experiments.common import aggregators
from experiments.common import seeds
from experiments.common import sum_simulation
from experiments.common.baselines import levels
from experiments.convergence import quantile
from experiments.convergence import sums
from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.stages import rotate

# Means that TFF takes without weights: the weight is put into the update.
_UNWEIGHTED = ('ddp_secure_aggregator',)


@dataclasses.dataclass(frozen=True)
class Cohort:
  """What a sum must know of its rounds.

  Attributes:
    num_clients: Clients in each round.
    dim: Coordinates of an update.
    seed: Of rotations and rounding.
  """

  num_clients: int
  dim: int
  seed: int

  def generator(self) -> np.random.Generator:
    """A generator of the run's aggregation."""
    return seeds.generator(self.seed, seeds.Stream.AGGREGATION)


class Mean:
  """A weighted mean, round by round.

  Attributes:
    bits_per_coordinate: Bits that a client sends for a coordinate.
    bytes_per_client: Bytes of a client's update.
  """

  def __init__(self, text: str, cohort: Cohort):
    """Initializes the mean.

    Args:
      text: As `aggregators.parse` reads it.
      cohort: The rounds.

    Raises:
      TooFewBitsError: The bits cannot carry the clients of a round.
      ValueError: The aggregator or one of its settings is not known here.
    """
    scheme = aggregators.parse(text)
    if scheme.name not in _SUMS:
      raise ValueError(
        f'`aggregator` must be one of {", ".join(_SUMS)} here, found '
        f'{scheme.name!r}.'
      )
    self._is_weighted = scheme.name not in _UNWEIGHTED
    settings = dict(scheme.settings)
    zeroing = settings.pop('zeroing', False)
    clipping = settings.pop('clipping', False)
    self._zeroing = quantile.zeroing() if zeroing else None
    self._clipping = quantile.clipping() if clipping else None
    self._sum = _SUMS[scheme.name](cohort, **settings)
    built = aggregator_factories.build(
      text,
      aggregator_factories.Round(
        cohort.num_clients, (cohort.dim,), cohort.seed, self._is_weighted
      ),
    )
    self.bits_per_coordinate = built.bits_per_coordinate
    self.bytes_per_client = built.bytes_per_client

  def __call__(self, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """One round.

    Args:
      values: [clients, dim]; clients compute in float32.
      weights: float64 [clients], positive.

    Returns:
      float64 [dim].
    """
    values = np.float32(values)
    if not self._is_weighted:
      values = values * np.float32(weights / weights.mean())[:, np.newaxis]
    if self._zeroing is not None:
      values = _zero(values, self._zeroing)
    if self._clipping is not None:
      values = _clip(values, self._clipping)
    if not self._is_weighted:
      return self._sum(values) / len(values)
    weighted = values * np.float32(weights)[:, np.newaxis]
    return self._sum(weighted) / weights.sum()


def _zero(values, limit):
  sizes = np.abs(values).max(axis=1)
  kept = sizes <= limit.limit
  limit.update(sizes)
  return np.where(kept[:, np.newaxis], values, np.float32(0.0))


def _clip(values, limit):
  norms = np.linalg.norm(values, axis=1)
  factors = np.float32(limit.limit / np.maximum(norms, limit.limit))
  limit.update(norms)
  return values * factors[:, np.newaxis]


def _plain_mean(cohort: Cohort) -> sums.Sum:
  del cohort  # Any.
  return sums.plain_sum


def _secure_aggregator(cohort: Cohort) -> sums.Sum:
  del cohort  # Any.
  return sums.SecureSum()


def _rotated(inner, cohort: Cohort, rng) -> sums.Sum:
  return sums.RotatedSum(inner, cohort.dim, rng)


def _rotated_secure_sum(cohort: Cohort) -> sums.Sum:
  return _rotated(sums.SecureSum(), cohort, cohort.generator())


def _fixed_range(
  cohort: Cohort, bits, clip_range, rotate, sampled_fraction
) -> sums.Sum:
  if sampled_fraction < 1:
    raise ValueError(
      '`sampled_fraction` of fixed_range must be 1 here, found '
      f'{sampled_fraction:g}.'
    )
  rng = cohort.generator()
  num_levels = levels.most_levels(bits, cohort.num_clients)
  # As `aggregator_factories` has it: a level at 0 where most values are near 0.
  if not rotate and num_levels > 2:
    num_levels -= 1 - num_levels % 2
  if clip_range is None:
    clip_range = quantile.secure_range()
  inner = sums.FixedRangeSum(clip_range, num_levels, rng)
  return _rotated(inner, cohort, rng) if rotate else inner


def _rotated_quantization(cohort: Cohort, bits) -> sums.Sum:
  rng = cohort.generator()
  return _rotated(sums.LocalRangeSum(2**bits, rng), cohort, rng)


def _ddp_secure_aggregator(cohort: Cohort, bits, noise_multiplier) -> sums.Sum:
  if noise_multiplier:
    raise ValueError(
      '`noise_multiplier` of ddp_secure_aggregator must be 0 here, found '
      f'{noise_multiplier}.'
    )
  rng = cohort.generator()
  width = 2 ** (cohort.dim - 1).bit_length()
  return sums.RotatedSum(sums.DdpSum(bits, rng), width, rng)


def _autotuned(
  cohort: Cohort,
  rounding,
  decoding,
  modulus,
  wrap_probability,
  num_rotations,
  prediction,
  **others,
) -> sums.Sum:
  for name, value in others.items():
    if value:
      raise ValueError(
        f'`{name}` of autotuned must be left out here, found {value!r}: teach '
        'it to `SumSimulation` first.'
      )
  rounding = modes.Rounding(rounding)
  simulation = sum_simulation.SumSimulation(
    modulus=modulus,
    dim=cohort.dim,
    min_dim=rotate.MIN_DIM,
    wrap_probability=wrap_probability,
    rounding=rounding,
    decoding=modes.Decoding(decoding),
    num_rotations=num_rotations,
    predict_sum=prediction,
    seed=seeds.integer(cohort.seed, seeds.Stream.AGGREGATION),
    is_batched=rounding is modes.Rounding.STOCHASTIC,
  )

  return lambda rows: simulation.run_round(rows).result.astype(float)


# By the names of the functions; each takes the settings of its aggregator but
# zeroing and clipping.
_SUMS: Dict[str, Callable[..., sums.Sum]] = {
  'plain_mean': _plain_mean,
  'autotuned': _autotuned,
  'secure_aggregator': _secure_aggregator,
  'rotated_secure_sum': _rotated_secure_sum,
  'fixed_range': _fixed_range,
  'ddp_secure_aggregator': _ddp_secure_aggregator,
  'rotated_quantization': _rotated_quantization,
}

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The script of a soak: which clients a round has, and what befalls them."""

import dataclasses
from typing import Any, Callable, Dict, Iterator, Optional

import numpy as np

from experiments.common import seeds

_COHORTS = (1, 2, 3, 5, 10, 20)
_LOG10_SCALES = (-8.0, 1.0)


@dataclasses.dataclass(frozen=True)
class Config:
  """What one soak does.

  Attributes:
    num_rounds: Rounds of the script.
    dim: Entries of a client's vector.
    modulus: Of the aggregator.
    dither: Whether clients round by dither.
    seed: Of the script, the vectors and the aggregator.
    block: Rounds in a row of results.
  """

  num_rounds: int = 5000
  dim: int = 1024
  modulus: int = 256
  dither: bool = False
  seed: int = 1
  block: int = 50


@dataclasses.dataclass(frozen=True)
class Step:
  """One round of the script: `fault` befalls the first `num_bad` clients."""

  round: int
  scale: float
  num_clients: int
  fault: Optional[str]
  num_bad: int


def _fill(number):
  return lambda value, weight, rng: (np.full_like(value, number), weight)


def _with_entry(number):
  def change(value, weight, rng):
    value = value.copy()
    value[rng.integers(value.size)] = number
    return value, weight

  return change


def _spike(value, weight, rng):
  energy = np.linalg.norm(value)
  return _with_entry(energy)(np.zeros_like(value), weight, rng)


def _with_weight(number):
  return lambda value, weight, rng: (value, number)


# What can befall a client: (value, weight, rng) -> (value, weight).
FAULTS: Dict[str, Callable[..., Any]] = {
  'nan': _fill(np.nan),
  'one_nan': _with_entry(np.nan),
  'inf': _fill(np.inf),
  'one_minus_inf': _with_entry(-np.inf),
  'overflow': _fill(1e38),
  'denormal': _fill(1e-42),
  'zeros': _fill(0.0),
  'constant': lambda value, weight, rng: (
    np.full_like(value, np.std(value)),
    weight,
  ),
  'million': lambda value, weight, rng: (value * np.float32(1e6), weight),
  'spike': _spike,
  'weight_zero': _with_weight(0.0),
  'weight_fraction': lambda value, weight, rng: (value, rng.random()),
  'weight_negative': _with_weight(-5.0),
  'weight_nan': _with_weight(np.nan),
  'weight_inf': _with_weight(np.inf),
  'weight_huge': _with_weight(2.0**41),
}
_NO_CLIENTS = 'no_clients'
_EQUAL_CLIENTS = 'equal_clients'


def steps(config: Config) -> Iterator[Step]:
  """The steps of a soak; a step depends on the seed and those before it."""
  names = sorted(FAULTS) + [_NO_CLIENTS, _EQUAL_CLIENTS]
  log_scale, num_clients = 0.0, 5
  for round_num in range(1, config.num_rounds + 1):
    rng = seeds.generator(config.seed, seeds.Stream.SAMPLING, round_num)
    if rng.random() < 0.04:
      low = max(_LOG10_SCALES[0], log_scale - 3)
      log_scale = rng.uniform(low, min(_LOG10_SCALES[1], log_scale + 3))
    if rng.random() < 0.05:
      num_clients = int(rng.choice(_COHORTS))
    fault, num_bad = None, 0
    if rng.random() < 0.3:
      fault = str(rng.choice(names))
      share = rng.choice(['one', 'some', 'all'], p=[0.6, 0.3, 0.1])
      some = int(rng.integers(1, num_clients + 1))
      num_bad = {'one': 1, 'some': some, 'all': num_clients}[share]
    yield Step(round_num, 10**log_scale, num_clients, fault, num_bad)


def clients(config: Config, step: Step):
  """The vectors and weights of a step, float32 [dim] and float."""
  rng = seeds.generator(config.seed, seeds.Stream.VECTORS, step.round)
  if step.fault == _NO_CLIENTS:
    return [], []
  values = step.scale * rng.normal(size=(step.num_clients, config.dim))
  values = list(values.astype(np.float32))
  weights = [float(w) for w in rng.integers(50, 101, size=step.num_clients)]
  if step.fault == _EQUAL_CLIENTS:
    values = [values[0]] * step.num_clients
  elif step.fault:
    for index in range(step.num_bad):
      values[index], weights[index] = FAULTS[step.fault](
        values[index], weights[index], rng
      )
  return values, [np.float32(w) for w in weights]


# What a smoke run shrinks.
SMOKE = dict(num_rounds=8)

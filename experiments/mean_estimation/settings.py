# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The settings of mean estimation, and the synthetic vectors among them."""

import dataclasses
from typing import Sequence

import numpy as np

from experiments.common import aggregators
from experiments.common import seeds

_TYPICAL_SIZE = 0.01  # Root mean square of an entry of a synthetic vector.
_SPARSITY = 0.01  # Share of entries of a sparse vector that are not zero.
_TAIL_DEGREES = 3  # Student's t: finite variance, infinite kurtosis.
_MISALIGNMENT = 0.1  # Size of what differs between aligned clients.


def _dense(rng, num_clients, dim):
  return rng.normal(size=(num_clients, dim))


def _sparse(rng, num_clients, dim):
  kept = rng.random((num_clients, dim)) < _SPARSITY
  return rng.normal(size=(num_clients, dim)) * kept


def _heavy_tailed(rng, num_clients, dim):
  return rng.standard_t(_TAIL_DEGREES, size=(num_clients, dim))


def _aligned(rng, num_clients, dim):
  common = rng.normal(size=dim)
  return common + _MISALIGNMENT * rng.normal(size=(num_clients, dim))


def _orthogonal(rng, num_clients, dim):
  """Clients share no coordinate."""
  owner = rng.integers(0, num_clients, dim)
  return (owner == np.arange(num_clients)[:, np.newaxis]) * rng.normal(size=dim)


_KINDS = {
  'dense': _dense,
  'sparse': _sparse,
  'heavy_tailed': _heavy_tailed,
  'aligned': _aligned,
  'orthogonal': _orthogonal,
}
RECORDED = 'recorded'
KINDS = tuple(_KINDS) + (RECORDED,)


@dataclasses.dataclass(frozen=True)
class Config:
  """Everything that decides the numbers of one run.

  Attributes:
    aggregator: Text that `aggregators.parse` reads once `aggregators.fill_in`
      has replaced the bits of this run, the largest absolute entry of all
      its vectors, and the root mean square of their coordinates after a
      rotation. A fixed range is allowed to know these here.
    bits: What `{bits}` and `{modulus}` stand for; 0 if there are none.
    vectors: One of `KINDS`.
    num_clients: Clients in each round.
    dim: Entries of a synthetic vector.
    num_rounds: Rounds, each with fresh vectors.
    settling_rounds: First rounds, which figures leave out.
    seed: Seed of vectors and aggregator.
  """

  aggregator: str
  bits: int = 0
  vectors: str = 'dense'
  num_clients: int = 10
  dim: int = 10_000
  num_rounds: int = 8
  settling_rounds: int = 3
  seed: int = 1

  def __post_init__(self):
    if self.vectors not in KINDS:
      raise ValueError(
        f'`vectors` must be one of {", ".join(KINDS)}, found {self.vectors!r}.'
      )
    aggregators.parse(self.text(1.0))

  def text(self, largest: float, deviation: float = 1.0) -> str:
    """The aggregator with everything replaced, as by `fill_in`."""
    return aggregators.fill_in(self.aggregator, self.bits, largest, deviation)


def synthetic_vectors(config: Config) -> np.ndarray:
  """float32 [num_rounds, num_clients, dim] of typical size `_TYPICAL_SIZE`."""
  rounds = []
  for round_num in range(config.num_rounds):
    rng = seeds.generator(config.seed, seeds.Stream.VECTORS, round_num)
    vectors = _KINDS[config.vectors](rng, config.num_clients, config.dim)
    rounds.append(
      vectors * (_TYPICAL_SIZE / np.sqrt(np.mean(np.square(vectors))))
    )
  return np.float32(rounds)


def configs(
  aggregator_texts: Sequence[str],
  bits: Sequence[int],
  kinds: Sequence[str],
  run_seeds: Sequence[int],
  **settings,
) -> Sequence[Config]:
  """All combinations; an aggregator without `{bits}` or `{modulus}` once.

  The kinds vary fastest, so that a `Runner` can use its processes again.
  """
  found = []
  for seed in run_seeds:
    for aggregator in aggregator_texts:
      follows = '{bits}' in aggregator or '{modulus}' in aggregator
      for number in bits if follows else [0]:
        for kind in kinds:
          found.append(
            Config(
              aggregator=aggregator,
              bits=number,
              vectors=kind,
              seed=seed,
              **settings,
            )
          )
  return found

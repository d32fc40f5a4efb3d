# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Error of aggregators on vectors, synthetic or recorded."""

import dataclasses
import math
import time
from typing import Any, Dict, Iterator, Sequence

import numpy as np
import tensorflow_federated as tff

from experiments.common import aggregators
from experiments.common import datasets
from experiments.common import seeds
from experiments.training import trainer

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
      has replaced the bits of this run and the largest absolute entry of all
      its vectors, which a fixed range is allowed to know here.
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

  def text(self, largest: float) -> str:
    """The aggregator with everything replaced."""
    return aggregators.fill_in(self.aggregator, self.bits, largest)


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


def record_updates(
  config: trainer.Config, data: datasets.ImageData
) -> np.ndarray:
  """Client updates of every round of a training run with the plain mean.

  Args:
    config: The training run; its aggregator and server settings must be those
      of plain federated averaging.
    data: Its data set.

  Returns:
    float32 [num_rounds, clients_per_round, parameters].
  """
  config = dataclasses.replace(
    config,
    aggregator='plain_mean',
    server_learning_rate=1.0,
    server_momentum=0.0,
  )
  learner = trainer.Trainer(config, data)
  state = learner.process.initialize()
  recorded = []
  for round_num in range(1, config.num_rounds + 1):
    before = _flat_weights(learner, state)
    client_data = learner.client_data(round_num)
    # A round of one client moves the model by just that client's update.
    recorded.append(
      [
        _flat_weights(learner, learner.process.next(state, [one]).state)
        - before
        for one in client_data
      ]
    )
    state = learner.process.next(state, client_data).state
  return np.float32(recorded)


def _flat_weights(learner, state):
  weights = learner.process.get_model_weights(state).trainable
  return np.concatenate([np.ravel(w) for w in weights])


class Runner:
  """Runs configs and keeps compiled processes for the next ones."""

  def __init__(self):
    self._processes = {}

  def run(
    self, config: Config, vectors: np.ndarray
  ) -> Iterator[Dict[str, Any]]:
    """Averages each round's vectors and yields how far off the result is.

    Args:
      config: The settings.
      vectors: float32 [rounds, clients, dim], for instance
        `synthetic_vectors(config)`.

    Yields:
      For each round a dict of `round` (from 1), `nmse` (error energy over the
      energy of the true mean), `bits_per_coordinate`, `bytes_per_client`,
      `aggregator` (measurements) and `wall_seconds`.
    """
    num_clients, dim = vectors.shape[1:]
    text = config.text(np.abs(vectors).max())
    key = (text, num_clients, dim, config.seed)
    if key not in self._processes:
      built = aggregators.parse(text).build(
        aggregators.Round(num_clients, (dim,), config.seed, weighted=False)
      )
      self._processes[key] = (
        built,
        built.factory.create(tff.TensorType(np.float32, [dim])),
      )
    built, process = self._processes[key]
    state = process.initialize()
    for round_num, clients in enumerate(vectors, 1):
      start = time.monotonic()
      output = process.next(state, list(clients))
      state = output.state
      wanted = clients.mean(axis=0, dtype=np.float64)
      error = np.sum((output.result - wanted) ** 2)
      energy = np.sum(wanted**2)
      yield {
        'round': round_num,
        'nmse': float(error / energy) if energy else math.nan,
        'bits_per_coordinate': built.bits_per_coordinate,
        'bytes_per_client': built.bytes_per_client,
        'aggregator': trainer.scalar_measurements(output.measurements),
        'wall_seconds': round(time.monotonic() - start, 3),
      }


def configs(
  aggregators: Sequence[str],
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
    for aggregator in aggregators:
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

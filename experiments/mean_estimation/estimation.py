# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Error of aggregators on vectors, synthetic or recorded."""

import dataclasses
import math
import time
from typing import Any, Dict, Iterator

import numpy as np
import tensorflow_federated as tff

from experiments.common import aggregator_factories
from experiments.common import datasets
from experiments.mean_estimation import settings
from experiments.training import settings as training_settings
from experiments.training import trainer
from tff_autotune_secagg.stages import rotate


def record_updates(
  config: training_settings.Config, data: datasets.ImageData
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


def rotated_deviation(vectors: np.ndarray) -> float:
  """Root mean square of a coordinate of rotated vectors.

  A rotation keeps norms, and pads.

  Args:
    vectors: float [rounds, clients, dim].

  Returns:
    That of all vectors together.
  """
  width = rotate.width(vectors.shape[-1], min_dim=1)
  squared_norms = np.sum(np.square(vectors, dtype=np.float64), axis=-1)
  return math.sqrt(squared_norms.mean() / width)


def _build(text, num_clients, dim, seed):
  return aggregator_factories.build(
    text,
    aggregator_factories.Round(num_clients, (dim,), seed, weighted=False),
  )


def check(config: settings.Config) -> None:
  """Raises if the aggregator of a config cannot be built.

  Args:
    config: The settings.

  Raises:
    TooFewBitsError: Its bits cannot carry the clients of a round.
    ValueError: Anything else is wrong with it.
  """
  _build(config.text(1.0), config.num_clients, config.dim, config.seed)


class Runner:
  """Runs configs and keeps compiled processes for the next ones."""

  def __init__(self):
    self._processes = {}

  def run(
    self, config: settings.Config, vectors: np.ndarray
  ) -> Iterator[Dict[str, Any]]:
    """Averages each round's vectors and yields how far off the result is.

    Args:
      config: The settings.
      vectors: float32 [rounds, clients, dim], for instance
        `settings.synthetic_vectors(config)`.

    Yields:
      For each round a dict of `round` (from 1), `dim` (of the vectors), `nmse`
      (error energy over the energy of the true mean), `bits_per_coordinate`,
      `bytes_per_client`, `aggregator` (measurements) and `wall_seconds`.
    """
    num_clients, dim = vectors.shape[1:]
    text = config.text(np.abs(vectors).max(), rotated_deviation(vectors))
    key = (text, num_clients, dim, config.seed)
    if key not in self._processes:
      built = _build(text, num_clients, dim, config.seed)
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
        'dim': dim,
        'nmse': float(error / energy) if energy else math.nan,
        'bits_per_coordinate': built.bits_per_coordinate,
        'bytes_per_client': built.bytes_per_client,
        'aggregator': trainer.scalar_measurements(output.measurements),
        'wall_seconds': round(time.monotonic() - start, 3),
      }

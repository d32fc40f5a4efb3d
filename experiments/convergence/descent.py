# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gradient descent by all clients, through one aggregator."""

from typing import Any, Dict, Iterator, Optional

import numpy as np
import tensorflow as tf

from experiments.common import datasets
from experiments.common import row_rotation
from experiments.common import seeds
from experiments.common import traffic
from experiments.convergence import means
from experiments.convergence import problem as problems
from experiments.convergence import settings

# The model goes down as 32-bit floats.
_BYTES_PER_WEIGHT = 4


def load(
  config: settings.Config,
  *,
  data_dir: Optional[str] = None,
  allow_download: bool = False,
) -> problems.Problem:
  """The problem of a run.

  Args:
    config: The run.
    data_dir: Folder of the data set's files, if not the usual one.
    allow_download: Whether missing files may be downloaded.

  Returns:
    The problem, the same for all aggregators.

  Raises:
    ValueError: The images do not suffice for the settings.
    FileNotFoundError: Files are missing.
  """
  if config.smoke:
    data = datasets.synthetic(
      config.dataset, num_train=config.num_examples, num_test=10
    )
  else:
    data = datasets.load(
      config.dataset, data_dir=data_dir, allow_download=allow_download
    )
  return problems.Problem(
    data,
    num_examples=config.num_examples,
    num_features=config.num_features,
    num_clients=config.num_clients,
    dirichlet_concentration=config.dirichlet_concentration,
    l2=config.l2,
    seed=config.seed,
  )


def build(config: settings.Config, problem: problems.Problem) -> means.Mean:
  """The aggregator of a run.

  Raises:
    TooFewBitsError: Its bits cannot carry the clients.
    ValueError: The aggregator is not known here.
  """
  cohort = means.Cohort(config.num_clients, problem.dim, config.seed)
  text = config.text(_largest_coordinate(config, problem))
  return means.Mean(text, cohort)


def run(
  config: settings.Config, problem: problems.Problem, mean: means.Mean
) -> Iterator[Dict[str, Any]]:
  """Descends from weights of 0.

  A round is one gradient of all of each client's examples. It is FedAvg, too,
  with one local step on one batch of all examples: the update is then the
  gradient times the client's step size.

  Args:
    config: The run.
    problem: As `load` returned it.
    mean: As `build` returned it.

  Yields:
    For each evaluated round (the first, the last, and every `eval_every`th) a
    dict of `round`; `excess_loss`, the loss after the round minus the least
    loss, at least `problem.FLOOR`; of the round's mean `nmse`, its squared
    error over its squared norm, and `cancellation`, the clients' squared norms
    over that of their sum; `bits_per_coordinate`; and of one client and round
    `bytes_per_client` (update), `download_bytes_per_client` (model) and
    `round_bytes` (with keys of masks).
  """
  down = _BYTES_PER_WEIGHT * problem.dim
  costs = dict(
    bits_per_coordinate=mean.bits_per_coordinate,
    bytes_per_client=mean.bytes_per_client,
    download_bytes_per_client=down,
    round_bytes=traffic.round_bytes(
      config.text(1.0),
      update_bytes=mean.bytes_per_client,
      model_bytes=down,
      num_clients=config.num_clients,
    ),
  )
  weights = np.zeros(problem.dim)
  found = problem.gradients(weights)
  for round_num in range(1, config.num_rounds + 1):
    clients = found.clients
    result = mean(clients, problem.sizes)
    weights = weights - config.learning_rate * result
    found = problem.gradients(weights)
    if (
      round_num in (1, config.num_rounds) or round_num % config.eval_every == 0
    ):
      excess = max(found.loss - problem.least_loss, problems.FLOOR)
      yield dict(
        round=round_num,
        excess_loss=_short(excess),
        **_quality(problem, clients, result),
        **costs,
      )


def _quality(problem, clients, result) -> Dict[str, float]:
  """The error of a mean, and how much of the clients cancels in it."""
  exact = problem.mean(clients)
  energy = np.sum(np.square(exact))
  own = np.square(problem.sizes) @ np.sum(np.square(clients), axis=1)
  return dict(
    nmse=_short(np.sum(np.square(result - exact)) / energy),
    cancellation=_short(own / (energy * problem.sizes.sum() ** 2)),
  )


def _largest_coordinate(config, problem) -> float:
  """Of updates times weights, rotated, at the start and at the optimum."""
  rng = seeds.generator(config.seed, seeds.Stream.VECTORS)
  largest = 0.0
  for weights in (np.zeros(problem.dim), problem.optimum):
    updates = problem.gradients(weights).clients * problem.sizes[:, np.newaxis]
    seed = tf.constant(rng.integers(2**62, size=2))
    rotated = row_rotation.rotate(tf.constant(updates), seed)
    largest = max(largest, float(tf.reduce_max(tf.abs(rotated))))
  return largest


def _short(value: float) -> float:
  """Six digits: files of rows are read by eye, too."""
  return float(f'{value:.5e}')

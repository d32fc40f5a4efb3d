# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Speed and traffic of federated training by the number of workers."""

import dataclasses
import pathlib
import time
from typing import Any, Dict, Iterator, Tuple

from experiments.training import settings
from experiments.training import trainer
from tff_autotune_secagg import simulation

# TFF compiles in the first round; the second is the first with a warm worker.
_WARM_UP_ROUNDS = 2


@dataclasses.dataclass(frozen=True)
class Config:
  """What is measured.

  Attributes:
    training: The training, the same for every row; `eval_every` must exceed
      `num_rounds`, so that no evaluation is timed.
    worker_counts: Numbers of workers; 0 is the local context.
    workers: Addresses, at least as many as the largest count.
  """

  training: settings.Config
  worker_counts: Tuple[int, ...]
  workers: Tuple[str, ...] = ()


def network_bytes() -> Tuple[int, int]:
  """Bytes sent and received by this network namespace since it exists."""
  sent, received = 0, 0
  for line in pathlib.Path('/proc/net/dev').read_text().splitlines()[2:]:
    fields = line.partition(':')[2].split()
    received += int(fields[0])
    sent += int(fields[8])
  return sent, received


def check(config: Config) -> None:
  """Raises ValueError if a setting would end the run once it has begun."""
  trainer.check(config.training, trainer.load_data(config.training))


def run(config: Config) -> Iterator[Dict[str, Any]]:
  """Trains once for each number of workers.

  Yields:
    Rows with `round` (their number), `num_workers`, `rounds_per_minute`,
    `megabytes_sent` and `megabytes_received` per round (of the whole network
    namespace, so give the run one of its own), and `train_loss` of the last
    round.
  """
  data = trainer.load_data(config.training)
  for number, count in enumerate(config.worker_counts, 1):
    yield dict(_measure(config, data, count), round=number)


def _measure(config: Config, data, num_workers: int) -> Dict[str, Any]:
  if num_workers:
    simulation.set_remote_context(config.workers[:num_workers])
  else:
    simulation.set_local_context()
  learner = trainer.Trainer(config.training, data)
  state = learner.process.initialize()
  for round_num in range(1, config.training.num_rounds + 1):
    clients = learner.client_data(round_num)
    output = learner.process.next(state, clients)
    state = output.state
    if round_num == _WARM_UP_ROUNDS:
      start, bytes_before = time.monotonic(), network_bytes()
  rounds = config.training.num_rounds - _WARM_UP_ROUNDS
  minutes = (time.monotonic() - start) / 60
  sent, received = (
    (after - before) / rounds / 1e6
    for before, after in zip(bytes_before, network_bytes())
  )
  return {
    'num_workers': num_workers,
    'rounds_per_minute': rounds / minutes,
    'megabytes_sent': sent,
    'megabytes_received': received,
    'train_loss': float(output.metrics['client_work']['train']['loss']),
  }

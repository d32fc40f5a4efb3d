# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The peak memory and the error of a few rounds of one sum."""

import asyncio
import dataclasses
import os
import tempfile
import time
from typing import Any, Dict, Optional

import numpy as np

_LARGEST_NMSE = 1.1  # The first round knows nothing and may lose its sum.

AGGREGATORS = (
  'autotuned',
  'autotuned_predicted',
  'sum',
  'secure_aggregator',
)


@dataclasses.dataclass(frozen=True)
class Config:
  """What is measured.

  Attributes:
    dim: Values in a client's vector.
    num_clients: Clients in a round.
    num_rounds: Rounds.
    modulus: Of the aggregator.
    aggregator: One of `AGGREGATORS`.
    max_concurrent_clients: Clients that compute at a time; None for no limit.
  """

  dim: int = 100_000
  num_clients: int = 10
  num_rounds: int = 3
  modulus: int = 256
  aggregator: str = 'autotuned'
  max_concurrent_clients: Optional[int] = None


# What a smoke run shrinks.
SMOKE = dict(dim=3000, num_clients=2)


def build(config: Config):
  """Builds the aggregator; raises ValueError if a setting is wrong."""
  import tensorflow_federated as tff  # Not above: slow.

  import tff_autotune_secagg as autotune

  if config.aggregator == 'sum':
    return tff.aggregators.SumFactory()
  if config.aggregator == 'secure_aggregator':
    # A mean, without what it adds to a sum by default.
    return tff.learning.secure_aggregator(
      zeroing=False, clipping=False, weighted=False
    )
  return autotune.AutotunedSecureSumFactory(
    modulus=config.modulus,
    predict_sum=config.aggregator == 'autotuned_predicted',
    seed=1,
  )


def state_bytes(state) -> int:
  """Bytes of the numbers in a server's state."""
  import tree  # Not above, as the others.

  return sum(np.asarray(leaf).nbytes for leaf in tree.flatten(state))


def checkpoint_bytes(state, folder: str) -> int:
  """Bytes of the files that TFF writes of a state into an empty folder."""
  import tensorflow_federated as tff  # Not above: slow.

  manager = tff.program.FileProgramStateManager(folder)
  asyncio.run(manager.save(state, 1))
  return sum(
    os.path.getsize(os.path.join(where, name))
    for where, _, names in os.walk(folder)
    for name in names
  )


def _peak_mib(pid: int) -> float:
  with open(f'/proc/{pid}/status') as f:
    for line in f:
      if line.startswith('VmHWM:'):
        return int(line.split()[1]) / 1024
  raise ValueError(f'/proc/{pid}/status must have VmHWM, found none.')


def measure(config: Config) -> Dict[str, Any]:
  """Runs the rounds in a local context of its own.

  Once in each process, since a peak cannot be taken back.

  Args:
    config: What is measured.

  Returns:
    `seconds` and `nmse` of each round, `state_bytes` and `checkpoint_bytes` of
    the server's state after the last, and in MiB `data_mib` (the clients'
    vectors), `python_before_rounds_mib`, `python_peak_mib`, `worker_peak_mib`.

  Raises:
    RuntimeError: If the error is so large that nothing was summed.
  """
  import tensorflow_federated as tff  # Not above: slow.

  import tff_autotune_secagg as autotune

  factory = build(config)
  autotune.simulation.set_local_context(
    max_concurrent_clients=config.max_concurrent_clients
  )
  rng = np.random.default_rng(1)
  clients = [
    rng.standard_normal(config.dim, np.float32)
    for _ in range(config.num_clients)
  ]
  expected = np.zeros(config.dim)
  for client in clients:
    expected += client
  process = factory.create(tff.TensorType(np.float32, [config.dim]))
  state = process.initialize()
  before_mib = _peak_mib(os.getpid())
  seconds, errors = [], []
  for _ in range(config.num_rounds):
    start = time.monotonic()
    output = process.next(state, clients)
    seconds.append(round(time.monotonic() - start, 2))
    state = output.state
    result = output.result
    if config.aggregator == 'secure_aggregator':
      result = result * config.num_clients
    error = np.sum((result - expected) ** 2, dtype=np.float64)
    errors.append(float(error / np.sum(expected**2)))
  if max(errors) > _LARGEST_NMSE:
    raise RuntimeError(
      f'Errors must be at most {_LARGEST_NMSE}, found {errors}.'
    )
  (worker_pid,) = autotune.simulation.worker_pids()
  peaks = dict(
    python_peak_mib=round(_peak_mib(os.getpid())),
    worker_peak_mib=round(_peak_mib(worker_pid)),
  )
  with tempfile.TemporaryDirectory() as folder:
    saved = checkpoint_bytes(state, folder)
  return dict(
    seconds=seconds,
    nmse=errors,
    state_bytes=state_bytes(state),
    checkpoint_bytes=saved,
    data_mib=round(config.num_clients * config.dim * 4 / 2**20),
    python_before_rounds_mib=round(before_mib),
    **peaks,
  )

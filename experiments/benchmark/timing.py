# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Times this package's arithmetic and rounds beside those of TFF and TFMOT.

All cases of one group and size are run in turn, over and over, so that a ratio
of two of them compares runs that followed each other on the same machine.
"""

import dataclasses
import time
from typing import Any, Dict, Iterator, Tuple

Row = Dict[str, Any]

GROUPS = (
  'transform',
  'encode',
  'decode',
  'download encode',
  'download decode',
  'round',
  'download round',
)
_ROUNDS = ('round', 'download round')

# Parameters of the network of Bonawitz et al. (2019).
PAPER_DIM = 1_369_738


@dataclasses.dataclass(frozen=True)
class Config:
  """What to time.

  Attributes:
    groups: some of `GROUPS`.
    dims: values in a vector, for everything but whole rounds.
    round_dims: values in a vector, for whole rounds.
    num_clients: clients in a round.
    aggregators: names of the cases of whole rounds; none: all of them.
    repeats: timed calls of each local case.
    round_repeats: timed rounds of each aggregator.
    modulus: of this package's residues.
    max_round_values: rounds with more values than that at all clients together
      are left out; every value crosses a socket to TFF's worker.
  """

  groups: Tuple[str, ...] = GROUPS
  dims: Tuple[int, ...] = (2**17, 2**20, PAPER_DIM, 2**22, 2**24)
  round_dims: Tuple[int, ...] = (2**17, PAPER_DIM)
  num_clients: Tuple[int, ...] = (10, 100)
  aggregators: Tuple[str, ...] = ()
  repeats: int = 7
  round_repeats: int = 5
  modulus: int = 256
  max_round_values: int = 15_000_000


# What a smoke run shrinks.
SMOKE = dict(
  dims=(1100,),  # The smallest model that is coded has 1,024 values.
  round_dims=(1100,),
  num_clients=(2,),
  repeats=1,
  round_repeats=1,
)


def check(config: Config) -> None:
  """Raises ValueError if a setting would end the run once it has begun."""
  from experiments.benchmark import cases  # Not above: it loads TensorFlow.

  cases.check(config.aggregators, config.num_clients, config.modulus)


def _time_in_turn(calls, repeats: int, warm_ups: int) -> Iterator[Row]:
  """Runs all calls once per repeat; yields seconds of wall and process time."""
  for repeat in range(-warm_ups, repeats):
    for name, call in calls.items():
      start, cpu_start = time.perf_counter(), time.process_time()
      call()
      seconds = time.perf_counter() - start
      if repeat >= 0:
        yield dict(
          case=name,
          repeat=repeat,
          seconds=seconds,
          process_seconds=time.process_time() - cpu_start,
        )


def run(config: Config) -> Iterator[Row]:
  """Times every case; the caller has set an execution context for rounds.

  Args:
    config: what to time.

  Yields:
    One row per timed call: `group`, `dim`, `num_clients` (0 for local cases),
    `case`, `repeat`, `seconds`, and `process_seconds`: processor time of all
    threads of this process, which excludes TFF's worker.
  """
  from experiments.benchmark import cases  # Not above: it loads TensorFlow.

  for group in config.groups:
    if group in _ROUNDS:
      continue
    for dim in config.dims:
      calls = cases.local_calls(group, dim, config.modulus)
      for row in _time_in_turn(calls, config.repeats, warm_ups=2):
        yield dict(row, group=group, dim=dim, num_clients=0)
  for group in _ROUNDS:
    if group not in config.groups:
      continue
    for dim in config.round_dims:
      for num_clients in config.num_clients:
        if dim * num_clients > config.max_round_values:
          continue
        if group == 'round':
          calls = cases.round_calls(
            dim, num_clients, config.modulus, config.aggregators
          )
        else:
          calls = cases.download_calls(dim, num_clients)
        # The second round of this package is the first with a tuned bin size.
        for row in _time_in_turn(calls, config.round_repeats, warm_ups=2):
          yield dict(row, group=group, dim=dim, num_clients=num_clients)

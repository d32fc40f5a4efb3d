# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""A training that keeps all it needs in one folder, and continues from it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import fcntl
import os
from typing import Any, Union

import tensorflow_federated as tff

from tff_autotune_secagg import _checks
from tff_autotune_secagg.simulation import programs


@contextlib.contextmanager
def _held(folder: str) -> Iterator[None]:
  """Makes a folder that no other run may have within this block."""
  rule = (
    f'`folder` must be a folder to write to that no other run has: {folder!r}'
  )
  try:
    os.makedirs(folder, exist_ok=True)
    lock = open(os.path.join(folder, 'lock'), 'w')
  except OSError as error:
    raise OSError(f'{rule}: {error.strerror}.') from error
  with lock:  # The lock ends with its file, and so with the process as well.
    try:
      fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
      raise OSError(
        f'{rule} is in use by another run: wait for its end or give another '
        'folder.'
      ) from error
    yield


class _Report(tff.program.ReleaseManager):
  """Hands the metrics of each round to a function."""

  def __init__(self, on_round: Callable[[int, Mapping[str, Any]], None]):
    self._on_round = on_round

  async def release(self, value: Any, key: int) -> None:
    self._on_round(key, await tff.program.materialize_value(value))


def train_in_folder(
  process: tff.learning.templates.LearningProcess,
  client_data: Callable[[int], Sequence[Any]],
  folder: Union[str, os.PathLike[str]],
  *,
  num_rounds: int,
  on_ready: Callable[[int], None] = lambda round_num: None,
  on_round: Callable[[int, Mapping[str, Any]], None] = lambda *_: None,
) -> None:
  """Trains by `tff.learning.programs.train_model`, and keeps all in a folder.

  `folder` gets a checkpoint of each round (`states/`, the last five are kept),
  a row of metrics for each (`metrics.csv`) and in the end the model
  (`model/`, a SavedModel). The same call continues what was ended, by Ctrl-C or
  otherwise. Computes where `set_local_context` or `set_remote_context` said.

  Args:
    process: such as `tff.learning.algorithms.build_weighted_fed_avg` returns.
    client_data: takes the number of a round, from 1, and returns the datasets
      of its clients; the same in every call, so that a training that continues
      sees the clients that an undisturbed one sees.
    folder: path; made where it is not there. One run at a time may have it.
    num_rounds: how many rounds there are in all, with those of earlier calls.
    on_ready: called once, before the first round, with the number of rounds
      that are done already.
    on_round: called after each round with its number and its metrics.

  Raises:
    TypeError: an argument is of the wrong kind.
    ValueError: `num_rounds` is not positive.
    OSError: `folder` cannot be written to, or another run has it.
    KeyboardInterrupt: Ctrl-C has ended it. What was being written is written.
  """
  _checks.check_instance(
    'process',
    process,
    tff.learning.templates.LearningProcess,
    'a `tff.learning.templates.LearningProcess`',
  )
  _checks.check_int('num_rounds', num_rounds, minimum=1)
  for name, value in (('on_ready', on_ready), ('on_round', on_round)):
    _checks.check_instance(name, value, Callable, 'a function')
  _checks.check_instance('folder', folder, (str, os.PathLike), 'a path')
  folder = os.fspath(folder)
  source = programs.CohortSource(
    client_data, process.next.type_signature.parameter[1]
  )
  with _held(folder):
    states = tff.program.FileProgramStateManager(os.path.join(folder, 'states'))
    models = tff.program.SavedModelFileReleaseManager(
      os.path.join(folder, 'model')
    )
    table = tff.program.CSVFileReleaseManager(
      os.path.join(folder, 'metrics.csv'), key_fieldname='round'
    )
    on_ready(max(asyncio.run(states.get_versions()) or [0]))
    programs.run_program(
      tff.learning.programs.train_model(
        train_process=process,
        initial_train_state=process.initialize(),
        train_data_source=source,
        train_per_round_clients=1,  # Unused: `client_data` knows how many.
        train_total_rounds=num_rounds,
        program_state_manager=states,
        model_output_manager=models,
        train_metrics_manager=tff.program.GroupingReleaseManager(
          [_Report(on_round), table]
        ),
        evaluation_manager=None,
        evaluation_periodicity=num_rounds,
      )
    )

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a training keeps in its folder, and in which order it is written.

TFF's `train_model` starts to write the state and the metrics of a round side by
side, and goes on. Then a kill between the two loses a row, and if rounds are
quicker than the disk, they overwrite each other's. Here one thing is written at
a time: first a round's row, then its state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
import contextlib
import glob
import os
import shutil
from typing import Any, Optional

from absl import logging
import tensorflow as tf
import tensorflow_federated as tff

from tff_autotune_secagg import _file_lock
from tff_autotune_secagg.programs import checkpoints
from tff_autotune_secagg.programs import event_loop
from tff_autotune_secagg.programs import state_folder

_STATES = 'states'
_KEY = 'round'
_STATES_KEPT = 5


def _rule(folder: str) -> str:
  return (
    f'`folder` must be a folder to write to that no other run has: {folder!r}'
  )


@contextlib.contextmanager
def held(folder: str) -> Iterator[None]:
  """Makes a folder that no other run may have within this block.

  Removes what a run that was killed had begun to write.
  """
  with contextlib.ExitStack() as stack:
    try:
      os.makedirs(folder, exist_ok=True)
      stack.enter_context(_file_lock.held(os.path.join(folder, 'lock')))
    except BlockingIOError as error:
      raise OSError(
        f'{_rule(folder)} is in use by another run: wait for its end or give '
        'another folder.'
      ) from error
    except OSError as error:  # Such as a file system without locks.
      raise OSError(f'{_rule(folder)}: {error.strerror}.') from error
    _remove_unfinished(folder)
    yield


def _remove_unfinished(folder: str) -> None:
  """Removes what TFF writes under these names before it renames it."""
  digits = '_temp' + 4 * '[0-9]'
  names = 'metrics.csv', 'model', os.path.join(_STATES, 'program_state_*')
  for name in names:
    for path in glob.glob(os.path.join(glob.escape(folder), name + digits)):
      if os.path.isdir(path):
        shutil.rmtree(path)
      else:
        os.remove(path)


def _cut_torn_row(path: str) -> None:
  """Cuts off what a full disk or a power cut left of a last row.

  TFF takes a `1` that is left of `12,0.3` for the row of round 1, and writes
  the next row behind it, into the same line.
  """
  if not os.path.exists(path):
    return
  with open(path, 'rb+') as table:
    text = table.read()
    whole = text.rfind(b'\n') + 1
    table.truncate(whole)
  if not whole:  # Not even the names of the columns, without which TFF fails.
    os.remove(path)
  if whole < len(text):
    logging.warning('The last row of %r was half written and is removed.', path)


def _keep_rows_without_states(folder: str, path: str) -> None:
  """Sets a table aside whose states are gone: a new one would replace it."""
  states = os.path.join(glob.escape(folder), _STATES, 'program_state_*')
  if not os.path.exists(path) or glob.glob(states):
    return
  name = state_folder.set_aside(path, 'set_aside')
  logging.warning(
    '%r has no states, so that the training begins anew; the rows of the'
    ' former one are in %r.',
    folder,
    name,
  )


def _check_table(folder: str, path: str) -> None:
  """Raises ValueError if there is a file that is no table of rounds."""
  if not os.path.exists(path):
    return
  with open(path, encoding='utf-8', errors='replace') as table:
    names = table.readline().rstrip('\n').split(',')
  if _KEY not in names:
    raise ValueError(
      f"`folder` must have a metrics.csv with a column '{_KEY}', or none:"
      f' {folder!r} has {path!r} without one. Move it away.'
    )


class Reports(tff.program.ReleaseManager):
  """Hands the metrics of each round to a function and adds them to a table."""

  def __init__(
    self, folder: str, on_round: Callable[[int, Mapping[str, Any]], None]
  ):
    """Initializes the manager.

    Args:
      folder: gets `metrics.csv`.
      on_round: called with the number of a round and its metrics.
    """
    self._folder = folder
    self._on_round = on_round
    path = os.path.join(folder, 'metrics.csv')
    with _as_os_error(folder):
      _cut_torn_row(path)
      _check_table(folder, path)
      _keep_rows_without_states(folder, path)
      self._table = tff.program.CSVFileReleaseManager(path, key_fieldname=_KEY)
    self._turn: Optional[asyncio.Lock] = None
    self._has_ended = False
    self._is_written: dict[int, asyncio.Future] = {}

  @property
  def turn(self) -> asyncio.Lock:
    """Held by what writes to the folder; made in the loop that uses it."""
    if self._turn is None:
      self._turn = asyncio.Lock()
    return self._turn

  async def is_written(self, key: int) -> bool:
    """Returns whether the row of a round is on disk, once that is known.

    Ask once for each round, in a task that begins together with its release.
    """
    await asyncio.sleep(0)  # The release begins right after.
    if key not in self._is_written:
      return False  # `train_model` has failed in between.
    return await asyncio.shield(self._is_written.pop(key))

  async def release(self, value: Any, key: int) -> None:
    """Reports a round, and raises what reporting raises.

    If a round cannot be reported, no later round is, even if the program has
    computed it: a training that continues must begin with the lost round. A
    round whose report ends Python is the last one that is reported.
    """
    known = asyncio.get_running_loop().create_future()
    self._is_written[key] = known
    async with self.turn:
      is_written, ending = False, None
      try:
        if not self._has_ended:
          value = await tff.program.materialize_value(value)
          ending = self._report(key, value)
          with _as_os_error(self._folder):
            await self._table.release(value, key)
          is_written = True
      finally:
        self._has_ended = not is_written or ending is not None
        known.set_result(is_written)
    if ending is not None:
      raise ending

  def _report(self, key: int, value: Any) -> Optional[BaseException]:
    """Returns what `on_round` raised to end Python, if it did."""
    try:
      self._on_round(key, value)
    except (KeyboardInterrupt, SystemExit) as error:
      return error
    return None


class States(state_folder.StateFolder):
  """Keeps the newest states, each after the row of its round.

  Attributes:
    latest: the newest program state there is, None if there is none.
    rounds_done: how many rounds were done when it was loaded.
  """

  def __init__(self, folder: str, reports: Reports):
    """Initializes the manager.

    Args:
      folder: gets `states/`.
      reports: of the same training.
    """
    with _as_os_error(folder):
      super().__init__(os.path.join(folder, _STATES), num_kept=_STATES_KEPT)
    self._training_folder = folder
    self._reports = reports
    self.latest: Any = None
    self.rounds_done = 0

  async def load_latest(self, structure: Any) -> tuple[Any, int]:
    """Returns the newest whole program state and its version.

    `train_model` calls it again, and gets what the first call has found.

    Raises:
      ValueError: as of `load_latest_state`.
    """
    if self.latest is None:
      self.latest, self.rounds_done = await super().load_latest(structure)
      if self.latest is not None:
        checkpoints.check_like(structure.state, self.latest.state)
    return self.latest, self.rounds_done

  async def save(self, program_state: Any, version: int) -> None:
    """See base class. Does nothing if the round could not be reported."""
    # Version 0 is the state before the first round.
    if version and not await self._reports.is_written(version):
      return
    async with self._reports.turn:
      with _as_os_error(self._training_folder):
        await super().save(program_state, version)
    self.latest = program_state


class NoModels(tff.program.ReleaseManager):
  """Drops the states that `train_model` releases as models now and then."""

  async def release(self, value: Any, key: str) -> None:
    """Does nothing."""
    del value, key  # The states are kept, and the model comes at the end.


def write_model(folder: str, weights: Any) -> None:
  """Writes the weights as the SavedModel `model/`, in place of what is there.

  Args:
    folder: the training's.
    weights: `tff.learning.models.ModelWeights`.

  Raises:
    OSError: it cannot be written.
  """
  manager = tff.program.SavedModelFileReleaseManager(folder, prefix='')
  value = dict(
    trainable=list(weights.trainable), non_trainable=list(weights.non_trainable)
  )
  with _as_os_error(folder):
    event_loop.run(manager.release(value, 'model'))


@contextlib.contextmanager
def _as_os_error(folder: str) -> Iterator[None]:
  """Raises what TensorFlow's file system says as an OSError."""
  try:
    yield
  except tf.errors.OpError as error:
    raise OSError(f'{_rule(folder)}: {error.message}') from error

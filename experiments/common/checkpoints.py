# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The folders of checkpoints of the experiments, and their errors."""

import asyncio
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from experiments.common import command_line
from tff_autotune_secagg.programs import state_folder

# The newest and, should it turn out to be broken, the one before.
_NUM_KEPT = 2


def open_folder(folder: str) -> state_folder.StateFolder:
  """Opens a folder of checkpoints, made if it is not there.

  Args:
    folder: The folder.

  Returns:
    What loads and saves there, and keeps the newest two.

  Raises:
    UserError: TensorFlow cannot read from a folder of this name.
  """
  with command_line.user_errors():
    return state_folder.StateFolder(folder, num_kept=_NUM_KEPT)


def last_version(manager: state_folder.StateFolder) -> int:
  """The newest version that is whole, 0 if none was saved.

  Raises:
    UserError: Some were saved, and none is whole.
  """
  with command_line.user_errors():
    return asyncio.run(manager.newest_version())


def save(
  manager: tff.program.ProgramStateManager, state: Any, version: int
) -> None:
  """Saves a state.

  Args:
    manager: Where to.
    state: The state.
    version: Its version.

  Raises:
    OSError: It cannot be written, for instance because the disk is full.
  """
  try:
    asyncio.run(manager.save(state, version))
  except tf.errors.OpError as e:
    raise OSError(
      f'The checkpoint of round {version} cannot be written: {e.message}'
    ) from e

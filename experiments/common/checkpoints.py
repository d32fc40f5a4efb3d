# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Folders of checkpoints of which some may have been written halfway."""

import asyncio
import os
import shutil
import sys
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

_PREFIX = 'program_state_'
# The newest and, should it turn out to be broken, the one before.
_KEPT = 2


def open_folder(folder: str) -> tff.program.FileProgramStateManager:
  """Opens a folder of checkpoints, made if it is not there.

  Newest ones that cannot be read are renamed, and a line on standard error says
  so: the run goes on from the one before, and writes them anew.

  Args:
    folder: The folder.

  Returns:
    What loads and saves there, and keeps the newest two.
  """
  manager = tff.program.FileProgramStateManager(
    folder, prefix=_PREFIX, keep_total=_KEPT, keep_first=False
  )
  while last_version(manager):
    path = os.path.join(folder, f'{_PREFIX}{last_version(manager)}')
    try:
      tf.saved_model.load(path)
      break
    except Exception as e:  # Of many kinds, by which part is broken.
      aside = f'{path}.unreadable'
      shutil.rmtree(aside, ignore_errors=True)
      os.rename(path, aside)
      before = last_version(manager)
      reason = str(e).partition('\n')[0]
      print(
        f'The checkpoint {path!r} cannot be read ({reason}) and was renamed; '
        f'the run goes on from {f"round {before}" if before else "its start"}.',
        file=sys.stderr,
      )
  return manager


def last_version(manager: tff.program.ProgramStateManager) -> int:
  """The newest version, 0 if there is none."""
  return max(asyncio.run(manager.get_versions()) or [0])


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

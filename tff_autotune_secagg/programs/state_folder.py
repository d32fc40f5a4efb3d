# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""A folder of states that stays usable if the newest is half written."""

from __future__ import annotations

import functools
import itertools
import os
from typing import Any, Union

from absl import logging
import tensorflow as tf
import tensorflow_federated as tff

from tff_autotune_secagg import _checks
from tff_autotune_secagg.programs import checkpoints

_PREFIX = 'program_state_'


def set_aside(path: str, mark: str) -> str:
  """Renames what is in the way of something new, and returns its new path.

  Args:
    path: of a file or a folder.
    mark: what the new name ends in, before a number that makes it new.
  """
  names = (f'{path}.{mark}_{number}' for number in itertools.count(1))
  name = next(name for name in names if not os.path.exists(name))
  os.rename(path, name)
  return name


class StateFolder(tff.program.FileProgramStateManager):
  """Keeps the newest states, and loads the newest that is whole.

  A whole state is removed only when as many newer states are there as are to be
  kept. A state that cannot be read is renamed when its version is saved again.
  """

  def __init__(self, folder: Union[str, os.PathLike[str]], *, num_kept: int):
    """Makes the folder where it is not there.

    Args:
      folder: path.
      num_kept: how many states are kept, at least 1.

    Raises:
      TypeError: `folder` is no path.
      ValueError: TensorFlow cannot read from a folder of this name.
    """
    self._folder = _checks.check_folder('folder', folder)
    super().__init__(
      self._folder, prefix=_PREFIX, keep_total=num_kept, keep_first=False
    )

  def _path(self, version: int) -> str:
    return os.path.join(self._folder, f'{_PREFIX}{version}')

  async def load(self, version: int, structure: Any) -> Any:
    """See base class.

    Raises:
      OtherFieldsError: the state has other fields, one of which is named.
    """
    try:
      return await super().load(version, structure)
    except (TypeError, ValueError) as error:
      if not checkpoints.is_other_structure(error):
        raise
      message = str(error)
    difference = checkpoints.difference_told(
      message,
      checkpoints.leaves(structure),
      checkpoints.leaves(tf.saved_model.load(self._path(version))()),
    )
    raise checkpoints.OtherFieldsError(difference)

  async def load_latest(self, structure: Any) -> tuple[Any, int]:
    """See base class, but for states that cannot be read: they are passed over.

    Raises:
      ValueError: as of `load_latest_state`.
    """
    load = functools.partial(self.load, structure=structure)
    return await checkpoints.newest_whole(self, load)

  async def newest_version(self) -> int:
    """Returns the newest version that can be read, 0 if none was saved.

    Passes over broken versions without a word: loading the state reports them.

    Raises:
      ValueError: states were saved, but none can be read.
    """

    async def load(version):
      return tf.saved_model.load(self._path(version))

    _, version = await checkpoints.newest_whole(self, load, warn=logging.debug)
    return version

  async def save(self, program_state: Any, version: int) -> None:
    """See base class.

    If there are versions from this version on, loading has passed over them.
    They make room and keep their contents.
    """
    for old in await self.get_versions() or []:
      if old >= version:
        set_aside(self._path(old), 'unreadable')
    await super().save(program_state, version)

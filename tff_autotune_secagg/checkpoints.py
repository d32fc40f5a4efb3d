# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that fit the process they are loaded for, or are refused.

A checkpoint is data without a description: TFF loads one of another modulus
without a word, and prints the weights of one of another structure. These
functions say in one sentence what does not match, and print no values.
"""

import re
from typing import Any, Dict, Tuple

from absl import logging
import numpy as np
import tensorflow_federated as tff
import tree

from tff_autotune_secagg import _checks

# How the message begins by which a state manager refuses a state that can be
# read, but has other fields.
_OTHER_STRUCTURE = "The two structures don't have the same nested structure."

# What it says of the first two dictionaries that differ.
_KEYS = re.compile(
  r'keys type=list str=(\[.*?\]), while .* type=list str=(\[.*?\])'
)


def check_state(process: Any, state: Any) -> None:
  """Raises unless a state was written by a process like this one.

  Args:
    process: a `tff.templates.IterativeProcess`, an aggregation or a learning
      process.
    state: a state of it, such as one that was loaded.

  Raises:
    TypeError: `process` is no process.
    ValueError: the state has other fields, sizes or dtypes, or comes from an
      aggregator of another modulus, size, rotation, rounding or version.
  """
  _check_like(_initial_state(process), state)


async def load_latest_state(
  state_manager: tff.program.ProgramStateManager, process: Any
) -> Tuple[Any, int]:
  """Loads the newest state of a process that can be read.

  A version that cannot, such as one that a full disk or a power cut left half
  written, is logged as a warning, and the one before it is loaded. It is left
  where it is: remove it before that version is saved again.

  Args:
    state_manager: where states were saved, such as a
      `tff.program.FileProgramStateManager`.
    process: as for `check_state`.

  Returns:
    The state and its version; the initial state and 0 if none was saved.

  Raises:
    ValueError: as `check_state`; or states were saved, but none can be read.
  """
  initial = _initial_state(process)
  # Not by the version: `tff.learning.programs.train_model` saves a version 0.
  versions = sorted(await state_manager.get_versions() or [], reverse=True)
  for version in versions:
    try:
      state = await state_manager.load(version, initial)
    except Exception as error:  # Of many kinds, by which part is broken.
      if str(error).startswith(_OTHER_STRUCTURE):
        raise ValueError(_difference(str(error))) from None
      reason = str(error).partition('\n')[0]
      logging.warning(
        'The checkpoint of version %d cannot be read and is passed over: %s',
        version,
        reason,
      )
      continue
    _check_like(initial, state)
    return state, version
  if versions:
    raise ValueError(
      'Of the checkpoints one must be whole, found that none of the versions'
      f' {sorted(versions)} can be read ({reason}): remove them to start anew.'
    )
  return initial, 0


def _difference(message: str) -> str:
  """Returns what TFF says of two structures, which it shows in full, in short.

  Args:
    message: of the error; the structure that is wanted is the first in it.
  """
  formats = re.findall(r"'state_format'[,:] (\d+)", message)
  if len(formats) == 2 and formats[0] != formats[1]:
    return _checks.refused_state(
      'state_format', formats[1], 'process', formats[0]
    )
  found = 'others'
  keys = _KEYS.search(message)
  if keys:
    wanted, others = (set(re.findall("'(.*?)'", k)) for k in keys.groups())
    found = (
      f'that it lacks {sorted(wanted - others)} and has besides'
      f' {sorted(others - wanted)}'
    )
  return (
    f'The checkpoint must have the fields of the process, found {found}: it was'
    ' written by another kind or version of it.'
  )


def _initial_state(process):
  """The initial state of a process, once it is known to be one."""
  kind = tff.templates.IterativeProcess
  _checks.check_instance(
    'process', process, kind, 'a tff.templates.IterativeProcess'
  )
  return process.initialize()


def _leaves(state: Any) -> Dict[str, np.ndarray]:
  """The leaves of a state by their paths, such as 'inner/settings/modulus'."""
  return {
    '/'.join(map(str, path)): np.asarray(leaf)
    for path, leaf in tree.flatten_with_path(state)
  }


def _check_like(wanted_state, state):
  """Raises ValueError unless the states agree in all that is not learned."""
  wanted, found = _leaves(wanted_state), _leaves(state)
  # The outermost settings first: those of the parts inside follow from them.
  shared = sorted(wanted.keys() & found.keys())
  for path in sorted(shared, key=lambda path: path.count('/')):
    *parents, name = path.split('/')
    if parents and parents[-1] == 'settings':
      if wanted[path] != found[path]:
        raise ValueError(
          _checks.refused_state(name, found[path], 'process', wanted[path])
        )
  differing_paths = sorted(wanted.keys() ^ found.keys())
  if differing_paths:
    path = differing_paths[0]
    kind = 'lacks' if path in wanted else 'has besides'
    raise ValueError(
      f'`state` must have the fields of `process`, found that it {kind}'
      f' {path!r}.'
    )
  for path, leaf in wanted.items():
    other = found[path]
    if (leaf.shape, leaf.dtype) != (other.shape, other.dtype):
      raise ValueError(
        f'`state` must hold {leaf.dtype}{list(leaf.shape)} at {path!r}, found'
        f' {other.dtype}{list(other.shape)}.'
      )

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that fit the process they are loaded for, or are refused.

A checkpoint is data without a description. If its modulus is another, TFF loads
it without a word; if its structure is another, TFF prints its weights. These
functions say in one sentence what does not match, and print no values.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
import functools
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
    TypeError: `process` is not a process.
    ValueError: the state has other fields, sizes or dtypes, or comes from an
      aggregator of another modulus, size, rotation, rounding or version.
  """
  check_like(_initial_state(process), state)


async def load_latest_state(
  state_manager: tff.program.ProgramStateManager, process: Any
) -> Tuple[Any, int]:
  """Loads the newest state of a process that can be read.

  If a version cannot be read, for example because a full disk or a power cut
  left it half written, a warning is logged and the version before it is loaded.
  The broken version is left where it is: move it away before that version is
  saved again.

  Args:
    state_manager: where states were saved, such as a
      `tff.program.FileProgramStateManager`.
    process: as for `check_state`.

  Returns:
    The state and its version; the initial state and 0 if none was saved.

  Raises:
    TypeError: an argument is of the wrong kind.
    ValueError: as `check_state`; or states were saved, but none can be read.
  """
  _checks.check_instance(
    'state_manager',
    state_manager,
    tff.program.ProgramStateManager,
    'a tff.program.ProgramStateManager, such as'
    ' `tff.program.FileProgramStateManager(folder)`',
  )
  initial = _initial_state(process)
  load = functools.partial(state_manager.load, structure=initial)
  state, version = await newest_whole(state_manager, load)
  if state is None:
    return initial, 0
  check_like(initial, state)
  return state, version


async def newest_whole(
  state_manager: tff.program.ProgramStateManager,
  load: Callable[[int], Awaitable[Any]],
  warn: Callable[..., None] = logging.warning,
) -> Tuple[Any, int]:
  """Returns the newest state that can be read, and its version.

  Args:
    state_manager: has the versions.
    load: reads a version.
    warn: is told of each version that is passed over, as a logger is.

  Returns:
    What `load` returned, and the version; None and 0 if none was saved.

  Raises:
    ValueError: none can be read; or the newest whole state has other fields.
  """
  # Not by the version: `tff.learning.programs.train_model` saves a version 0.
  versions = sorted(await state_manager.get_versions() or [], reverse=True)
  for version in versions:
    try:
      return await load(version), version
    except Exception as error:  # Their kind depends on the part that is broken.
      if isinstance(error, OtherFieldsError):
        raise
      if is_other_structure(error):
        raise OtherFieldsError(difference_told(str(error))) from None
      reason = str(error).partition('\n')[0]
      warn(
        'The checkpoint of version %d cannot be read and is passed over: %s',
        version,
        reason,
      )
  if versions:
    raise ValueError(
      'One of the checkpoints must be whole, found that none of the versions'
      f' {sorted(versions)} can be read ({reason}). They stay where they are;'
      ' another folder begins anew.'
    )
  return None, 0


class OtherFieldsError(ValueError):
  """Another kind of process has written a checkpoint, which is whole."""

  def __init__(self, found: str):
    """Initializes the error.

    Args:
      found: begins with "found".
    """
    super().__init__(
      f'The checkpoint must have the fields of the process, {found}: another'
      ' model or aggregator, or another version of them, has written it.'
    )


def is_other_structure(error: Exception) -> bool:
  """Whether a state manager has refused a whole state for its fields."""
  return str(error).startswith(_OTHER_STRUCTURE)


def difference_told(message: str, *paths: Iterable[str]) -> str:
  """Returns what tells the structures of a refusal apart, without their values.

  Args:
    message: the state manager's, which shows both in full: the wanted one, then
      the one found.
    *paths: of the leaves of both, if they are known.
  """
  formats = re.findall(r"'state_format'[,:] (\d+)", message)
  if len(formats) == 2 and formats[0] != formats[1]:
    return f'found `state_format` {formats[1]} and not {formats[0]}'
  keys = _KEYS.search(message)
  if keys and not paths:
    paths = [re.findall("'(.*?)'", names) for names in keys.groups()]
  return difference_of_fields(*paths or ((), ())) or 'found others'


def _initial_state(process):
  """The initial state of a process, once it is known to be one."""
  kind = tff.templates.IterativeProcess
  _checks.check_instance(
    'process', process, kind, 'a tff.templates.IterativeProcess'
  )
  return process.initialize()


def _paths(node: Any, path: str = '') -> Iterable[str]:
  """Yields the paths of `leaves`, in the order of the state's containers."""
  if isinstance(node, Mapping):
    members = node.items()
  elif hasattr(node, '__attrs_attrs__'):
    members = ((a.name, getattr(node, a.name)) for a in node.__attrs_attrs__)
  elif hasattr(node, '_asdict'):
    members = node._asdict().items()
  elif isinstance(node, (list, tuple)):
    members = enumerate(node)
  else:
    yield path
    return
  for name, member in members:
    yield from _paths(member, f'{path}/{name}' if path else str(name))


def leaves(state: Any) -> Dict[str, np.ndarray]:
  """Returns a state's leaves by paths such as 'inner/settings/modulus'."""
  return {
    '/'.join(map(str, path)): np.asarray(leaf)
    for path, leaf in tree.flatten_with_path(state)
  }


def _rank(path):
  """Sorts settings: the outermost first, what follows from another last."""
  *parents, name = path.split('/')
  return len(parents), _checks.follows(name)


def difference_of_fields(wanted: Iterable[str], found: Iterable[str]) -> str:
  """Returns what tells two sets of paths apart, or nothing."""
  wanted, found = set(wanted), set(found)
  differing = sorted(wanted ^ found)
  if not differing:
    return ''
  told = _checks.argument_of_fields(wanted, found)
  if told:
    return told
  kind = 'lacks' if differing[0] in wanted else 'has besides'
  return f'found that it {kind} {differing[0]!r}'


def check_like(wanted_state: Any, state: Any) -> None:
  """Raises ValueError unless the states agree in all that is not learned."""
  wanted, found = leaves(wanted_state), leaves(state)
  # The outermost settings first: those of the parts inside follow from them. On
  # one level they are in the order in which they follow from each other.
  # `tree` sorts them.
  order = {path: index for index, path in enumerate(_paths(wanted_state))}
  shared = sorted(
    wanted.keys() & found.keys(), key=lambda path: order.get(path, 0)
  )
  for path in sorted(shared, key=_rank):
    *parents, name = path.split('/')
    if parents and parents[-1] == 'settings':
      if wanted[path] != found[path]:
        raise ValueError(
          _checks.refused_state(name, found[path], 'process', wanted[path])
        )
  difference = difference_of_fields(wanted, found)
  if difference:
    raise ValueError(
      f'`state` must have the fields of `process`, {difference}.'
    )
  for path, leaf in wanted.items():
    other = found[path]
    if (leaf.shape, leaf.dtype) != (other.shape, other.dtype):
      raise ValueError(
        f'`state` must hold {leaf.dtype}{list(leaf.shape)} at {path!r}, found'
        f' {other.dtype}{list(other.shape)}.'
      )

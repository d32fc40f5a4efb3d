# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks of public arguments, and errors that more than one place raises.

Every message, here and elsewhere, names the argument, the rule and what was
found. A wrong kind of argument is a `TypeError`, a wrong value of the right
kind a `ValueError`. What only one function can find wrong is worded there.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
import decimal
import enum
import functools
import math
import numbers
import os
import re
from typing import Any, Optional, Type

import numpy as np

MAX_PORT = 2**16 - 1

# Of a residue, which 32-bit integers carry.
MAX_BITS = 30

# Of clients and of values; floats hold every whole number up to it.
MAX_COUNT = 10**15

# How the refusal of a state begins. TFF's runtime wraps it in a gRPC error.
STATE_REFUSAL = 'The state was written with'
# How that of bin sizes does.
BIN_SIZES_REFUSAL = 'The bin sizes of'
REFUSALS = (STATE_REFUSAL, BIN_SIZES_REFUSAL)

_PATTERN_CHARACTERS = frozenset('*?[\\')

_SCHEME = re.compile(r'[A-Za-z][A-Za-z0-9+.-]*://')
_ADDRESS = re.compile(r'(?:\[[0-9A-Fa-f:.%]+\]|[^\s:/\[\]]+):([0-9]{1,5})')


def _found(value: Any) -> str:
  """Returns the value and its type, short enough to read in an error."""
  try:
    text = repr(value)
  except ValueError:  # Python prints no int of more than 4300 digits.
    text = 'a number too long to print'
  if len(text) > 80:
    text = text[:77] + '...'
  return f'found {text} ({type(value).__name__}).'


def check_int(
  name: str, value: Any, minimum: int, maximum: Optional[int] = None
) -> int:
  """Returns `value` as a Python int in `minimum..maximum`, or raises."""
  rule = f'`{name}` must be an int of at least {minimum}'
  if maximum is not None:
    rule += f' and at most {maximum}'
  is_int = isinstance(value, numbers.Integral)
  if not is_int or isinstance(value, (bool, np.bool_)):
    raise TypeError(f'{rule}, {_found(value)}')
  if value < minimum or (maximum is not None and value > maximum):
    raise ValueError(f'{rule}, {_found(value)}')
  return int(value)


def check_modulus(modulus: Any) -> int:
  """Returns `modulus` as an int the 32-bit residues can carry, or raises."""
  return check_int('modulus', modulus, 2, 2**MAX_BITS)


def names_modulus(function: Callable[..., Any]) -> Callable[..., Any]:
  """Decorates a function that takes `modulus`, to correct who writes `bits`."""

  @functools.wraps(function)
  def checked(*args, **kwargs):
    if 'bits' in kwargs:
      bits = kwargs['bits']
      power = bits if isinstance(bits, numbers.Integral) else 'bits'
      raise TypeError(
        f'`bits` must be given as `modulus=2**{power}`, {_found(bits)}'
      )
    return function(*args, **kwargs)

  return checked


def modulus_hint(modulus: int) -> str:
  """Returns what to add to "`modulus` is too small" if bits may be meant."""
  if modulus > MAX_BITS:
    return ''
  return f' If {modulus} was meant in bits, write `modulus=2**{modulus}`.'


def check_float(
  name: str,
  value: Any,
  above: float = -math.inf,
  below: float = math.inf,
  at_least: Optional[float] = None,
  at_most: Optional[float] = None,
) -> float:
  """Returns `value` as a finite float inside the given bounds, or raises.

  The float that it becomes is what is held to the bounds.
  """
  bounds = []
  if above > -math.inf:
    bounds.append(f'above {above:g}')
  if at_least is not None:
    bounds.append(f'of at least {at_least:g}')
  if below < math.inf:
    bounds.append(f'below {below:g}')
  if at_most is not None:
    bounds.append(f'at most {at_most:g}')
  rule = f'`{name}` must be a finite number ' + ' and '.join(bounds)
  rule = rule.rstrip()
  is_number = isinstance(value, (numbers.Real, decimal.Decimal))
  if not is_number or isinstance(value, (bool, np.bool_)):
    raise TypeError(f'{rule}, {_found(value)}')
  try:
    number = float(value)
  except (OverflowError, ValueError):  # Too large; a Decimal that signals.
    number = math.nan
  inside = math.isfinite(number) and above < number < below
  inside = inside and (at_least is None or number >= at_least)
  inside = inside and (at_most is None or number <= at_most)
  if not inside:
    raise ValueError(f'{rule}, {_found(value)}')
  return number


def check_bool(name: str, value: Any) -> bool:
  """Returns `value` as a bool, or raises."""
  if not isinstance(value, (bool, np.bool_)):
    raise TypeError(f'`{name}` must be True or False, {_found(value)}')
  return bool(value)


def check_enum(name: str, value: Any, enum_type: Type[enum.Enum]) -> Any:
  """Returns `value` if it is a member of `enum_type`, or raises."""
  if not isinstance(value, enum_type):
    choices = ', '.join(str(member) for member in enum_type)
    raise TypeError(f'`{name}` must be one of {choices}, {_found(value)}')
  return value


def check_instance(name: str, value: Any, wanted: Any, wanted_name: str) -> Any:
  """Returns `value` if it is an instance of `wanted`, or raises."""
  if not isinstance(value, wanted):
    raise TypeError(f'`{name}` must be {wanted_name}, {_found(value)}')
  return value


def check_function(name: str, value: Any) -> None:
  """Raises unless `value` is a function or None."""
  if value is not None:
    check_instance(name, value, Callable, 'a function or None')


def check_count(name: str, value: Any, minimum: int = 1) -> int:
  """Returns `value` as an int in `minimum..MAX_COUNT`, or raises."""
  return check_int(name, value, minimum, MAX_COUNT)


def check_optional_count(
  name: str, value: Any, maximum: Optional[int] = None
) -> Optional[int]:
  """Returns `value` as an int of at least 1, or None, or raises."""
  return None if value is None else check_int(name, value, 1, maximum)


def check_seed(seed: Any) -> Optional[int]:
  """Returns `seed` as an int of 63 bits, or None, or raises."""
  return None if seed is None else check_int('seed', seed, 0, 2**63 - 1)


def check_addresses(name: str, value: Any) -> Sequence[str]:
  """Returns `value` if it lists addresses 'host:port', or raises."""
  rule = f"`{name}` must be a list of different addresses 'host:port'"
  if isinstance(value, str) or not isinstance(value, Sequence):
    raise TypeError(f'{rule}, {_found(value)}')
  if not value or len(set(map(str, value))) < len(value):
    raise ValueError(f'{rule}, at least one, {_found(value)}')
  for address in value:
    match = isinstance(address, str) and _ADDRESS.fullmatch(address)
    if not match or not 1 <= int(match.group(1)) <= MAX_PORT:
      raise ValueError(
        f'{rule} with a port in 1..{MAX_PORT}, {_found(address)}'
      )
  return value


def check_folder(name: str, value: Any) -> str:
  """Returns a path as an absolute one that TensorFlow can read, or raises."""
  check_instance(name, value, (str, os.PathLike), 'a path')
  text = os.fspath(value)
  if not text or '\0' in text:  # Such as a shell's variable without a value.
    raise ValueError(
      f"`{name}` must be a path, '.' for the current folder, {_found(value)}"
    )
  if text.startswith('~'):
    raise ValueError(
      f'`{name}` must be a path that begins with no `~`, which shells know and'
      f' Python does not, {_found(value)} Write `os.path.expanduser(...)`.'
    )
  if _SCHEME.match(text):
    # It would become a folder of that name on this machine.
    raise ValueError(
      f'`{name}` must be a path of this machine, which can be locked,'
      f' {_found(value)}'
    )
  path = os.path.abspath(text)
  if _PATTERN_CHARACTERS.intersection(path):
    # TensorFlow writes there, and then finds nothing of what it has written.
    raise ValueError(
      f'`{name}` must be a path without `*`, `?`, `[` and backslashes, which'
      f' TensorFlow reads as patterns, {_found(path)}'
    )
  return path


def type_error(name: str, rule: str, found: Any) -> TypeError:
  """Returns the error for an argument whose TensorFlow or TFF type is wrong."""
  return TypeError(f'`{name}` must be {rule}, found {found}.')


def shape_error(name: str, shape: Any) -> ValueError:
  """Returns the error for a tensor whose shape is not defined when traced."""
  return ValueError(f'`{name}` must have a fully defined shape, found {shape}.')


def leaf_error(rule: str, path: str, found: Any) -> TypeError:
  """Returns the error for one leaf of a `value_type` that breaks `rule`."""
  where = f' at {path!r}' if path else ''
  return TypeError(f'`value_type` must hold only {rule}, found {found}{where}.')


# Settings of a state, by the arguments that users give, with the values that
# stand for one.
_ARGUMENTS = {
  'dither': ('rounding', {0: 'Rounding.STOCHASTIC', 1: 'Rounding.DITHER'}),
  'l2_norm_clip': ('l2_norm_clip', {0: 'None'}),
}
# What besides settings makes another state.
_MADE_BY = {
  'state_format': 'the version of this package that wrote it',
  'dim': 'the model of the checkpoint',
}

# Fields that an argument makes: the argument, its values with and without them,
# and a field that says whether both states are of a part that has the argument.
# The outermost first.
_FIELDS = (
  ('zeroing_norm', 'zeroing', 'True', 'False', ('inner_agg', 'value')),
  ('clipping_norm', 'clipping', 'True', 'False', ('inner_agg', 'value')),
  ('prediction', 'predict_sum', 'True', 'False', ('round',)),
  ('forecast', 'wrap_probability', 'None', 'a number', ('rung',)),
  ('sampled_fraction', 'sampled_fraction', 'below 1', '1', ('min_clients',)),
)


def follows(name: str) -> bool:
  """Whether another setting of the same part says as much, and more."""
  return name == 'adaptive_clip'  # `l2_norm_clip` is 0 where it adapts.


def setting_words(name: str) -> Mapping[float, str]:
  """Returns the values of a setting that are told by other words."""
  return _ARGUMENTS.get(name, (name, {}))[1]


def refused_state(name: str, found: Any, owner: str, wanted: Any) -> str:
  """Returns the one sentence that refuses a state with another setting."""
  argument, words = _ARGUMENTS.get(name, (name, {}))
  found, wanted = (
    next((word for number, word in words.items() if value == number), value)
    for value in (found, wanted)
  )
  made_by = _MADE_BY.get(name, 'the settings of the checkpoint')
  return (
    f'{STATE_REFUSAL} `{argument}` {found}, but this {owner} has `{argument}`'
    f' {wanted}: start from `initialize()` or use {made_by}.'
  )


def argument_of_fields(wanted: Iterable[str], found: Iterable[str]) -> str:
  """Returns which argument makes fields other than they should be, or nothing.

  Args:
    wanted: paths of a process's fields, such as 'inner/tuner/bin_size'.
    found: those of a state.

  Returns:
    Words that begin with "found".
  """
  wanted, found = (
    {part for path in paths for part in path.split('/')}
    for paths in (wanted, found)
  )
  for field, argument, having, lacking, marks in _FIELDS:
    are_alike = all(parts.intersection(marks) for parts in (wanted, found))
    if are_alike and (field in wanted) != (field in found):
      values = (having, lacking) if field in found else (lacking, having)
      return (
        f'found those of `{argument}` {values[0]} where the process has'
        f' `{argument}` {values[1]}'
      )
  return ''

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Splits the clients of an argument over workers and joins their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional

import tensorflow_federated as tff


def has_client_values(type_spec: Optional[tff.types.Type]) -> bool:
  """Whether a value of the type holds one value per client."""
  if isinstance(type_spec, tff.types.FederatedType):
    return type_spec.placement is tff.CLIENTS and not type_spec.all_equal
  if isinstance(type_spec, tff.types.StructType):
    return any(
      has_client_values(member)
      for _, member in tff.structure.iter_elements(type_spec)
    )
  return False


def split(
  value: Any,
  type_spec: Optional[tff.types.Type],
  *,
  min_parts: int,
  max_clients: Optional[int] = None,
) -> list[Any]:
  """Splits `value` into parts with their share of the clients each.

  Args:
    value: an argument of type `type_spec`, or None if that is None.
    type_spec: type of the parameter.
    min_parts: number of parts to make if there are as many clients, at least 1.
    max_clients: clients in a part, at least 1; None for any number.

  Returns:
    The least number of parts, at least one. They differ by at most one client,
    and clients keep their order. Everything that is not per client is in each.

  Raises:
    TypeError: if a value at clients is not a sequence.
    ValueError: if two values at clients differ in their number of clients.
  """
  lengths = _count_clients(value, type_spec)
  if len(set(lengths)) > 1:
    raise ValueError(
      'All values at clients must have the same number of clients, found '
      f'{lengths}.'
    )
  num_clients = lengths[0] if lengths else 0
  num_parts = max(1, min(min_parts, num_clients))
  if max_clients is not None:
    num_parts = max(num_parts, -(-num_clients // max_clients))
  borders = [num_clients * i // num_parts for i in range(num_parts + 1)]
  return [
    _select_clients(value, type_spec, slice(*ends))
    for ends in zip(borders[:-1], borders[1:])
  ]


def without_clients(value: Any, type_spec: Optional[tff.types.Type]) -> Any:
  """`value` with an empty list in place of each value at clients."""
  return _select_clients(value, type_spec, slice(0, 0))


def join(results: Sequence[Any], type_spec: tff.types.Type) -> Any:
  """One result from those of the parts, clients in the order of the parts."""
  if len(results) == 1 or not has_client_values(type_spec):
    return results[0]
  if isinstance(type_spec, tff.types.FederatedType):
    return [value for result in results for value in result]
  members = [tff.structure.from_container(result) for result in results]
  joined = [
    (name, join([member[i] for member in members], member_type))
    for i, (name, member_type) in enumerate(
      tff.structure.iter_elements(type_spec)
    )
  ]
  return _as_container_of(results[0], joined)


def _count_clients(value: Any, type_spec: Optional[tff.types.Type]) -> list:
  """The number of clients of each value at clients."""
  if not has_client_values(type_spec):
    return []
  if isinstance(type_spec, tff.types.FederatedType):
    if not isinstance(value, Sequence):
      raise TypeError(
        'A value at clients must be a list with one element per client, found '
        f'a {type(value).__name__}.'
      )
    return [len(value)]
  return [
    length
    for member, (_, member_type) in _members(value, type_spec)
    for length in _count_clients(member, member_type)
  ]


def _select_clients(
  value: Any, type_spec: Optional[tff.types.Type], clients: slice
) -> Any:
  if not has_client_values(type_spec):
    return value
  if isinstance(type_spec, tff.types.FederatedType):
    return value[clients]
  return tff.structure.Struct(
    [
      (name, _select_clients(member, member_type, clients))
      for member, (name, member_type) in _members(value, type_spec)
    ]
  )


def _members(value: Any, type_spec: tff.types.StructType):
  """Pairs of a member's value and its named type, in the type's order."""
  members = tff.structure.from_container(value)
  return zip(members, tff.structure.iter_elements(type_spec))


def _as_container_of(example: Any, elements: list) -> Any:
  """`elements`, pairs of name and value, in a container like `example`."""
  container = type(example)
  if isinstance(example, tff.structure.Struct):
    return tff.structure.Struct(elements)
  if isinstance(example, Mapping):
    return container(elements)
  if all(name is None for name, _ in elements):
    return container(value for _, value in elements)
  return container(**dict(elements))

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Secure sums of whole numbers by `masking_protocol`.

The masks of the protocol have 32 bits. A sum that needs a larger modulus runs
modulo two coprime numbers, and is put together again: the server learns no more
than from a single modulus as large as their product. Digits would tell it the
sum of each.
"""

from typing import List, NamedTuple, Sequence, Set

import numpy as np

from experiments.common import masking_protocol

# Coprime: neighbours are.
_HALVES = (2**32, 2**32 - 1)
MAX_MODULUS = _HALVES[0] * _HALVES[1]


class BelowThresholdError(ValueError):
  """Too few clients are left to unmask a sum."""


def check_survivors(
  num_clients: int, dropped: Set[int], threshold: int
) -> None:
  """Raises BelowThresholdError if too few of a round's clients are left."""
  survivors = num_clients - len(dropped)
  if survivors < threshold:
    raise BelowThresholdError(
      f'At least {threshold} clients must survive, found '
      f'{survivors} of {num_clients}.'
    )


class Vector(NamedTuple):
  """What the clients of a round put into one sum.

  Attributes:
    values: Of each client int [length], in 0 .. modulus - 1. Those of clients
      that drop out are not read.
    modulus: int in 2 .. `MAX_MODULUS`. Above 2**32 it must be one that no sum
      reaches: modulo the two numbers a sum is not reduced by it.
  """

  values: Sequence[np.ndarray]
  modulus: int


def sums(
  vectors: Sequence[Vector], *, threshold: int, dropped: Set[int]
) -> List[np.ndarray]:
  """The sum of the survivors' values modulo the modulus, for each vector.

  Args:
    vectors: The sums of a round. Those of one modulus are one vector to the
      protocol.
    threshold: Survivors without whom nothing is unmasked.
    dropped: Clients, from 0 on, that vanish after they have shared their keys.

  Returns:
    uint64 [length] for each vector.

  Raises:
    BelowThresholdError: Fewer than `threshold` clients are left.
    ValueError: A value of a survivor is no residue.
  """
  by_modulus = {}
  for index, vector in enumerate(vectors):
    by_modulus.setdefault(vector.modulus, []).append(index)
  found = [None] * len(vectors)
  for modulus, members in by_modulus.items():
    lengths = [np.size(vectors[i].values[0]) for i in members]
    joined = [
      np.concatenate([np.ravel(v).astype(np.uint64) for v in values])
      for values in zip(*(vectors[i].values for i in members))
    ]
    _check(joined, modulus, dropped)
    total = _sum(joined, modulus, threshold, dropped)
    parts = np.split(total, np.cumsum(lengths)[:-1])
    for index, part in zip(members, parts):
      found[index] = part
  return found


def _check(clients, modulus, dropped):
  if not 2 <= modulus <= MAX_MODULUS:
    raise ValueError(
      f'`modulus` must be in 2 .. {MAX_MODULUS}, found {modulus}.'
    )
  for index, values in enumerate(clients):
    if index not in dropped and np.any(values >= np.uint64(modulus)):
      raise ValueError(
        f'`values` must be below the modulus {modulus}, found {values.max()} '
        f'of client {index}.'
      )


def _sum(clients, modulus, threshold, dropped) -> np.ndarray:
  if modulus <= masking_protocol.MAX_MODULUS:
    return _run(clients, modulus, threshold, dropped).astype(np.uint64)
  lower, upper = (
    [int(r) for r in _run(clients, half, threshold, dropped)]
    for half in _HALVES
  )
  inverse = pow(_HALVES[0], -1, _HALVES[1])
  return np.array(
    [
      a + _HALVES[0] * ((b - a) * inverse % _HALVES[1])
      for a, b in zip(lower, upper)
    ],
    np.uint64,
  )


def _run(clients, modulus, threshold, dropped) -> np.ndarray:
  check_survivors(len(clients), dropped, threshold)
  residues = [(v % np.uint64(modulus)).astype(np.int64) for v in clients]
  outcome = masking_protocol.run(
    residues, modulus, threshold, [i + 1 for i in dropped]
  )
  return outcome.total

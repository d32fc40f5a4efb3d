# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""A logged warning for sums whose modulus is too small for their clients.

The measurement `modulus_too_small` says it in every round, to those who look.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from absl import logging

# Of a modulus that somebody may have meant in bits, up to 32.
_MAX_SUSPECT_BITS = 5


class ModulusWarning:
  """Warns of each number of bits once."""

  def __init__(self):
    """Has warned of nothing yet."""
    self._told = set()

  def look_at(self, result: Any) -> None:
    """Warns if `result` is a round's output that says so.

    Args:
      result: of any computation. The outputs of aggregation and learning
        processes are looked into, others have nothing to say.
    """
    for name in ('measurements', 'metrics'):
      for found in _flagged(getattr(result, name, None)):
        bits = int(found['bits_per_coordinate'])
        if bits not in self._told:
          self._told.add(bits)
          logging.warning('%s', _sentence(bits, int(found['num_clients'])))


def _flagged(node: Any) -> Iterator[Mapping[str, Any]]:
  """Yields the measurements at any depth that say the modulus is too small."""
  if isinstance(node, Mapping):
    if node.get('modulus_too_small', False):
      yield node
    for member in node.values():
      yield from _flagged(member)


def _sentence(bits: int, num_clients: int) -> str:
  sentence = (
    f'A modulus of {bits} bits is too small for the {num_clients} clients of'
    ' this round (measurement `modulus_too_small`): little of their sum comes'
    ' through. `plan_modulus` says which one would do.'
  )
  if bits <= _MAX_SUSPECT_BITS:
    sentence += ' `modulus` counts residues: 8 bits are `modulus=2**8`.'
  return sentence

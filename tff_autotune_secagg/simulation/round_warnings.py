# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Logged warnings of rounds that lose their sum.

Measurements say the same in every round, to those who look.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from absl import logging

# Moduli up to 32 may have been meant in bits.
_MAX_SUSPECT_BITS = 5


class RoundWarnings:
  """Warns of a modulus once for its number of bits, and of the rest once."""

  def __init__(self):
    """Has warned of nothing yet."""
    self._told = set()

  def look_at(self, result: Any) -> None:
    """Warns if `result` is the output of a round that lost its sum.

    Args:
      result: of any computation. This looks into the outputs of aggregation and
        learning processes; others have nothing to say.
    """
    for name in ('measurements', 'metrics'):
      output = getattr(result, name, None)
      for found in _flagged(output, 'modulus_too_small'):
        bits = int(found['bits_per_coordinate'])
        num_clients = int(found['num_clients'])
        if 'refused' in found:
          needed = int(found['smallest_modulus'])
          self._tell_once('wrapped', _wrapped(bits, num_clients, needed))
        else:
          self._tell_once(bits, _too_small(bits, num_clients))
      for found in _flagged(output, 'refused'):
        self._tell_once('refused', _refused(int(found['num_clients'])))
      for found in _flagged(output, 'zeroed_count'):
        inner = list(_flagged(found, 'bits_per_coordinate'))
        if inner and not any(int(node['num_clients']) for node in inner):
          self._tell_once('zeroed', _all_zeroed(int(found['zeroed_count'])))

  def _tell_once(self, key: Any, sentence: str) -> None:
    if key not in self._told:
      self._told.add(key)
      logging.warning('%s', sentence)


def _flagged(node: Any, flag: str) -> Iterator[Mapping[str, Any]]:
  """Yields the measurements at any depth in which `flag` is true."""
  if isinstance(node, Mapping):
    # A user's own metric may have the same name.
    is_ours = {'num_clients', 'zeroed_count'} & node.keys()
    if is_ours and node.get(flag, False):
      yield node
    for member in node.values():
      yield from _flagged(member, flag)


def _too_small(bits: int, num_clients: int) -> str:
  sentence = (
    f'A modulus of {bits} bits is too small for the {num_clients} clients of'
    ' this round (measurement `modulus_too_small`): little of their sum comes'
    ' through. `plan_modulus` says which one would do.'
  )
  if bits <= _MAX_SUSPECT_BITS:
    sentence += ' `modulus` counts residues: 8 bits are `modulus=2**8`.'
  return sentence


def _wrapped(bits: int, num_clients: int, needed: int) -> str:
  return (
    f'A modulus of {bits} bits is too small for the noised sum of the'
    f' {num_clients} clients of this round (measurement `modulus_too_small`):'
    ' some of its coordinates wrap, and a part of the sum is lost, though no'
    f' privacy. It would take {max(needed - 1, 1).bit_length()} bits. Build the'
    f' aggregator with `expected_clients={num_clients}`, or with a `modulus`'
    ' from `plan_distributed_dp_modulus`.'
  )


def _all_zeroed(num_clients: int) -> str:
  return (
    f'Zeroing has left nothing of a round: {num_clients} clients have a'
    ' coordinate above the limit (measurement `zeroed_count`), and no other'
    ' sent anything. The limit grows up to tenfold in a round. If updates are'
    ' that large, divide them, or leave zeroing out by `zeroing=False`.'
  )


def _refused(num_clients: int) -> str:
  return (
    f'A round of {num_clients} clients has fewer than `min_clients`'
    ' (measurement `refused`): its mean is replaced by zeros and nothing is'
    ' learned. Wait for more clients, or build the aggregator for fewer.'
  )

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The clients of a program's rounds, by the number of the round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Optional

import tensorflow_federated as tff

from tff_autotune_secagg import _checks


class CohortSource(tff.program.FederatedDataSource):
  """A source of client data that the number of the round decides.

  TFF's own source draws clients anew when a program continues, and keeps all
  data in its checkpoints. Here a checkpoint keeps the number of the round, so
  that a program that continues sees the clients that an undisturbed one sees.
  """

  def __init__(
    self,
    client_data: Callable[[int], Sequence[Any]],
    federated_type: tff.FederatedType,
  ):
    """Initializes the source.

    Args:
      client_data: takes the number of a round, from 1, and returns a list (or
        another sequence) with the data of each of its clients; the same in
        every call. It also decides how many clients there are.
      federated_type: type of these data, such as
        `process.next.type_signature.parameter[1]`.

    Raises:
      TypeError: an argument is of the wrong kind.
    """
    _checks.check_instance('client_data', client_data, Callable, 'a function')
    _checks.check_instance(
      'federated_type',
      federated_type,
      tff.FederatedType,
      'a `tff.FederatedType`',
    )

    class Iterator(tff.program.FederatedDataSourceIterator):
      """A class for each source, as TFF restores iterators by their class."""

      def __init__(self, rounds: int = 0):
        self._rounds = rounds

      @classmethod
      def from_bytes(cls, buffer: bytes) -> Iterator:
        return cls(int(buffer))

      def to_bytes(self) -> bytes:
        return str(self._rounds).encode()

      @property
      def federated_type(self) -> tff.FederatedType:
        return federated_type

      def select(self, k: Optional[int] = None) -> Sequence[Any]:
        del k  # `client_data` knows it.
        self._rounds += 1
        return _checked(client_data(self._rounds), self._rounds)

    self._federated_type = federated_type
    self._iterator_class = Iterator

  @property
  def federated_type(self) -> tff.FederatedType:
    """Type of the data of a round."""
    return self._federated_type

  def iterator(self) -> tff.program.FederatedDataSourceIterator:
    """Returns an iterator that begins with round 1."""
    return self._iterator_class()


def _checked(clients: Any, round_num: int) -> list:
  """Returns the clients of a round as a list, or raises TypeError."""
  # TFF's errors come later, and name neither the function nor the round.
  name, rule = (
    f'client_data({round_num})',
    "a list of each client's data",
  )
  if isinstance(clients, (str, bytes)):  # They are sequences, too.
    _checks.check_instance(name, clients, list, rule)
  return list(_checks.check_instance(name, clients, Sequence, rule))

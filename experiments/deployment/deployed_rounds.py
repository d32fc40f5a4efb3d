# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rounds as a runtime runs them: graphs at clients and server, masked sums.

Nothing of TFF runs here but its form, which is TensorFlow graphs.
"""

from typing import Any, List, NamedTuple, Sequence, Set

import numpy as np

from experiments.common import masking_protocol
from experiments.deployment import form as deployed_form
from experiments.deployment import leaves
from experiments.deployment import masked_sums

_Path = deployed_form.Path


class Outcome(NamedTuple):
  """What a round gives.

  Attributes:
    state: Flat, for the next round.
    output: Nested as the process returns it, without the state.
  """

  state: List[Any]
  output: Any


class Runtime:
  """A server and its clients, in this process."""

  def __init__(self, form: deployed_form.Form):
    """Initializes the runtime.

    Args:
      form: What it runs.

    Raises:
      ValueError: A modular sum has a modulus above the masks'. To sum its
        residues as whole numbers would tell the server more than their sum.
    """
    for part in form.sent:
      if (
        part.path is _Path.MODULAR and part.bound > masking_protocol.MAX_MODULUS
      ):
        raise ValueError(
          f'`modulus` of a modular sum must be at most '
          f'{masking_protocol.MAX_MODULUS} for masks of 32 bits, found '
          f'{part.bound}.'
        )
    self._form = form

  def initialize(self) -> List[Any]:
    """The server's first state, flat."""
    return self._form.initialize()

  def run_round(
    self,
    state: Sequence[Any],
    clients: Sequence[Sequence[Any]],
    *,
    threshold: int,
    dropped: Set[int] = frozenset(),
  ) -> Outcome:
    """Runs a round.

    Args:
      state: Flat.
      clients: Of each client its values, flat; a data set as
        `plain_graph.serialize_dataset` gives it. Those of clients that drop out
        are not read.
      threshold: Survivors without whom nothing is unmasked.
      dropped: Clients, from 0 on, that share their keys and then vanish.

    Returns:
      The outcome.

    Raises:
      masked_sums.BelowThresholdError: Too few clients are left. The server has
        learned nothing and keeps its state.
    """
    masked_sums.check_survivors(len(clients), dropped, threshold)
    form = self._form
    received = form.prepare(state)
    sent = {
      index: form.work([*values, *received])
      for index, values in enumerate(clients)
      if index not in dropped
    }
    in_the_clear = self._add_up(list(sent.values()))
    summed = self._sum_securely(sent, len(clients), threshold, dropped)
    result = form.update([*state, *in_the_clear, *summed])
    output = leaves.pack(form.output_type, result[form.num_state :])
    return Outcome(result[: form.num_state], output)

  def _add_up(self, sent) -> List[Any]:
    """What the server makes of what it sees of each client."""
    is_plain = [part.path is _Path.PLAIN for part in self._form.sent]
    total = self._form.zero()
    for values in sent:
      plain = [v for v, chosen in zip(values, is_plain) if chosen]
      total = self._form.accumulate([*total, *plain])
    return self._form.report(total)

  def _sum_securely(self, sent, num_clients, threshold, dropped) -> List[Any]:
    """The secure sums, each as the form wants it."""
    parts = [
      (index, part)
      for index, part in enumerate(self._form.sent)
      if part.path is not _Path.PLAIN
    ]
    found = masked_sums.sums(
      [
        masked_sums.Vector(
          [
            np.ravel(sent[client][index])
            if client in sent
            else np.zeros([part.leaf.length], np.int64)
            for client in range(num_clients)
          ],
          part.modulus(num_clients),
        )
        for index, part in parts
      ],
      threshold=threshold,
      dropped=dropped,
    )
    return [
      total.astype(part.leaf.dtype).reshape(part.leaf.shape)
      for total, (_, part) in zip(found, parts)
    ]

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a client sends and receives in a round beside its update."""

import math

from experiments.common import aggregators


def key_bytes(num_clients: int) -> int:
  """Bytes of keys and shares of a client, in both directions.

  In the masking protocol of Bonawitz et al. (2017). Of and for each client: 64
  of public keys, of which a client sends its own; two encrypted shares of 33
  bytes and a tag of 16, sent and received; one share of 33 to unmask. And one
  bit to say who survived.
  """
  sent = 64 + num_clients * (2 * 33 + 16) + num_clients * 33
  received = num_clients * (64 + 2 * 33 + 16) + math.ceil(num_clients / 8)
  return sent + received


def round_bytes(
  aggregator: str, *, update_bytes: int, model_bytes: int, num_clients: int
) -> int:
  """Bytes of a client in a round: update up, model down, and keys of masks.

  Args:
    aggregator: Text that `aggregators.parse` reads.
    update_bytes: What the client sends of its update.
    model_bytes: What it receives: the model.
    num_clients: Clients of the round, one group of the masking protocol.
  """
  keys = key_bytes(num_clients) if aggregators.parse(aggregator).secure else 0
  return update_bytes + model_bytes + keys

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a client sends and receives in a round beside its update."""

from typing import Any, Mapping, Optional

from experiments.common import aggregators
from tff_autotune_secagg.numerics import mask_keys


def key_bytes(num_clients: int) -> int:
  """Bytes of keys and shares of a client, in both directions.

  The package's planner counts them as well: `mask_keys.num_bytes`.
  """
  return mask_keys.num_bytes(num_clients)


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


def training_round_bytes(
  row: Mapping[str, Any],
  config: Mapping[str, Any],
  model_bytes: Optional[int] = None,
) -> Optional[int]:
  """As `round_bytes`, of a round row of a training.

  Args:
    row: With `bytes_per_client`.
    config: Of its run.
    model_bytes: The model's for rows from before the download could be coded,
      which do not say them.

  Returns:
    Bytes; None if nobody says those of the model.
  """
  model_bytes = row.get('download_bytes_per_client', model_bytes)
  if model_bytes is None:
    return None
  return round_bytes(
    config['aggregator'],
    update_bytes=row['bytes_per_client'],
    model_bytes=model_bytes,
    num_clients=config['clients_per_round'],
  )

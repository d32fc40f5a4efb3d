# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Epsilon, bits and noise of private rounds, before any training."""

import math
from typing import Any, Dict, List, Sequence

from experiments.common import tables
import tff_autotune_secagg as autotune
from tff_autotune_secagg.factories import distributed_dp
from tff_autotune_secagg.numerics.rounding import quantization

Row = Dict[str, Any]


def rows(
  *,
  num_values: int,
  num_clients: int,
  min_clients: int,
  noise_multipliers: Sequence[float],
  num_rounds: Sequence[int],
  delta: float,
  alignment: float,
) -> List[Row]:
  """Returns what each noise multiplier gives and costs.

  Args:
    num_values: model size.
    num_clients: clients in a round.
    min_clients: as in `distributed_dp_aggregator`.
    noise_multipliers: z.
    num_rounds: rounds that one client takes part in.
    delta: in (0, 1).
    alignment: norm of the sum of clipped updates over that of as many parallel
      ones of full length, 0 to 1.

  Returns:
    For each multiplier: `noise_multiplier`, `epsilons` (one for each of
    `num_rounds`), `modulus`, `bits`, `bytes_per_client` and
    `noise_to_signal`, squared norms in the model's coordinates.

  Raises:
    ValueError: an argument is out of range.
  """
  found = []
  for multiplier in noise_multipliers:
    noise = dict(
      noise_multiplier=multiplier, min_clients=min_clients, dim=num_values
    )
    modulus = autotune.plan_distributed_dp_modulus(
      num_clients=num_clients, alignment=alignment, **noise
    )
    bits = quantization.num_bits(modulus)
    energy = num_values * multiplier**2 * num_clients / min_clients
    found.append(
      dict(
        noise_multiplier=multiplier,
        epsilons=[
          autotune.distributed_dp_epsilon(
            num_rounds=rounds, delta=delta, **noise
          )
          for rounds in num_rounds
        ],
        modulus=modulus,
        bits=bits,
        bytes_per_client=math.ceil(
          distributed_dp.rotated_dim(num_values) * bits / 8
        ),
        noise_to_signal=(
          energy / (alignment * num_clients) ** 2 if alignment else math.inf
        ),
      )
    )
  return found


def format_table(found: Sequence[Row], num_rounds: Sequence[int]) -> str:
  """Returns rows as text; bytes are for one client and round."""
  heads = ('z', 'bits', 'bytes', 'noise/signal')
  lines = [
    (
      f'{row["noise_multiplier"]:g}',
      row['bits'],
      f'{row["bytes_per_client"]:,d}',
      f'{row["noise_to_signal"]:.3g}',
      *(f'{epsilon:.3g}' for epsilon in row['epsilons']),
    )
    for row in found
  ]
  epsilons = (f'epsilon, T={rounds}' for rounds in num_rounds)
  return tables.plain((*heads, *epsilons), lines)

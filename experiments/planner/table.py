# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Bits and bytes that a model and a cohort need, before any training."""

import math
from typing import Any, Dict, List, Sequence

from experiments.common import aggregators
import tff_autotune_secagg as autotune
from tff_autotune_secagg.numerics import hadamard
from tff_autotune_secagg.numerics import modulus_problems

Row = Dict[str, Any]

# What is not known of ln of the next sum's size in trainings, see
# docs/how_many_bits.md.
_EVEN, _UNEVEN = 0.04, 0.4


def rows(
  num_values: int,
  num_clients: int,
  target_nmses: Sequence[float],
  rounding: autotune.Rounding = autotune.Rounding.STOCHASTIC,
) -> List[Row]:
  """Returns what each target error costs.

  Args:
    num_values: model size, at least 1.
    num_clients: clients summed in a round, at least 1.
    target_nmses: errors over the energy of the sum, in (0, 1).
    rounding: the clients' `Rounding`.

  Returns:
    For each target: `target_nmse`, `modulus`, `bits`, `predicted_nmse`,
    `wrap_probability`, `nmse_of_even_clients` and `nmse_of_uneven_clients`
    (predicted for sums whose sizes are uncertain by e^0.04, as those of i.i.d.
    clients, and e^0.4), `bytes_per_client` (payload for one client and round),
    `bytes_as_floats` (32 bits for each value), `share_of_floats`, and
    `bits_without_wrapping` with `bytes_without_wrapping`: of modulus
    num_clients * kappa, where kappa is what one client alone needs for that
    error, so that no sum can leave the range.

  Raises:
    ValueError: a target is out of reach, or an argument out of range.
  """
  width = hadamard.padded_dim(max(num_values, autotune.aggregators.MIN_DIM))
  found = []
  for target in target_nmses:
    modulus = autotune.plan_modulus(num_clients, target, rounding=rounding)
    options = dict(num_clients=num_clients, modulus=modulus, rounding=rounding)
    alone = autotune.plan_modulus(1, target, rounding=rounding)
    bits = aggregators.num_bits(modulus)
    more_bits = aggregators.num_bits(num_clients * alone)
    found.append(
      dict(
        target_nmse=target,
        modulus=modulus,
        bits=bits,
        predicted_nmse=autotune.predicted_nmse(**options),
        wrap_probability=autotune.optimal_wrap_probability(**options),
        nmse_of_even_clients=autotune.predicted_nmse(
          size_uncertainty=_EVEN, **options
        ),
        nmse_of_uneven_clients=autotune.predicted_nmse(
          size_uncertainty=_UNEVEN, **options
        ),
        bytes_per_client=math.ceil(width * bits / 8),
        bytes_as_floats=4 * num_values,
        share_of_floats=math.ceil(width * bits / 8) / (4 * num_values),
        bits_without_wrapping=more_bits,
        bytes_without_wrapping=math.ceil(width * more_bits / 8),
      )
    )
  return found


def smallest_modulus(
  num_clients: int,
  rounding: autotune.Rounding = autotune.Rounding.STOCHASTIC,
) -> int:
  """Returns the smallest power of two that is not refused for a cohort."""
  return autotune.plan_modulus(
    num_clients, modulus_problems.MAX_PREDICTED_NMSE, rounding=rounding
  )


def format_table(found: Sequence[Row]) -> str:
  """Returns rows as text; bytes are for one client and round."""
  lines = [
    'target    bits  modulus     predicted  even       uneven     wrap      '
    ' bytes         share of   bits, bytes with',
    'NMSE                        NMSE       clients    clients    prob.     '
    '               32 bits    modulus n * kappa',
  ]
  for row in found:
    lines.append(
      f'{row["target_nmse"]:<9g} {row["bits"]:<5d} {row["modulus"]:<11d}'
      f' {row["predicted_nmse"]:<10.2g} {row["nmse_of_even_clients"]:<10.2g}'
      f' {row["nmse_of_uneven_clients"]:<10.2g}'
      f' {row["wrap_probability"]:<10.1g}'
      f' {row["bytes_per_client"]:<13,d} {row["share_of_floats"]:<10.1%}'
      f' {row["bits_without_wrapping"]:<5d} {row["bytes_without_wrapping"]:,d}'
    )
  return '\n'.join(lines)

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The planner's table of private rounds, as text."""

from collections.abc import Mapping, Sequence
from typing import Any

# Columns of rounds of which a sample of coordinates is sent.
_OF_SAMPLES = {
  'sampled': ('sampled_fraction', '.3g'),
  'bits/value': ('bits_per_value', '.2g'),
  'with keys': ('bytes_with_keys', ',d'),
}


def format_rows(
  found: Sequence[Mapping[str, Any]], num_rounds: Sequence[int]
) -> str:
  """Returns `distributed_dp_planning.rows` as text."""
  sampled = {
    head: column
    for head, column in _OF_SAMPLES.items()
    if all(column[0] in row for row in found)
  }
  heads = ['z', 'bits', 'bytes', *sampled, 'noise/signal']
  lines = [[*heads, *(f'epsilon, T={rounds}' for rounds in num_rounds)]]
  for row in found:
    lines.append(
      [
        f'{row["noise_multiplier"]:g}',
        f'{row["bits"]}',
        f'{row["bytes_per_client"]:,d}',
        *(format(row[name], spec) for name, spec in sampled.values()),
        f'{row["noise_to_signal"]:.3g}',
        *(f'{epsilon:.3g}' for epsilon in row['epsilons']),
      ]
    )
  widths = [
    max(len(head) + 2, *map(len, cells)) for head, *cells in zip(*lines)
  ]
  lines.insert(1, ['-' * width for width in widths])
  return '\n'.join(
    '  '.join([first.ljust(widths[0]), *map(str.rjust, others, widths[1:])])
    for first, *others in lines
  )

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Medians, quartiles and ratios of what `timing` timed; no TensorFlow."""

import math
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np

Row = Dict[str, Any]

# What ratios are relative to: a plain copy, and TFF's plain sum for rounds.
COPY = 'copy'
PLAIN_SUM = 'TFF sum'


def summarize(rows: Sequence[Row]) -> List[Row]:
  """Medians and quartiles of times, and of ratios within each repeat.

  Args:
    rows: from `timing.run`.

  Returns:
    One row per group, size and case, in the order of `rows`: `milliseconds`,
    `processor_milliseconds` (of all threads; without TFF's worker) and
    `per_reference`, each (lower quartile, median, upper quartile), and
    `reference`. The reference is a plain copy, and TFF's plain sum for rounds.
  """
  times: Dict[Tuple, Dict[str, Dict[int, float]]] = {}
  processor: Dict[Tuple, List[float]] = {}
  for row in rows:
    size = (row['group'], row['dim'], row['num_clients'])
    cases = times.setdefault(size, {})
    cases.setdefault(row['case'], {})[row['repeat']] = row['seconds']
    processor.setdefault(size + (row['case'],), []).append(
      1e3 * row['process_seconds']
    )
  references = {'round': PLAIN_SUM}
  summary = []
  for (group, dim, num_clients), cases in times.items():
    reference = references.get(group, COPY)
    base = cases.get(reference, {})
    for case, seconds in cases.items():
      ratios = [t / base[r] for r, t in seconds.items() if r in base]
      summary.append(
        dict(
          group=group,
          dim=dim,
          num_clients=num_clients,
          case=case,
          repeats=len(seconds),
          milliseconds=_quartiles([1e3 * t for t in seconds.values()]),
          processor_milliseconds=_quartiles(
            processor[group, dim, num_clients, case]
          ),
          reference=reference,
          per_reference=_quartiles(ratios),
        )
      )
  return summary


def _quartiles(values: Sequence[float]) -> Tuple[float, float, float]:
  if not values:
    return (math.nan,) * 3
  low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
  return float(low), float(middle), float(high)


def format_table(rows: Sequence[Row]) -> str:
  """The summary as a Markdown table: medians, quartiles in parentheses."""
  lines = [
    '| group | d | n | case | ms | processor ms | times the reference |',
    '|---|---|---|---|---|---|---|',
  ]
  for row in summarize(rows):
    low, middle, high = row['per_reference']
    times = row['milliseconds']
    processor = f'{row["processor_milliseconds"][1]:.4g}'
    if row['group'] == 'round':
      processor = ''  # The work is done by TFF's worker.
    lines.append(
      f'| {row["group"]} | {row["dim"]:,} | {row["num_clients"] or ""} |'
      f' {row["case"]} | {times[1]:.4g} ({times[0]:.4g}, {times[2]:.4g}) |'
      f' {processor} | {middle:.3g} ({low:.3g}, {high:.3g}) |'
    )
  return '\n'.join(lines)

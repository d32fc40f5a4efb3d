# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Medians, quartiles and ratios of what `timing` timed; no TensorFlow."""

import math
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np

from experiments.common import tables

Row = Dict[str, Any]

# What ratios are relative to: a plain copy, and TFF's own for rounds.
COPY = 'copy'
PLAIN_SUM = 'TFF sum'
PLAIN_BROADCAST = 'TFF broadcast'

# Cases that `PAIRS` compares. Limits are TFF's zeroing and clipping.
OURS = 'tff_autotune_secagg'
PREDICTED_DECODING = OURS + ' predicted'
OUR_SUM = OURS + ' sum'
OUR_PREDICTED_SUM = OURS + ' sum predicted'
OUR_BARE_MEAN = OURS + ' mean without limits'
OUR_MEAN = OURS + ' mean with limits'
OUR_PREDICTED_MEAN = OURS + ' mean with limits predicted'
THEIR_BARE_MEAN = 'TFF secure_aggregator without limits'
THEIR_MEAN = 'TFF secure_aggregator with limits'

# The first over the second, in the same repeat.
PAIRS = (
  (PREDICTED_DECODING, OURS),
  (OUR_PREDICTED_SUM, OUR_SUM),
  (OUR_PREDICTED_MEAN, OUR_MEAN),
  (THEIR_BARE_MEAN, OUR_BARE_MEAN),
  (THEIR_MEAN, OUR_MEAN),
)


def summarize(rows: Sequence[Row]) -> List[Row]:
  """Medians and quartiles of times, and of ratios within each repeat.

  Args:
    rows: from `timing.run`.

  Returns:
    One row per group, size and case, in the order of `rows`: `milliseconds`,
    `processor_milliseconds` (of all threads; without TFF's worker) and
    `per_reference`, each (lower quartile, median, upper quartile), and
    `reference`: a plain copy, and for rounds TFF's plain sum or broadcast.
  """
  processor: Dict[Tuple, List[float]] = {}
  for row in rows:
    processor.setdefault(_size(row) + (row['case'],), []).append(
      1e3 * row['process_seconds']
    )
  references = {'round': PLAIN_SUM, 'download round': PLAIN_BROADCAST}
  summary = []
  for (group, dim, num_clients), cases in _times(rows).items():
    reference = references.get(group, COPY)
    base = cases.get(reference, {})
    for case, seconds in cases.items():
      ratios = _ratios(seconds, base)
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


def pairs(rows: Sequence[Row]) -> List[Row]:
  """Ratios of two cases within each repeat, for each of `PAIRS`.

  Args:
    rows: from `timing.run`.

  Returns:
    One row per group, size and pair that was timed, in the order of `rows`:
    `group`, `dim`, `num_clients`, `case`, `reference`, and of the ratios their
    `median`, `least` and `largest`.
  """
  found = []
  for (group, dim, num_clients), cases in _times(rows).items():
    for case, reference in PAIRS:
      ratios = _ratios(cases.get(case, {}), cases.get(reference, {}))
      if ratios:
        found.append(
          dict(
            group=group,
            dim=dim,
            num_clients=num_clients,
            case=case,
            reference=reference,
            median=float(np.median(ratios)),
            least=min(ratios),
            largest=max(ratios),
          )
        )
  return found


def format_pairs(rows: Sequence[Row]) -> str:
  """The pairs as a Markdown table: medians, least and largest in brackets."""
  lines = [
    (
      row['group'],
      f'{row["dim"]:,}',
      row['num_clients'] or '',
      row['case'],
      row['reference'],
      f'{row["median"]:.2f} [{row["least"]:.2f}, {row["largest"]:.2f}]',
    )
    for row in pairs(rows)
  ]
  return tables.markdown(('group', 'd', 'n', 'case', 'over', 'times'), lines)


def _size(row: Row) -> Tuple:
  return row['group'], row['dim'], row['num_clients']


def _times(rows: Sequence[Row]) -> Dict[Tuple, Dict[str, Dict[int, float]]]:
  """Seconds by group and size, case, and repeat."""
  times: Dict[Tuple, Dict[str, Dict[int, float]]] = {}
  for row in rows:
    cases = times.setdefault(_size(row), {})
    cases.setdefault(row['case'], {})[row['repeat']] = row['seconds']
  return times


def _ratios(
  seconds: Dict[int, float], reference: Dict[int, float]
) -> List[float]:
  """One over the other, within each repeat that both have."""
  return [t / reference[r] for r, t in seconds.items() if r in reference]


def _quartiles(values: Sequence[float]) -> Tuple[float, float, float]:
  if not values:
    return (math.nan,) * 3
  low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
  return float(low), float(middle), float(high)


def format_table(rows: Sequence[Row]) -> str:
  """The summary as a Markdown table: medians, quartiles in parentheses."""
  heads = ('group', 'd', 'n', 'case', 'ms', 'processor ms')
  lines = []
  for row in summarize(rows):
    # The work of a round is done by TFF's worker.
    processor = row['processor_milliseconds'][1]
    lines.append(
      (
        row['group'],
        f'{row["dim"]:,}',
        row['num_clients'] or '',
        row['case'],
        _median_and_quartiles(row['milliseconds'], '.4g'),
        '' if 'round' in row['group'] else f'{processor:.4g}',
        _median_and_quartiles(row['per_reference'], '.3g'),
      )
    )
  return tables.markdown((*heads, 'times the reference'), lines)


def _median_and_quartiles(quartiles, form):
  low, middle, high = quartiles
  return f'{middle:{form}} ({low:{form}}, {high:{form}})'

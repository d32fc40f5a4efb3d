# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Accuracy at the end of training, over repeats and against a reference.

Functions take rows as `result_rows.read` returns them.
"""

import collections
from typing import Any, Dict, List, Mapping, Optional, Sequence

import numpy as np

from experiments.common import t_interval
from experiments.common import tables

Row = Mapping[str, Any]

REFERENCE = 'plain_mean'
LAST_PART = 1 / 6


def percent(row: Row) -> Optional[float]:
  """Test accuracy in percent; None where a round was not evaluated."""
  share = row.get('test_accuracy')
  return None if share is None else 100 * share


def _mean(values: Sequence[float]) -> Optional[float]:
  return float(np.mean(values)) if values else None


def _mean_accuracy(
  rows: Sequence[Row], after: float, until: float
) -> Optional[float]:
  """Mean accuracy in percent of the rows with `after` < round <= `until`."""
  return _mean([percent(row) for row in rows if after < row['round'] <= until])


def _runs(rows: Sequence[Row], last_part: float) -> List[Dict[str, Any]]:
  """For each run its last evaluated row, final accuracy in percent and rise."""
  evaluated = collections.OrderedDict()
  for row in rows:
    if 'test_accuracy' in row:
      evaluated.setdefault(row['run'], []).append(row)
  runs = []
  for members in evaluated.values():
    last = max(members, key=lambda row: row['round'])
    end = last['round']
    middle, start = end * (1 - last_part), end * (1 - 2 * last_part)
    accuracy = _mean_accuracy(members, middle, end)
    before = _mean_accuracy(members, start, middle)
    rise = None if before is None else accuracy - before
    runs.append(dict(row=last, accuracy=accuracy, rise=rise))
  return runs


def by_aggregator(
  rows: Sequence[Row], last_part: float = LAST_PART
) -> List[Dict[str, Any]]:
  """The final accuracy of every aggregator, over its repeats.

  It is the mean over the evaluations in the last part of a run's rounds: one
  round's accuracy scatters more than most aggregators differ.

  Args:
    rows: Joined round rows of one experiment.
    last_part: share of the rounds, in (0, 1]; 1 is the mean of all evaluations.

  Returns:
    For each aggregator a dict of `aggregator`, `bits_per_coordinate`,
    `bytes_per_client`, `mean` and `interval` (half width) of the accuracy in
    percent, `rise` (the mean minus that over the part before, which is small
    once training has settled; None if nothing was evaluated there), `repeats`
    and `rounds` (the fewest of a run). If there are runs of
    `REFERENCE`, also `difference` and `difference_interval`: accuracy minus
    that of the reference with the same seed, which had the same clients and
    initial weights; None without such a pair.
  """
  runs = _runs(rows, last_part)
  reference = {
    run['row']['config']['seed']: run['accuracy']
    for run in runs
    if run['row']['config']['aggregator'] == REFERENCE
  }
  grouped = collections.OrderedDict()
  for run in runs:
    grouped.setdefault(run['row']['config']['aggregator'], []).append(run)
  found = []
  for aggregator, members in grouped.items():
    accuracies = [run['accuracy'] for run in members]
    rises = [run['rise'] for run in members if run['rise'] is not None]
    pairs = [
      run['accuracy'] - reference[run['row']['config']['seed']]
      for run in members
      if run['row']['config']['seed'] in reference
    ]
    found.append(
      dict(
        aggregator=aggregator,
        bits_per_coordinate=members[0]['row']['bits_per_coordinate'],
        bytes_per_client=members[0]['row']['bytes_per_client'],
        mean=float(np.mean(accuracies)),
        interval=t_interval.half_width(accuracies),
        rise=_mean(rises),
        repeats=len(members),
        rounds=min(run['row']['round'] for run in members),
        difference=_mean(pairs),
        difference_interval=t_interval.half_width(pairs) if pairs else None,
      )
    )
  return found


def format_table(found: Sequence[Dict[str, Any]]) -> str:
  """`by_aggregator` as a Markdown table, the interval where there is one."""

  def number(mean, interval=None, sign=''):
    if mean is None:
      return '-'
    text = f'{mean:{sign}.2f}'
    return text + (f' ± {interval:.2f}' if interval else '')

  heads = ('aggregator', 'bits', 'bytes', 'repeats', 'accuracy, %')
  heads += ('minus plain mean', 'rise')
  rows = [
    (
      f'`{row["aggregator"]}`',
      f'{row["bits_per_coordinate"]:.3g}',
      f'{row["bytes_per_client"]:,}',
      row['repeats'],
      number(row['mean'], row['interval']),
      number(row['difference'], row['difference_interval'], '+'),
      number(row['rise'], sign='+'),
    )
    for row in found
  ]
  return tables.markdown(heads, rows)

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Accuracy at the end of training, over repeats and against a reference.

Functions take rows as `result_rows.read` returns them.
"""

import collections
from typing import Any, Dict, List, Mapping, Optional, Sequence

import numpy as np

from experiments.common import arms
from experiments.common import result_rows
from experiments.common import t_interval
from experiments.common import tables
from experiments.common import two_way
from experiments.training import comparison

Row = Mapping[str, Any]

REFERENCE = comparison.REFERENCE
LAST_PART = 1 / 6
# What `format_table` shows.
NOTE = (
  'Behind "minus", ± is the 95 % interval by the pooled scatter of all runs of '
  'the table, and "at least" the one-sided 95 % bound. "Paired" is the 95 % '
  "t-interval of the aggregator's own differences seed by seed, with their "
  'mean where it is another one.'
)


def _mean(values: Sequence[float]) -> Optional[float]:
  return float(np.mean(values)) if values else None


def _mean_accuracy(
  rows: Sequence[Row], after: float, until: float
) -> Optional[float]:
  """Mean accuracy in percent of the rows with `after` < round <= `until`."""
  return _mean(
    [result_rows.percent(row) for row in rows if after < row['round'] <= until]
  )


def _end_of(run: Sequence[Row], last_part: float) -> Dict[str, Any]:
  """Last row of a run, final accuracy in percent and rise."""
  end = run[-1]['round']
  middle, start = end * (1 - last_part), end * (1 - 2 * last_part)
  accuracy = _mean_accuracy(run, middle, end)
  before = _mean_accuracy(run, start, middle)
  rise = None if before is None else accuracy - before
  return dict(row=run[-1], accuracy=accuracy, rise=rise)


def differences_by_round(rows: Sequence[Row]) -> Dict[str, List[tuple]]:
  """Accuracy minus that of `REFERENCE` after each evaluated round.

  Args:
    rows: Joined round rows of one experiment.

  Returns:
    For each other arm (`arms.of`), in order of appearance, a list of round,
    difference and half width of its 95 % interval (0 if there is none), both in
    points, and number of repeats.

  Raises:
    ValueError: There is no row of `REFERENCE`, or runs differ in another
      setting than aggregator and seed.
  """
  comparison.check_settings(rows)
  by_round = {}
  for row in rows:
    accuracy = result_rows.percent(row)
    if accuracy is not None:
      comparison.enter(by_round.setdefault(row['round'], {}), row, accuracy)
  curves = collections.OrderedDict()
  for number, values in sorted(by_round.items()):
    names = [arm for arm, _ in values]
    if REFERENCE not in names:
      continue
    for name, found in two_way.differences(values, REFERENCE).items():
      if name != REFERENCE:
        point = number, found.mean, found.half_width or 0.0, names.count(name)
        curves.setdefault(name, []).append(point)
  if not curves:
    raise ValueError(
      f'`rows` must hold some of {REFERENCE} and of others, found none.'
    )
  return curves


def by_aggregator(
  rows: Sequence[Row],
  last_part: float = LAST_PART,
  reference: str = REFERENCE,
) -> List[Dict[str, Any]]:
  """The final accuracy of every arm, over its repeats.

  It is the mean over the evaluations in the last part of a run's rounds: one
  round's accuracy scatters more than most aggregators differ.

  Args:
    rows: Joined round rows of one experiment.
    last_part: share of the rounds, in (0, 1]; 1 is the mean of all evaluations.
    reference: The arm that all are compared with.

  Returns:
    For each arm (`arms.of`) a dict of `arm`, `aggregator`,
    `bits_per_coordinate`, `bytes_per_client`, `mean` and `interval` (half
    width) of the accuracy in percent, `rise` (the mean minus that over the part
    before, which is small once training has settled; None if nothing was
    evaluated there), `repeats` and `rounds` (the fewest of a run), and
    `difference`, the `two_way.Difference` from `reference` in points. Runs of
    the same seeds are a block: they had the same clients and initial weights.
    `difference` is None if the two cannot be compared. `paired` is the
    difference by the aggregator's own seeds, `two_way.paired`. `round_bytes`
    are those of a client's whole round, `comparison.bytes_of_a_round`.

  Raises:
    ValueError: Runs differ in another setting than aggregator and seed, or some
      have not come as far as others.
  """
  runs = comparison.evaluated_runs(rows)
  round_bytes = comparison.bytes_of_a_round(runs)
  ends, values = {}, {}
  for arm, members in arms.grouped(runs).items():
    ends[arm] = [_end_of(run, last_part) for run in members]
    for end in ends[arm]:
      comparison.enter(values, end['row'], end['accuracy'])
  differences = comparison.differences(values, reference)
  found = []
  for arm, members in ends.items():
    accuracies = [end['accuracy'] for end in members]
    rises = [end['rise'] for end in members if end['rise'] is not None]
    found.append(
      dict(
        aggregator=arms.aggregator(arm),
        arm=arm,
        bits_per_coordinate=members[0]['row']['bits_per_coordinate'],
        bytes_per_client=round_bytes[arm][0],
        mean=float(np.mean(accuracies)),
        interval=t_interval.half_width(accuracies),
        rise=_mean(rises),
        repeats=len(members),
        rounds=min(end['row']['round'] for end in members),
        difference=differences.get(arm),
        paired=two_way.paired(values, arm, reference),
        round_bytes=round_bytes[arm][1],
      )
    )
  return found


def format_table(
  found: Sequence[Dict[str, Any]], reference: str = REFERENCE
) -> str:
  """`by_aggregator` with that `reference` as a Markdown table.

  Bytes are those of the update, and of a client's whole round: update, model
  and keys. `NOTE` says what the intervals are.
  """
  heads = ('aggregator', 'bits', 'bytes up', 'bytes in all', 'repeats')
  heads += ('accuracy, %',)
  heads += (f'minus `{reference}`', 'paired', 'at least', 'rise')
  rows = [
    (
      f'`{row["arm"]}`',
      f'{row["bits_per_coordinate"]:.3g}',
      f'{row["bytes_per_client"]:,}',
      '-' if row['round_bytes'] is None else f'{row["round_bytes"]:,}',
      row['repeats'],
      f'{row["mean"]:.2f}',
      comparison.difference_text(row['difference']),
      _paired_text(row),
      _signed(row['difference'] and row['difference'].lower_bound),
      _signed(row['rise']),
    )
    for row in found
  ]
  return tables.markdown(heads, rows)


def _signed(value: Optional[float]) -> str:
  return '-' if value is None else f'{value:+.2f}'


def _paired_text(row: Dict[str, Any]) -> str:
  """The half width, and the mean unless the column before has the same."""
  text = comparison.difference_text(row['paired'])
  if row['paired'] is None or row['difference'] is None:
    return text
  return text.removeprefix(f'{_signed(row["difference"].mean)} ')

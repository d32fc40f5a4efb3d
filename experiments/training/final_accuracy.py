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
from experiments.common import traffic
from experiments.common import two_way

Row = Mapping[str, Any]

REFERENCE = 'plain_mean'
LAST_PART = 1 / 6


def _mean(values: Sequence[float]) -> Optional[float]:
  return float(np.mean(values)) if values else None


def _mean_accuracy(
  rows: Sequence[Row], after: float, until: float
) -> Optional[float]:
  """Mean accuracy in percent of the rows with `after` < round <= `until`."""
  return _mean(
    [result_rows.percent(row) for row in rows if after < row['round'] <= until]
  )


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


# What runs of one comparison may differ in.
_VARIED = ('aggregator', 'model_download_bits', 'seed', 'partition_seed')


def _check_settings(rows: Sequence[Row]) -> None:
  """Raises ValueError if runs differ in more than what is compared."""
  first = rows[0]['config'] if rows else {}
  for row in rows:
    config = row['config']
    for name in first:
      if name not in _VARIED and config.get(name) != first[name]:
        raise ValueError(
          f'`rows` must be of runs with one {name}, found {first[name]} and'
          f' {config.get(name)}: choose with --select={name}=VALUE.'
        )


def _check_ends(runs: Sequence[Dict[str, Any]]) -> None:
  """Raises ValueError if some runs have not come as far as others."""
  ends = [run['row']['round'] for run in runs]
  if ends and min(ends) < max(ends):
    config = runs[ends.index(min(ends))]['row']['config']
    raise ValueError(
      f'`rows` must be of whole runs, found that {config["aggregator"]} with'
      f' seed {config["seed"]} has come to round {min(ends)} and others to'
      f' {max(ends)}: let it finish, or compare with --last_round={min(ends)}.'
    )


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
  _check_settings(rows)
  by_round = {}
  for row in rows:
    accuracy = result_rows.percent(row)
    if accuracy is not None:
      _enter(by_round.setdefault(row['round'], {}), row, accuracy)
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


def _enter(values: Dict[tuple, float], row: Row, accuracy: float) -> None:
  """Enters the accuracy of a run for `two_way.differences`.

  Runs of a block have the same clients, batches and initial weights.
  """
  config = row['config']
  block = config['seed'], config.get('partition_seed')
  arm = arms.of(config)
  if (arm, block) in values:
    raise ValueError(
      f'`rows` must hold one run of {arm} with seed '
      f'{block[0]}, found two with other settings: choose with '
      '--select=SETTING=VALUE.'
    )
  values[arm, block] = accuracy


def _accuracies(runs) -> Dict[tuple, float]:
  values = {}
  for run in runs:
    _enter(values, run['row'], run['accuracy'])
  return values


def _paired_half_width(values, arm, reference) -> Optional[float]:
  """Half width of the 95 % t-interval of the differences block by block."""
  found = [
    accuracy - values[reference, block]
    for (name, block), accuracy in values.items()
    if name == arm and (reference, block) in values
  ]
  if arm == reference or len(found) < 2:
    return None
  return t_interval.half_width(found)


def _differences(values, reference) -> Mapping[str, two_way.Difference]:
  if not any(arm == reference for arm, _ in values):
    return {}
  return two_way.differences(values, reference)


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
    `difference` is None if the two cannot be compared. `paired_half_width` is
    that of a t-interval of this aggregator's own differences, which takes no
    scatter from others; None with fewer than two. `round_bytes` are those of a
    client's whole round; None for rows that do not say what the model took, and
    have no run of `REFERENCE` beside them, which tells its size.

  Raises:
    ValueError: Runs differ in another setting than aggregator and seed, or some
      have not come as far as others.
  """
  _check_settings(rows)
  runs = _runs(rows, last_part)
  _check_ends(runs)
  values = _accuracies(runs)
  differences = _differences(values, reference)
  # The reference sends all parameters as floats, as which a model that is not
  # coded goes down.
  model_bytes = {
    run['row']['bytes_per_client']
    for run in runs
    if run['row']['config']['aggregator'] == REFERENCE
  }
  grouped = collections.OrderedDict()
  for run in runs:
    grouped.setdefault(arms.of(run['row']['config']), []).append(run)
  found = []
  for arm, members in grouped.items():
    accuracies = [run['accuracy'] for run in members]
    rises = [run['rise'] for run in members if run['rise'] is not None]
    found.append(
      dict(
        aggregator=arms.aggregator(arm),
        arm=arm,
        bits_per_coordinate=members[0]['row']['bits_per_coordinate'],
        bytes_per_client=members[0]['row']['bytes_per_client'],
        mean=float(np.mean(accuracies)),
        interval=t_interval.half_width(accuracies),
        rise=_mean(rises),
        repeats=len(members),
        rounds=min(run['row']['round'] for run in members),
        difference=differences.get(arm),
        paired_half_width=_paired_half_width(values, arm, reference),
        round_bytes=traffic.training_round_bytes(
          members[0]['row'],
          members[0]['row']['config'],
          max(model_bytes) if len(model_bytes) == 1 else None,
        ),
      )
    )
  return found


def format_table(
  found: Sequence[Dict[str, Any]], reference: str = REFERENCE
) -> str:
  """`by_aggregator` with that `reference` as a Markdown table.

  Bytes are those of the update, and of a client's whole round: update, model
  and keys. ± is the 95 % interval of the difference, "at least" the one-sided
  95 % bound; "paired" is the interval by the aggregator's own seeds alone.
  """

  def number(value, sign='+'):
    return '-' if value is None else f'{value:{sign}.2f}'

  def half_width(found):
    return '-' if found is None else f'± {found:.2f}'

  def difference(found):
    if found is None:
      return '-'
    if found.half_width is None:
      return number(found.mean)
    return f'{number(found.mean)} {half_width(found.half_width)}'

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
      number(row['mean'], sign=''),
      difference(row['difference']),
      half_width(row['paired_half_width']),
      number(row['difference'] and row['difference'].lower_bound),
      number(row['rise']),
    )
    for row in found
  ]
  return tables.markdown(heads, rows)

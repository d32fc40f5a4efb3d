# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rounds and bytes until a test accuracy is reached, over repeats.

Functions take rows as `result_rows.read` returns them.
"""

import dataclasses
from typing import Any, List, Mapping, Optional, Sequence

import numpy as np

from experiments.common import arms
from experiments.common import crossing
from experiments.common import t_interval
from experiments.common import tables
from experiments.common import two_way
from experiments.training import comparison

Row = Mapping[str, Any]

# What `format_table` shows.
NOTE = (
  'Rounds until the test accuracy is first reached, and what a client that '
  'takes part in all of them has sent and received by then, in megabytes '
  '(10^6 bytes): its updates up, and in all (updates up, models down, keys). '
  'Between the two evaluations around the crossing, accuracy is taken to be '
  'linear; a run that has it at its first evaluation counts with that round. '
  'Behind a mean, ± is the 95 % t-interval over seeds. Behind "minus" there '
  'are two intervals: "paired" is the 95 % t-interval of the differences seed '
  'by seed, and "pooled" the 95 % interval by the scatter of all runs in the '
  'table. "-": not all seeds reach it.'
)
_MEGA = 1e6


@dataclasses.dataclass(frozen=True)
class Mean:
  """A mean over seeds and the half width of its 95 % t-interval.

  Attributes:
    value: The mean.
    half_width: None for one seed.
  """

  value: float
  half_width: Optional[float]


@dataclasses.dataclass(frozen=True)
class Reached:
  """How soon the runs of an arm reach an accuracy.

  What needs all of them is None if one does not reach it; differences are None
  if that is so of the reference, too.

  Attributes:
    arm: As of `arms.of`.
    num_reached: Runs that reach it.
    repeats: All its runs.
    rounds: Until then.
    update_bytes: Of the updates of one client that takes part in all rounds.
    round_bytes: Of such a client, in both directions; None, too, for rows that
      do not say what the model took.
    rounds_difference: Rounds minus those of the reference, by the scatter of
      all runs (`two_way.differences`).
    rounds_paired: The same seed by seed (`two_way.paired`).
    bytes_paired: As `rounds_paired`, of `round_bytes`. There is no pooled one:
      runs of fewer bytes scatter less.
  """

  arm: str
  num_reached: int
  repeats: int
  rounds: Optional[Mean] = None
  update_bytes: Optional[Mean] = None
  round_bytes: Optional[Mean] = None
  rounds_difference: Optional[two_way.Difference] = None
  rounds_paired: Optional[two_way.Difference] = None
  bytes_paired: Optional[two_way.Difference] = None


def first_round(run: Sequence[Row], accuracy: float) -> Optional[float]:
  """After how many rounds a run first has a test accuracy.

  Between evaluations, accuracy is taken to be linear.

  Args:
    run: Evaluated rows of one run, in the order of its rounds.
    accuracy: In (0, 1).

  Returns:
    Rounds, not rounded; those of the first evaluation if that has it; None if
    no evaluation has it.
  """
  points = ((row['round'], row['test_accuracy']) for row in run)
  return crossing.first_at_least(points, accuracy)


def by_aggregator(
  rows: Sequence[Row],
  accuracy: float,
  reference: str = comparison.REFERENCE,
) -> List[Reached]:
  """How soon each arm reaches an accuracy.

  Args:
    rows: Joined round rows of one experiment.
    accuracy: In (0, 1).
    reference: The arm that all are compared with.

  Returns:
    For each arm, in the order of appearance.

  Raises:
    ValueError: Runs differ in another setting than aggregator and seed, there
      are two of one arm and seed, or some have not come as far as others.
  """
  runs = comparison.evaluated_runs(rows)
  bytes_of = comparison.bytes_of_a_round(runs)
  found, rounds, in_all = [], {}, {}
  for arm, members in arms.grouped(runs).items():
    reached = [first_round(run, accuracy) for run in members]
    count = sum(number is not None for number in reached)
    found.append(Reached(arm, count, len(members)))
    if count < len(members):
      continue
    update_bytes, round_bytes = bytes_of[arm]
    for run, number in zip(members, reached):
      comparison.enter(rounds, run[-1], number)
      if round_bytes is not None:
        comparison.enter(in_all, run[-1], number * round_bytes)
    found[-1] = dataclasses.replace(
      found[-1],
      rounds=_mean(reached),
      update_bytes=_mean(reached, update_bytes),
      round_bytes=_mean(reached, round_bytes),
    )
  differences = comparison.differences(rounds, reference)
  return [
    dataclasses.replace(
      of_arm,
      rounds_difference=differences.get(of_arm.arm),
      rounds_paired=two_way.paired(rounds, of_arm.arm, reference),
      bytes_paired=two_way.paired(in_all, of_arm.arm, reference),
    )
    for of_arm in found
  ]


def _mean(values, factor: Optional[float] = 1.0) -> Optional[Mean]:
  """The mean of `values` times `factor`; None if there is no factor."""
  if factor is None:
    return None
  scaled = [factor * value for value in values]
  half_width = t_interval.half_width(scaled) if len(scaled) > 1 else None
  return Mean(float(np.mean(scaled)), half_width)


def format_table(
  found: Sequence[Reached], reference: str = comparison.REFERENCE
) -> str:
  """`by_aggregator` with that `reference` as a Markdown table; see `NOTE`."""
  heads = ('aggregator', 'reached', 'rounds', 'MB up', 'MB in all')
  heads += (f'rounds minus `{reference}`, paired', 'pooled')
  heads += (f'MB in all minus `{reference}`, paired',)
  rows = [
    (
      f'`{row.arm}`',
      f'{row.num_reached} of {row.repeats}',
      _mean_text(row.rounds, digits=1),
      _mean_text(row.update_bytes, unit=_MEGA),
      _mean_text(row.round_bytes, unit=_MEGA),
      comparison.difference_text(row.rounds_paired, digits=1),
      comparison.difference_text(row.rounds_difference, digits=1),
      comparison.difference_text(_in_mega(row.bytes_paired)),
    )
    for row in found
  ]
  return tables.markdown(heads, rows)


def _mean_text(mean: Optional[Mean], digits: int = 2, unit: float = 1.0) -> str:
  if mean is None:
    return '-'
  text = f'{mean.value / unit:.{digits}f}'
  if mean.half_width is None:
    return text
  return f'{text} ± {mean.half_width / unit:.{digits}f}'


def _in_mega(found: Optional[two_way.Difference]):
  if found is None:
    return None
  return two_way.Difference(found.mean / _MEGA, found.half_width / _MEGA)

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Accuracy under masks beside the simulation's, from result rows."""

from typing import Any, Dict, Mapping, Sequence

from matplotlib import pyplot as plt

from experiments.common import aggregators
from experiments.common import arms
from experiments.common import palette
from experiments.common import plot_style
from experiments.common import result_rows
from experiments.deployment import settings

Row = Mapping[str, Any]

_LINES = {settings.MASKED: '-', settings.SIMULATED: ':'}
_SAID = {settings.MASKED: 'under masks', settings.SIMULATED: 'simulated'}


def _differences(rows: Sequence[Row]) -> Dict[tuple, list]:
  """Of each arm and seed (round, accuracy under masks minus simulated)."""
  found = {}
  for row in rows:
    accuracy = result_rows.percent(row)
    if accuracy is not None:
      key = arms.of(row['config']), row['config']['seed'], row['round']
      found.setdefault(key, {})[row['config']['run_by']] = accuracy
  curves = {}
  for (arm, seed, number), both in found.items():
    if len(both) == len(_LINES):
      points = curves.setdefault((arm, seed), [])
      masked = both[settings.MASKED]
      points.append((number, masked - both[settings.SIMULATED]))
  return curves


def accuracy_figure(rows: Sequence[Row], title: str = ''):
  """Accuracy by round, and its difference from the simulation's, seed by seed.

  Args:
    rows: Joined round rows of this experiment.
    title: Put above, before the number of repeats.
  """
  figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
  looks = palette.curves(arms.of(row['config']) for row in rows)
  for run_by, line in _LINES.items():
    mine = [row for row in rows if row['config']['run_by'] == run_by]
    for arm, curve in plot_style.series(mine, result_rows.percent).items():
      rounds, means, _, _ = curve
      look = dict(looks[arm], linestyle=line)
      label = f'{aggregators.label(arm)}, {_SAID[run_by]}'
      left.plot(rounds, means, label=label, **look)
  for (arm, _), points in _differences(rows).items():
    right.plot(*zip(*points), **looks[arm])
  left.set(xlabel='round', ylabel='test accuracy (%)')
  plot_style.add_legend(left)
  right.set(xlabel='round', ylabel='under masks minus simulated (points)')
  for axes in (left, right):
    axes.grid(alpha=0.3)
  seeds = {row['config']['seed'] for row in rows}
  note = f'left: means of {len(seeds)} seeds, right: each seed'
  return plot_style.finish(figure, title, note)

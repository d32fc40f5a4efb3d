# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The picture of descents: how near to the optimum, after what."""

from typing import Any, Mapping, Sequence

from matplotlib import pyplot as plt
from matplotlib import ticker

from experiments.common import arms
from experiments.common import palette
from experiments.common import plot_style
from experiments.convergence import table

Row = Mapping[str, Any]

# Above as many curves, bands hide each other.
_MOST_BANDS = 6
_ENTRIES_IN_A_LINE = 4

# What a panel's axis counts for each round: a field of the rows, or one.
_PANELS = (
  (None, 'rounds'),
  ('bytes_per_client', 'bytes of a client: its updates'),
  ('round_bytes', 'bytes of a client in all: updates, models, keys'),
)


def draw(rows: Sequence[Row], title: str = ''):
  """Excess loss by rounds, by bytes of updates and by bytes of whole rounds.

  Curves are geometric means over seeds; bands, where curves are few, their 95 %
  t-intervals.

  Args:
    rows: Joined round rows of one comparison.
    title: Put above, before the number of repeats.
  """
  curves = plot_style.series(rows, lambda row: row['excess_loss'], is_log=True)
  looks = palette.curves(curves)
  first = {}
  for row in rows:
    first.setdefault(arms.of(row['config']), row)
  figure, panels = plt.subplots(1, 3, figsize=(13, 4), sharey=True)
  for axes, (field, text) in zip(panels, _PANELS):
    axes.set(xlabel=text, yscale='log')
    if field is not None:
      axes.set_xscale('log')
    for arm, (rounds, means, ends, repeats) in curves.items():
      steps = rounds * (1 if field is None else first[arm][field])
      look = looks[arm]
      axes.plot(steps, means, label=table.label(arm), **look)
      if repeats > 1 and len(curves) <= _MOST_BANDS:
        axes.fill_between(
          steps, *ends, color=look['color'], alpha=0.2, linewidth=0
        )
    axes.grid(alpha=0.3)
  for axes in panels[1:]:
    axes.xaxis.set_major_formatter(ticker.EngFormatter(unit='B'))
  panels[0].set_ylabel('loss above the least loss')
  plot_style.finish(figure, title, plot_style.repeats_note(rows))
  return plot_style.legend_below(figure, _ENTRIES_IN_A_LINE)

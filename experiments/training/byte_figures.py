# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The figures of training that show accuracy and bytes, from result rows."""

from typing import Any, Mapping, Sequence

from matplotlib import pyplot as plt
from matplotlib import ticker

from experiments.common import arms
from experiments.common import palette
from experiments.common import plot_style
from experiments.common import result_rows
from experiments.training import comparison
from experiments.training import final_accuracy

Row = Mapping[str, Any]

_UPDATE = 'update of a client'
_ROUND = 'whole round of a client: update, model, keys'


def accuracy_over_bytes_figure(rows: Sequence[Row], title: str = ''):
  """Accuracy against the bytes so far of a client that is in all rounds.

  One panel is of its updates, the other of all that it sends and receives. The
  accuracies of the first tenth of the rounds are out of view.

  Args:
    rows: Joined round rows that say what the model took, or some of the plain
      mean.
    title: Put above, before the number of repeats.

  Raises:
    ValueError: Nobody says what the model took, or runs cannot be compared.
  """
  bytes_of = comparison.bytes_of_a_round(comparison.evaluated_runs(rows))
  _check_bytes(in_all for _, in_all in bytes_of.values())
  figure, panels = plt.subplots(1, 2, figsize=(11, 4.5), sharey=True)
  for index, (axes, text) in enumerate(zip(panels, (_UPDATE, _ROUND))):
    plot_style.plot_series(
      axes,
      rows,
      result_rows.percent,
      x_per_round={arm: found[index] for arm, found in bytes_of.items()},
    )
    _finish_bytes(axes, f'bytes so far: {text}')
  panels[0].set_ylabel('test accuracy (%)')
  panels[0].set_ylim(*_settled_range(rows))
  plot_style.finish(figure, title, plot_style.repeats_note(rows))
  return plot_style.legend_below(figure, 2)


def _settled_range(rows):
  """Limits that hold all means but those of the first tenth of the rounds."""
  curves = plot_style.series(rows, result_rows.percent).values()
  last = max(rounds[-1] for rounds, _, _, _ in curves)
  shown = [m for r, means, _, _ in curves for m in means[r > last / 10]]
  margin = max(0.05 * (max(shown) - min(shown)), 0.1)
  return min(shown) - margin, max(shown) + margin


def _check_bytes(in_all):
  if any(number is None for number in in_all):
    raise ValueError(
      f'`rows` must hold some of {comparison.REFERENCE}, found none.'
    )


def _finish_bytes(axes, text):
  axes.set(xlabel=text)
  axes.set_xlim(left=0)
  axes.xaxis.set_major_formatter(ticker.EngFormatter(unit='B'))
  axes.grid(alpha=0.3, which='both')


def accuracy_by_bytes_figure(rows: Sequence[Row], title: str = ''):
  """Final accuracy against the bytes of a client's update and whole round.

  Args:
    rows: Joined round rows, some of the plain mean.
    title: Put above, before the number of repeats.

  Raises:
    ValueError: There is no row of the plain mean.
  """
  points = final_accuracy.by_aggregator(rows)
  _check_bytes(point['round_bytes'] for point in points)
  points = [p for p in points if p['difference'] is not None]
  figure, panels = plt.subplots(1, 2, figsize=(11, 4.5), sharey=True)
  for axes, field, text in (
    (panels[0], 'bytes_per_client', _UPDATE),
    (panels[1], 'round_bytes', _ROUND),
  ):
    _draw_points(axes, points, field)
    axes.axhline(0.0, color=palette.NEUTRAL, linewidth=0.8)
    _finish_bytes(axes, f'bytes: {text}')
  panels[0].set_ylabel('final accuracy minus plain mean (points)')
  panels[1].legend(fontsize='small')
  counts = plot_style.either({p['repeats'] for p in points})
  pale = ' (pale: 1)' if counts.startswith('1 or') else ''
  note = f'repeats: {counts}{pale}; bars: 95 % intervals, scatter pooled'
  return plot_style.finish(figure, title, note)


def _draw_points(axes, points, field):
  """A mark for each arm: pale if run once, half if its model is coded."""
  by_look = {}
  for point in points:
    family = palette.family(point['aggregator'])
    is_coded = arms.is_coded(point['arm'])
    by_look.setdefault((family, is_coded), []).append(point)
  families = palette.families(family for family, _ in by_look)
  for look_of in sorted(by_look, key=lambda key: (families.index(key[0]), key)):
    family, is_coded = look_of
    look = palette.family_style(family)
    if is_coded:
      look.update(label=f'{family}, coded model', fillstyle='bottom')
    for point in by_look[look_of]:
      axes.errorbar(
        [point[field]],
        [point['difference'].mean],
        [point['difference'].half_width or 0.0],
        linestyle='none',
        capsize=3,
        alpha=1.0 if point['repeats'] > 1 else 0.4,
        **look,
      )
      look['label'] = None  # One entry of the legend is enough.

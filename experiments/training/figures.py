# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The figures of training: accuracy and bin size, from result rows."""

from typing import Any, Mapping, Optional, Sequence

from matplotlib import pyplot as plt
from matplotlib import ticker
import numpy as np

from experiments.common import aggregators
from experiments.common import palette
from experiments.common import plot_style
from experiments.common import result_rows
from experiments.training import final_accuracy

Row = Mapping[str, Any]

# Of sigma/t.
_ALPHA_TICKS = (1 / 40, 1 / 20, 1 / 10, 1 / 5, 1 / 2)
# Room for a legend beside the axes.
_LEGEND_INCHES = 3


def _sum_stddev(row: Row) -> Optional[float]:
  return result_rows.measurement(row, 'sum_stddev')


def tuned_bin_size(row: Row) -> Optional[float]:
  """The bin size of a round that does not calibrate."""
  # A calibration runs at a ladder of bins; the state's one is not used.
  if result_rows.measurement(row, 'calibrating'):
    return None
  return result_rows.measurement(row, 'bin_size')


def _subplots_for(curves):
  """A figure and its axes, with room for the legend of so many curves."""
  legend_inches = _LEGEND_INCHES if len(curves) > plot_style.MOST_INSIDE else 0
  return plt.subplots(figsize=(6.5 + legend_inches, 4.5))


def training_figure(rows: Sequence[Row], title: str = ''):
  """Accuracy and bin size by round, side by side."""
  figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
  plot_style.plot_series(left, rows, result_rows.percent)
  left.set(xlabel='round', ylabel='test accuracy (%)')
  left.grid(alpha=0.3)
  plot_style.add_legend(left)
  right.set(
    xlabel='round',
    ylabel='bin size (units of the summed values)',
    yscale='log',
  )
  plot_style.plot_series(right, rows, tuned_bin_size)
  right.grid(alpha=0.3, which='both')
  return plot_style.finish(figure, title, plot_style.repeats_note(rows))


def accuracy_figure(rows: Sequence[Row], *, zoom: bool, title: str = ''):
  """Accuracy by round with alpha and sigma/t in the legend.

  The paper's figures 2 and 3.

  Args:
    rows: Joined round rows.
    zoom: Whether to show only the later half of the rounds and the accuracies
      that occur there.
    title: Put above, before the number of repeats.
  """
  curves = plot_style.series(rows, result_rows.percent)
  figure, axes = _subplots_for(curves)
  out_of_view = set()
  if zoom:
    last = max(r[-1] for r, _, _, _ in curves.values())
    later = {name: m[r >= last / 2] for name, (r, m, _, _) in curves.items()}
    # Curves that failed would squeeze all others into a line; the upper half of
    # the curves decides what is shown.
    finals = {name: m[-1] for name, (_, m, _, _) in curves.items()}
    middle = sorted(finals.values())[(len(finals) - 1) // 2]
    shown = [m for name, m in later.items() if finals[name] >= middle]
    low = min(m.min() for m in shown if m.size)
    high = max(m.max() for m in shown if m.size)
    margin = max(0.05 * (high - low), 0.1)
    axes.set(xlim=(last / 2, last), ylim=(low - margin, high + margin))
    out_of_view = {
      n for n, m in later.items() if max(m, default=low) < low - margin
    }

  def label_fn(aggregator):
    below = ', below' if aggregator in out_of_view else ''
    return plot_style.alpha_label(aggregator) + below

  plot_style.plot_series(axes, rows, result_rows.percent, label_fn=label_fn)
  axes.set(xlabel='round', ylabel='test accuracy (%)')
  axes.grid(alpha=0.3)
  plot_style.add_legend(axes)
  return plot_style.finish(figure, title, plot_style.repeats_note(rows))


def alpha_figure(rows: Sequence[Row], title: str = ''):
  """Final accuracy minus the plain mean's by sigma/t, a panel for each modulus.

  Marks are fixed alphas, the line is the automatic one. Bars and bands are 95 %
  intervals from the scatter of all runs (`two_way`).

  Args:
    rows: Joined round rows: of the plain mean, and of `autotuned` with and
      without `wrap_probability`.
    title: Put above, before the number of repeats.

  Raises:
    ValueError: There is no row of the plain mean, or none with a fixed alpha.
  """
  panels, repeats = {}, set()
  for point in final_accuracy.by_aggregator(rows):
    scheme = aggregators.parse(point['aggregator'])
    if scheme.name == 'autotuned' and point['difference'] is not None:
      repeats.add(point['repeats'])
      entry = scheme.settings['wrap_probability'], point['difference']
      panels.setdefault(scheme.settings['modulus'], []).append(entry)
  if not any(alpha for points in panels.values() for alpha, _ in points):
    raise ValueError(
      f'`rows` must hold some of {final_accuracy.REFERENCE} and some of '
      'autotuned with `wrap_probability`, found none.'
    )
  figure, row_of_axes = plt.subplots(
    1, len(panels), figsize=(4.5 * len(panels), 4), sharey=True, squeeze=False
  )
  colour = palette.COLOURS['autotuned']
  for axes, modulus in zip(row_of_axes[0], sorted(panels, reverse=True)):
    axes.set(title=f'k = {modulus}', xlabel=r'$\sigma/t$', xscale='log')
    axes.xaxis.set_major_locator(ticker.FixedLocator(_ALPHA_TICKS))
    axes.xaxis.set_major_formatter(lambda value, _: f'1/{1 / value:.0f}')
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.axhline(0.0, color=palette.NEUTRAL, linewidth=0.8, label='plain mean')
    _draw_alphas(axes, panels[modulus], colour)
    axes.grid(alpha=0.3)
  row_of_axes[0][0].set_ylabel('final accuracy minus plain mean (points)')
  row_of_axes[0][-1].legend(fontsize='small')
  counts = plot_style.either(repeats)
  note = f'repeats: {counts}; bars and bands: 95 % intervals, scatter pooled'
  return plot_style.finish(figure, title, note)


def _draw_alphas(axes, points, colour):
  """Marks at sigma/t of fixed alphas, a line with its band for none."""
  fixed = [(alpha, found) for alpha, found in points if alpha is not None]
  axes.errorbar(
    [plot_style.sigma_over_t(alpha) for alpha, _ in fixed],
    [found.mean for _, found in fixed],
    [found.half_width or 0.0 for _, found in fixed],
    color=colour,
    linestyle='none',
    marker='o',
    markerfacecolor='white',
    capsize=3,
    label='fixed alpha',
  )
  for _, found in (p for p in points if p[0] is None):
    axes.axhline(found.mean, color=colour, label='automatic')
    width = found.half_width or 0.0
    axes.axhspan(
      found.mean - width,
      found.mean + width,
      color=colour,
      alpha=0.15,
      linewidth=0,
    )


def tuning_figure(rows: Sequence[Row], title: str = ''):
  """Bin size and estimated spread of an entry of the sum, by round.

  Args:
    rows: Joined round rows; those of aggregators without an estimate are left
      out.
    title: Put above, before the number of repeats.

  Raises:
    ValueError: If that leaves none.
  """
  rows = [row for row in rows if _sum_stddev(row) is not None]
  if not rows:
    raise ValueError(
      '`rows` must hold some of an aggregator that estimates the spread, such '
      'as autotuned, found none.'
    )
  figure, panels = plt.subplots(1, 2, figsize=(10, 4), sharex=True)
  values = (
    (tuned_bin_size, 'bin size (units of the summed values)'),
    (_sum_stddev, 'estimated spread of the sum (same units)'),
  )
  for axes, (value, text) in zip(panels, values):
    axes.set(xlabel='round', ylabel=text, yscale='log')
    plot_style.plot_series(axes, rows, value, label_fn=plot_style.alpha_label)
    axes.grid(alpha=0.3, which='both')
  plot_style.add_legend(panels[-1])
  return plot_style.finish(figure, title, plot_style.repeats_note(rows))


def prediction_figure(rows: Sequence[Row], title: str = ''):
  """What is left of predicted sums, and errors of all sums, by round.

  Args:
    rows: Joined round rows; those of aggregators that expect no error are left
      out.
    title: Put above, before the number of repeats.

  Raises:
    ValueError: There is no row of an aggregator that predicts.
  """

  def gain(row):
    return result_rows.measurement(row, 'prediction_gain')

  def error(row):
    # Not of a round whose clients had nothing to send.
    return result_rows.measurement(row, 'predicted_nmse') or None

  if all(gain(row) is None for row in rows):
    raise ValueError(
      '`rows` must hold some of an aggregator with prediction=true, found none.'
    )
  rows = [row for row in rows if error(row) is not None]
  figure, panels = plt.subplots(1, 2, figsize=(10, 4), sharex=True)
  values = (
    (gain, 'squared rest over squared sum'),
    (error, 'expected squared error over squared sum'),
  )
  for axes, (value, text) in zip(panels, values):
    axes.set(xlabel='round', ylabel=text, yscale='log')
    plot_style.plot_series(axes, rows, value)
    axes.grid(alpha=0.3, which='both')
  plot_style.finish(figure, title, plot_style.repeats_note(rows))
  return plot_style.legend_below(figure, 3)


def difference_figure(rows: Sequence[Row], title: str = ''):
  """Accuracy minus that of the plain mean, by round.

  Bands are 95 % intervals from the scatter of all runs (`two_way`); a curve of
  one run is dashed.

  Args:
    rows: Joined round rows, some of the plain mean.
    title: Put above, before the number of repeats.

  Raises:
    ValueError: There is no row of the plain mean.
  """
  curves = final_accuracy.differences_by_round(rows)
  looks = palette.curves(curves)
  figure, axes = _subplots_for(curves)
  for aggregator, curve in curves.items():
    rounds, means, half_widths, repeats = map(np.array, zip(*curve))
    look = dict(looks[aggregator], linestyle='-' if repeats.max() > 1 else '--')
    axes.plot(rounds, means, label=plot_style.alpha_label(aggregator), **look)
    axes.fill_between(
      rounds,
      means - half_widths,
      means + half_widths,
      color=look['color'],
      alpha=0.15,
      linewidth=0,
    )
  axes.axhline(0.0, color=palette.NEUTRAL, linewidth=0.8)
  axes.set(xlabel='round', ylabel='accuracy minus plain mean (points)')
  axes.set_ylim(*_settled_range(curves))
  axes.grid(alpha=0.3)
  plot_style.add_legend(axes)
  counts = plot_style.either(
    {int(p[3]) for curve in curves.values() for p in curve}
  )
  note = f'{counts} repeats, bands: 95 % intervals, scatter pooled'
  return plot_style.finish(figure, title, note)


def _settled_range(curves):
  """Limits that hold all bands but those of the first tenth of the rounds.

  There, accuracies differ by so much that all later differences would be lost.
  """
  points = [point for curve in curves.values() for point in curve]
  last = max(point[0] for point in points)
  points = [point for point in points if point[0] > last / 10]
  low = min(mean - width for _, mean, width, _ in points)
  high = max(mean + width for _, mean, width, _ in points)
  margin = max(0.1 * (high - low), 0.1)
  return low - margin, high + margin

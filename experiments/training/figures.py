# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The figures of training: accuracy, bin size and bytes, from result rows."""

from typing import Any, Mapping, Optional, Sequence

from matplotlib import pyplot as plt
from matplotlib import ticker

from experiments.common import palette
from experiments.common import plot_style
from experiments.common import result_rows
from experiments.training import final_accuracy

Row = Mapping[str, Any]

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


def training_figure(rows: Sequence[Row], title: str = ''):
  """Accuracy and bin size by round, side by side."""
  figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
  plot_style.plot_series(left, rows, final_accuracy.percent)
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
  curves = plot_style.series(rows, final_accuracy.percent)
  legend_inches = _LEGEND_INCHES if len(curves) > plot_style.MOST_INSIDE else 0
  figure, axes = plt.subplots(figsize=(6.5 + legend_inches, 4.5))
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

  plot_style.plot_series(axes, rows, final_accuracy.percent, label_fn=label_fn)
  axes.set(xlabel='round', ylabel='test accuracy (%)')
  axes.grid(alpha=0.3)
  plot_style.add_legend(axes)
  return plot_style.finish(figure, title, plot_style.repeats_note(rows))


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


def accuracy_by_bytes_figure(rows: Sequence[Row], title: str = ''):
  """Final accuracy (`final_accuracy`) against bytes per client and round."""
  figure, axes = plt.subplots(figsize=(7, 4.5))
  points = final_accuracy.by_aggregator(rows)
  by_family = {}
  for point in points:
    family = palette.family(point['aggregator'])
    by_family.setdefault(family, []).append(point)
  for family in palette.families(by_family):
    mine = by_family[family]
    axes.errorbar(
      [p['bytes_per_client'] for p in mine],
      [p['mean'] for p in mine],
      [p['interval'] for p in mine],
      linestyle='none',
      capsize=3,
      **palette.family_style(family),
    )
  axes.set(
    xlabel='bytes per client and round',
    xscale='log',
    ylabel='final test accuracy (%)',
  )
  axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
  axes.xaxis.set_major_formatter(ticker.EngFormatter(unit='B'))
  axes.xaxis.set_minor_formatter(ticker.NullFormatter())
  axes.grid(alpha=0.3, which='both')
  axes.legend(fontsize='small')
  counts = sorted({p['repeats'] for p in points})
  text = ' or '.join(map(str, counts))
  note = f'repeats: {text}' + (
    '; bars: 95 % t-interval of the mean' if max(counts) > 1 else ''
  )
  return plot_style.finish(figure, title, note)

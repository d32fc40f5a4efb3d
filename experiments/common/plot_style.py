# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the figures have in common: colours, legends, bands, writing them.

Figures are drawn from result rows, never by running anything. Functions take
rows as `result_rows.read` returns them. What a colour means is in `palette`.
"""

import collections
import hashlib
import json
import os
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import matplotlib
import numpy as np
from PIL import Image
import scipy.stats

from experiments.common import aggregators
from experiments.common import palette
from experiments.common import t_interval

matplotlib.use('Agg')  # No display is needed, and none is looked for.
from matplotlib import pyplot as plt  # pylint: disable=g-import-not-at-top
from matplotlib import ticker  # pylint: disable=g-import-not-at-top

Row = Mapping[str, Any]

# Entries of a legend that leave room for the curves beside it.
MOST_INSIDE = 8
# More bands than this hide each other.
_MOST_BANDS = 6


def add_legend(axes) -> None:
  """A legend inside the axes, or to their right if it would hide curves."""
  outside = {}
  if len(axes.get_legend_handles_labels()[1]) > MOST_INSIDE:
    outside = dict(loc='center left', bbox_to_anchor=(1.02, 0.5))
  axes.legend(fontsize='small', **outside)


def sigma_over_t(alpha: float) -> float:
  """The ratio of the paper's figures for the share alpha of wrapped entries.

  A normal variable of standard deviation sigma leaves [-t, t] with probability
  alpha.
  """
  return float(1 / scipy.stats.norm.isf(alpha / 2))


def alpha_label(aggregator: str) -> str:
  """As the paper's figures: alpha and the ratio sigma/t that it stands for."""
  alpha = aggregators.parse(aggregator).settings.get('wrap_probability')
  if alpha is None:
    return aggregator
  return f'$\\alpha$={alpha:.2g} ($\\sigma/t$={sigma_over_t(alpha):.2f})'


def series(
  rows: Sequence[Row],
  value: Callable[[Row], Optional[float]],
  is_log: bool = False,
) -> Dict[str, Tuple[np.ndarray, np.ndarray, np.ndarray, int]]:
  """Averages a value over repeats, by aggregator and round.

  Args:
    rows: Joined round rows.
    value: Takes a row; None where the row has no such value.
    is_log: Whether to average logarithms, as fits a logarithmic axis. The
      values must be positive then.

  Returns:
    For each aggregator text, in the order of appearance: rounds; means,
    geometric ones if `is_log`; the two ends of their 95 % t-interval over
    repeats, [2, rounds] (equal for one repeat); and the number of repeats.
  """
  found = collections.OrderedDict()
  for row in rows:
    number = value(row)
    if isinstance(number, list):
      number = number[0]
    if number is None or isinstance(number, str):
      continue
    by_round = found.setdefault(row['config']['aggregator'], {})
    by_round.setdefault(row['round'], []).append(number)
  out = collections.OrderedDict()
  for aggregator, by_round in found.items():
    rounds = np.array(sorted(by_round))
    samples = [np.log(by_round[r]) if is_log else by_round[r] for r in rounds]
    means = np.array([np.mean(sample) for sample in samples])
    widths = np.array([t_interval.half_width(s) for s in samples])
    ends = np.stack([means - widths, means + widths])
    if is_log:
      means, ends = np.exp(means), np.exp(ends)
    out[aggregator] = (rounds, means, ends, max(len(s) for s in samples))
  return out


def repeats_note(rows: Sequence[Row]) -> str:
  """What a caption says about the repeats of curves drawn from `rows`."""
  runs = {}
  for row in rows:
    runs.setdefault(row['config']['aggregator'], set()).add(row['run'])
  most = max((len(names) for names in runs.values()), default=1)
  if most == 1:
    return '1 run each'
  if len(runs) > _MOST_BANDS:
    return f'means of {most} repeats'
  return f'{most} repeats, band: 95 % t-interval of the mean'


def plot_series(axes, rows, value, label_fn=str) -> None:
  """Draws one curve for each aggregator, with its band if there are few.

  Args:
    axes: Matplotlib axes, whose scale says how to average.
    rows: Joined round rows.
    value: As for `series`.
    label_fn: Turns an aggregator text into a legend entry.
  """
  # Styles follow the aggregators of all rows, so that panels agree.
  looks = palette.curves(r['config']['aggregator'] for r in rows)
  is_log = axes.get_yscale() == 'log'
  for aggregator, curve in series(rows, value, is_log).items():
    rounds, means, ends, count = curve
    look = looks[aggregator]
    axes.plot(rounds, means, label=label_fn(aggregator), **look)
    if count > 1 and len(looks) <= _MOST_BANDS:
      axes.fill_between(
        rounds, *ends, color=look['color'], alpha=0.2, linewidth=0
      )
  axes.xaxis.set_major_locator(
    ticker.MaxNLocator(steps=(1, 2, 5, 10), integer=True)
  )


def finish(figure, title: str, note: str):
  """Writes `title (note)` above a figure, or the note alone; returns it."""
  figure.suptitle(f'{title} ({note})' if title else note, fontsize='medium')
  figure.tight_layout()
  return figure


def _numbers(vertices) -> List[List[str]]:
  return [[f'{x:.4e}' for x in vertex] for vertex in np.asarray(vertices)]


def data_digest(figure) -> str:
  """A digest of what a figure shows, whichever Matplotlib lays it out.

  Of all axes the labels and scales, the lines in their order and the areas and
  bars: coordinates to five digits and the entry of the legend.
  """
  shown = []
  for axes in figure.axes:
    shown.append([axes.get_title(), axes.get_xlabel(), axes.get_ylabel()])
    shown.append([axes.get_xscale(), axes.get_yscale()])
    for line in axes.lines:
      # Labels that Matplotlib makes up begin with an underscore.
      label = line.get_label()
      shown.append('' if label.startswith('_') else label)
      shown.append(_numbers(line.get_xydata()))
    for collection in axes.collections:
      # Versions begin an outline at different vertices and close it or not.
      shown.append(
        [
          sorted({tuple(v) for v in _numbers(path.vertices)})
          for path in collection.get_paths()
        ]
      )
  return hashlib.sha256(json.dumps(shown).encode()).hexdigest()


def save(figure, path: str) -> str:
  """Writes a figure, closes it and returns the path.

  Args:
    figure: The figure.
    path: In a folder that is there; its suffix says how to write. A PNG file
      carries `data_digest`, by which a test tells whether it shows what its
      rows say.
  """
  stem, suffix = os.path.splitext(path)
  metadata = {}
  if suffix == '.png':
    metadata = {'Description': data_digest(figure)}
  # An old picture stays whole until the new one is.
  temporary = f'{stem}.tmp{suffix}'
  figure.savefig(temporary, dpi=150, metadata=metadata)
  plt.close(figure)
  if suffix == '.png' and os.path.exists(path) and _look_alike(temporary, path):
    os.remove(temporary)
  else:
    os.replace(temporary, path)
  return path


def _look_alike(*paths) -> bool:
  """Whether pictures have one digest, and pixels that differ by at most 1.

  Processors round differently, which moves a shade of grey here and there.
  """
  digests, pixels = [], []
  for path in paths:
    with Image.open(path) as image:
      digests.append(image.info.get('Description'))
      pixels.append(np.asarray(image.convert('RGB'), np.int16))
  return (
    digests[0] == digests[1]
    and pixels[0].shape == pixels[1].shape
    and np.abs(pixels[0] - pixels[1]).max() <= 1
  )

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the figures have in common: colours, legends, bands, writing them.

Figures are drawn from result rows, never by running anything. Functions take
rows as `result_rows.read` returns them. What a colour means is in `palette`.
"""

import collections
import json
import os
import re
from typing import (
  Any,
  Callable,
  Dict,
  Iterable,
  List,
  Mapping,
  Optional,
  Sequence,
  Tuple,
)

import matplotlib
import numpy as np
from PIL import Image
from PIL import PngImagePlugin
from scipy import ndimage
import scipy.stats

from experiments.common import aggregators
from experiments.common import arms
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
# By how much numbers of the same figure may differ, relative to themselves or
# to the axis. Processors differ by far less; a pixel is a hundred times more.
TOLERANCE = 1e-5
# By how much shades of 0 to 255 may differ where two pictures look alike.
# Turned text differs by 5 where the layout differs in its last bits.
_SHADES = 8
# The key of the data in a PNG file's text.
_DATA = 'Description'


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


def alpha_label(arm: str) -> str:
  """As the paper's figures: alpha and the ratio sigma/t that it stands for."""
  settings = aggregators.parse(arms.aggregator(arm)).settings
  alpha = settings.get('wrap_probability')
  if alpha is None:
    return aggregators.label(arm)
  return f'$\\alpha$={alpha:.2g} ($\\sigma/t$={sigma_over_t(alpha):.2f})'


def series(
  rows: Sequence[Row],
  value: Callable[[Row], Optional[float]],
  is_log: bool = False,
) -> Dict[str, Tuple[np.ndarray, np.ndarray, np.ndarray, int]]:
  """Averages a value over repeats, by arm and round.

  Args:
    rows: Joined round rows.
    value: Takes a row; None where the row has no such value.
    is_log: Whether to average logarithms, as fits a logarithmic axis. The
      values must be positive then.

  Returns:
    For each arm (`arms.of`), in the order of appearance: rounds; means,
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
    by_round = found.setdefault(arms.of(row['config']), {})
    by_round.setdefault(row['round'], []).append(number)
  out = collections.OrderedDict()
  for arm, by_round in found.items():
    rounds = np.array(sorted(by_round))
    samples = [np.log(by_round[r]) if is_log else by_round[r] for r in rounds]
    means = np.array([np.mean(sample) for sample in samples])
    widths = np.array([t_interval.half_width(s) for s in samples])
    ends = np.stack([means - widths, means + widths])
    if is_log:
      means, ends = np.exp(means), np.exp(ends)
    out[arm] = (rounds, means, ends, max(len(s) for s in samples))
  return out


def repeats_note(rows: Sequence[Row]) -> str:
  """What a caption says about the repeats of curves drawn from `rows`."""
  runs = {}
  for row in rows:
    runs.setdefault(arms.of(row['config']), set()).add(row['run'])
  most = max((len(names) for names in runs.values()), default=1)
  if most == 1:
    return '1 run each'
  if len(runs) > _MOST_BANDS:
    return f'means of {most} repeats'
  return f'{most} repeats, band: 95 % t-interval of the mean'


def either(counts: Iterable[int]) -> str:
  """Names the numbers of repeats that curves of one figure have."""
  return ' or '.join(map(str, sorted(counts)))


def plot_series(
  axes,
  rows,
  value,
  label_fn=aggregators.label,
  x_per_round: Optional[Mapping[str, float]] = None,
) -> None:
  """Draws one curve for each arm, with its band if there are few.

  Args:
    axes: Matplotlib axes, whose scale says how to average.
    rows: Joined round rows.
    value: As for `series`.
    label_fn: Turns an arm into a legend entry.
    x_per_round: For each arm how far a round goes along the axis; None for an
      axis of rounds.
  """
  # Styles follow the arms of all rows, so that panels agree.
  looks = palette.curves(arms.of(r['config']) for r in rows)
  is_log = axes.get_yscale() == 'log'
  for arm, curve in series(rows, value, is_log).items():
    rounds, means, ends, count = curve
    look = looks[arm]
    if x_per_round is not None:
      rounds = rounds * x_per_round[arm]
    axes.plot(rounds, means, label=label_fn(arm), **look)
    if count > 1 and len(looks) <= _MOST_BANDS:
      axes.fill_between(
        rounds, *ends, color=look['color'], alpha=0.2, linewidth=0
      )
  axes.xaxis.set_major_locator(
    ticker.MaxNLocator(steps=(1, 2, 5, 10), integer=x_per_round is None)
  )


def finish(figure, title: str, note: str):
  """Writes `title (note)` above a figure, or the note alone; returns it."""
  figure.suptitle(f'{title} ({note})' if title else note, fontsize='medium')
  figure.tight_layout()
  return figure


def legend_below(figure, entries_in_a_line: int):
  """Puts one legend below all panels of a finished figure, which grows by it.

  Args:
    figure: A figure that `finish` has returned. One of its axes has all labels.
    entries_in_a_line: Columns of the legend.
  """
  entries = [axes.get_legend_handles_labels() for axes in figure.axes]
  handles, labels = max(entries, key=lambda entry: len(entry[1]))
  inches = 0.2 + 0.2 * -(-len(labels) // entries_in_a_line)
  height = figure.get_figheight() + inches
  figure.set_figheight(height)
  figure.legend(
    handles,
    labels,
    fontsize='small',
    ncol=entries_in_a_line,
    loc='lower center',
  )
  figure.tight_layout(rect=(0, inches / height, 1, 1))
  return figure


def data_of(figure) -> List[Any]:
  """What a figure shows, as JSON holds it, whichever Matplotlib lays it out.

  Returns:
    For each of the axes a dictionary with its labels (`text`), its two scales
    (`scales`), the lines in their order, each its entry in the legend and its
    points [points, 2] (`lines`), and the outlines of areas and bars, each its
    vertices [vertices, 2] (`outlines`). Coordinates have nine digits.
  """
  return [
    dict(
      text=[axes.get_title(), axes.get_xlabel(), axes.get_ylabel()],
      scales=[axes.get_xscale(), axes.get_yscale()],
      lines=[
        # Labels that Matplotlib makes up begin with an underscore.
        [re.sub('^_.*', '', line.get_label()), _points(line.get_xydata())]
        for line in axes.lines
      ],
      outlines=[
        _points(path.vertices)
        for collection in axes.collections
        for path in collection.get_paths()
      ],
    )
    for axes in figure.axes
  ]


def _points(vertices) -> List[List[float]]:
  return [[float(f'{x:.8e}') for x in v] for v in np.asarray(vertices)]


def differences(found: Sequence[Any], wanted: Sequence[Any]) -> List[str]:
  """How two results of `data_of` differ, as short sentences.

  Numbers are the same if they differ by at most `TOLERANCE` of the wanted one
  or, on an axis that is not logarithmic, of the largest on it: processors round
  differently, and a difference of two accuracies near 0 keeps their errors.

  Args:
    found: What one figure shows.
    wanted: What the other does.

  Returns:
    A sentence for each thing that differs; none if the figures show the same.
  """
  if len(found) != len(wanted):
    return [f'{len(found)} axes, not {len(wanted)}']
  said = []
  for index, (one, other) in enumerate(zip(found, wanted)):
    for name in ('text', 'scales'):
      if one[name] != other[name]:
        said.append(f'axes {index}: {name} {one[name]}, not {other[name]}')
    labels, wanted_labels = (
      [label for label, _ in a['lines']] for a in (one, other)
    )
    if labels != wanted_labels:
      said.append(f'axes {index}: lines {labels}, not {wanted_labels}')
      continue
    if len(one['outlines']) != len(other['outlines']):
      said.append(f'axes {index}: another number of areas and bars')
      continue
    slack = _slack(other)
    for (label, points), (_, wanted_points) in zip(
      one['lines'], other['lines']
    ):
      if not _are_equal(points, wanted_points, slack):
        said.append(f'axes {index}: other points of line {label!r}')
    for number, (points, wanted_points) in enumerate(
      zip(one['outlines'], other['outlines'])
    ):
      if not _are_one_outline(points, wanted_points, slack):
        said.append(f'axes {index}: another outline {number}')
  return said


def _slack(axes) -> np.ndarray:
  """The absolute tolerance of each coordinate, [2]."""
  shown = [points for _, points in axes['lines']] + axes['outlines']
  points = np.concatenate([np.reshape(s, [-1, 2]) for s in shown] or [[[0, 0]]])
  largest = np.max(np.abs(points), axis=0, where=np.isfinite(points), initial=0)
  return TOLERANCE * np.where(np.array(axes['scales']) == 'log', 0, largest)


def _are_equal(points, wanted, slack) -> bool:
  points, wanted = np.asarray(points, float), np.asarray(wanted, float)
  if points.shape != wanted.shape:
    return False
  allowed = slack + TOLERANCE * np.abs(wanted)
  both_nan = np.isnan(points) & np.isnan(wanted)
  same = (points == wanted) | both_nan | (np.abs(points - wanted) <= allowed)
  return bool(np.all(same))


def _are_one_outline(points, wanted, slack) -> bool:
  """Whether each vertex has an equal one in the other outline.

  Versions of Matplotlib begin an outline at different vertices and close it or
  not.
  """
  points = np.reshape(points, [-1, 1, 2])
  wanted = np.reshape(wanted, [1, -1, 2])
  allowed = slack + TOLERANCE * np.abs(wanted)
  near = np.all(np.abs(points - wanted) <= allowed, axis=-1)
  return bool(np.all(np.any(near, axis=0)) and np.all(np.any(near, axis=1)))


def data_in(path: str) -> List[Any]:
  """The `data_of` the figure that a PNG file was written from."""
  with Image.open(path) as image:
    return json.loads(image.info[_DATA])


def save(figure, path: str) -> str:
  """Writes a figure, closes it and returns the path.

  Args:
    figure: The figure.
    path: In a folder that is there; its suffix says how to write. A PNG file
      carries `data_of(figure)`, by which a test tells whether it shows what its
      rows say. A PNG file that shows the same already and looks alike is left
      as it is.
  """
  stem, suffix = os.path.splitext(path)
  options = {}
  if suffix == '.png':
    info = PngImagePlugin.PngInfo()
    info.add_text('Software', f'Matplotlib {matplotlib.__version__}')
    data = json.dumps(data_of(figure), separators=(',', ':'))
    info.add_text(_DATA, data, zip=True)
    options = dict(pil_kwargs=dict(pnginfo=info))
  # An old picture stays whole until the new one is.
  temporary = f'{stem}.tmp{suffix}'
  figure.savefig(temporary, dpi=150, **options)
  plt.close(figure)
  if suffix == '.png' and _show_the_same(temporary, path):
    os.remove(temporary)
  else:
    os.replace(temporary, path)
  return path


def _show_the_same(new: str, old: str) -> bool:
  try:
    return not differences(data_in(new), data_in(old)) and look_alike(new, old)
  except (OSError, KeyError, ValueError):
    return False  # There is no old picture, or it carries no data.


def look_alike(*paths: str) -> bool:
  """Whether two pictures are equal, up to a pixel to any side.

  Processors round differently. That moves a shade of grey here and there, and
  a line that lies between two pixels to the other one.
  """
  one, other = (_pixels(path) for path in paths)
  return (
    one.shape == other.shape
    and _lies_within_neighbours(one, other)
    and _lies_within_neighbours(other, one)
  )


def _pixels(path: str) -> np.ndarray:
  with Image.open(path) as image:
    return np.asarray(image.convert('RGB'), np.int16)


def _lies_within_neighbours(one: np.ndarray, other: np.ndarray) -> bool:
  window = dict(size=(3, 3, 1), mode='nearest')
  lowest = ndimage.minimum_filter(other, **window) - _SHADES
  highest = ndimage.maximum_filter(other, **window) + _SHADES
  return bool(np.all((lowest <= one) & (one <= highest)))

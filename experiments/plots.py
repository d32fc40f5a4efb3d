# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Figures drawn from result rows, never from running anything.

Functions take rows as `results.read` returns them and draw on axes or return a
figure. Colours are those of Okabe and Ito (2008), which colour-blind readers
can tell apart; line styles differ too.
"""

import collections
import math
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import matplotlib
import numpy as np
import scipy.stats

from experiments import baselines

matplotlib.use('Agg')  # No display is needed, and none is looked for.
from matplotlib import pyplot as plt  # pylint: disable=g-import-not-at-top

Row = Mapping[str, Any]

COLOURS = ('#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9',
           '#000000', '#999933')
_STYLES = ('-', '--', '-.', ':')
_CONFIDENCE = 0.95


def style(index: int) -> Dict[str, Any]:
  """Colour and line style of the curve number `index`."""
  return dict(color=COLOURS[index % len(COLOURS)],
              linestyle=_STYLES[index % len(_STYLES)])


def label(aggregator: str, num_clients: Optional[int] = None) -> str:
  """A legend entry for an aggregator text, with bits where they are known."""
  scheme = baselines.parse(aggregator)
  settings = dict(scheme.settings)
  if scheme.name == 'plain_mean':
    return 'plain mean, 32-bit floats'
  if scheme.name == 'fixed_range':
    return (f'fixed range $\\pm${settings["clip_range"]:g}, '
            f'{settings["bits"]} bits' +
            (', rotated' if settings['rotate'] else ''))
  if scheme.name == 'autotuned':
    text = f'autotuned, {_bits(settings["modulus"])} bits'
    if settings['wrap_probability'] is not None:
      text += f', $\\alpha$={settings["wrap_probability"]:g}'
    if settings.get('rounding') == 'dither':
      text += ', dither'
    return text
  given = aggregator.partition(':')[2].replace(',', ', ')
  name = scheme.name.replace('_', ' ')
  return f'{name} ({given})' if given else name


def _bits(modulus: int) -> str:
  return f'{math.log2(modulus):.3g}'


def alpha_label(aggregator: str) -> str:
  """As the paper's figures: alpha and the ratio sigma/t that it stands for."""
  alpha = baselines.parse(aggregator).settings.get('wrap_probability')
  if alpha is None:
    return label(aggregator)
  # t is where a normal variable of spread sigma leaves [-t, t] with this odds.
  ratio = 1 / scipy.stats.norm.isf(alpha / 2)
  return f'$\\alpha$={alpha:.2g} ($\\sigma/t$={ratio:.2f})'


def series(
    rows: Sequence[Row], value: Callable[[Row], Optional[float]]
) -> Dict[str, Tuple[np.ndarray, np.ndarray, np.ndarray, int]]:
  """Averages a value over repeats, by aggregator and round.

  Args:
    rows: Joined round rows.
    value: Takes a row; None where the row has no such value.

  Returns:
    For each aggregator text, in the order of appearance: rounds, means, half
    widths of the 95 % t-interval over repeats (0 for one repeat), and the
    number of repeats.
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
    means = np.array([np.mean(by_round[r]) for r in rounds])
    widths = np.array([interval_width(by_round[r]) for r in rounds])
    out[aggregator] = (rounds, means, widths,
                       max(len(v) for v in by_round.values()))
  return out


def interval_width(values: Sequence[float]) -> float:
  """Half width of the 95 % t-interval of the mean; 0 for one value."""
  count = len(values)
  if count < 2:
    return 0.0
  quantile = scipy.stats.t.ppf((1 + _CONFIDENCE) / 2, count - 1)
  return float(quantile * np.std(values, ddof=1) / math.sqrt(count))


def repeats_note(num_repeats: int) -> str:
  """What a caption says about repeats."""
  if num_repeats == 1:
    return '1 run each'
  return f'{num_repeats} repeats, band: 95 % t-interval of the mean'


def plot_series(axes, rows, value, label_fn=label, first=0) -> int:
  """Draws one curve with its band for each aggregator.

  Args:
    axes: Matplotlib axes.
    rows: Joined round rows.
    value: As for `series`.
    label_fn: Turns an aggregator text into a legend entry.
    first: Number of the first curve's style.

  Returns:
    The largest number of repeats, for the caption.
  """
  most = 0
  # Styles follow the aggregators of all rows, so that panels agree.
  order = list(collections.OrderedDict.fromkeys(
      r['config']['aggregator'] for r in rows))
  for aggregator, (rounds, means, widths, count) in series(rows, value).items():
    look = style(first + order.index(aggregator))
    axes.plot(rounds, means, label=label_fn(aggregator), **look)
    if count > 1:
      axes.fill_between(rounds, means - widths, means + widths,
                        color=look['color'], alpha=0.2, linewidth=0)
    most = max(most, count)
  return most


def measurement(name: str) -> Callable[[Row], Optional[float]]:
  """A `value` for `series`: the aggregator measurement of that name."""
  def value(row):
    for key, number in row.get('aggregator', {}).items():
      if key.split('/')[-1] == name:
        return number
    return None
  return value


def accuracy(row: Row) -> Optional[float]:
  """A `value` for `series`: test accuracy in percent."""
  share = row.get('test_accuracy')
  return None if share is None else 100 * share


def training_figure(rows: Sequence[Row], title: str = ''):
  """Accuracy and bin size by round, side by side."""
  figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
  repeats = plot_series(left, rows, accuracy)
  left.set(xlabel='round', ylabel='test accuracy (%)')
  left.grid(alpha=0.3)
  left.legend(fontsize='small')
  plot_series(right, rows, measurement('bin_size'))
  right.set(xlabel='round', ylabel='bin size (units of the summed values)',
            yscale='log')
  right.grid(alpha=0.3, which='both')
  note = repeats_note(max(repeats, 1))
  figure.suptitle(f'{title} ({note})' if title else note, fontsize='medium')
  figure.tight_layout()
  return figure


def save(figure, path: str) -> str:
  """Writes a figure as its suffix says, closes it and returns the path."""
  figure.savefig(path, dpi=150, metadata={'Software': None}
                 if path.endswith('.png') else None)
  plt.close(figure)
  return path

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

from experiments.common import aggregators
from experiments.training import final_accuracy

matplotlib.use('Agg')  # No display is needed, and none is looked for.
from matplotlib import pyplot as plt  # pylint: disable=g-import-not-at-top
from matplotlib import ticker  # pylint: disable=g-import-not-at-top

Row = Mapping[str, Any]

COLOURS = (
  '#0072B2',
  '#D55E00',
  '#009E73',
  '#CC79A7',
  '#E69F00',
  '#56B4E9',
  '#000000',
  '#999933',
)
_STYLES = ('-', '--', '-.', ':')
# Entries of a legend that leave room for the curves beside it.
_MOST_INSIDE = 8
# Room for a legend beside the axes.
_LEGEND_INCHES = 3
# More bands than this hide each other.
_MOST_BANDS = 6


def style(index: int) -> Dict[str, Any]:
  """Colour and line style of the curve number `index`; none twice in 32."""
  colour_cycle, colour = divmod(index, len(COLOURS))
  return dict(
    color=COLOURS[colour],
    linestyle=_STYLES[(colour + colour_cycle) % len(_STYLES)],
  )


def add_legend(axes) -> None:
  """A legend inside the axes, or to their right if it would hide curves."""
  outside = {}
  if len(axes.get_legend_handles_labels()[1]) > _MOST_INSIDE:
    outside = dict(loc='center left', bbox_to_anchor=(1.02, 0.5))
  axes.legend(fontsize='small', **outside)


def label(aggregator: str) -> str:
  """A legend entry for an aggregator text, with bits where they are known."""
  scheme = aggregators.parse(aggregator)
  settings = dict(scheme.settings)
  if scheme.name == 'plain_mean':
    return 'plain mean, 32-bit floats'
  if scheme.name == 'fixed_range':
    return (
      f'fixed range $\\pm${settings["clip_range"]:g}, '
      f'{settings["bits"]} bits' + (', rotated' if settings['rotate'] else '')
    )
  if scheme.name == 'autotuned':
    text = f'autotuned, {_bits(settings["modulus"])} bits'
    if settings['wrap_probability'] is not None:
      text += f', $\\alpha$={settings["wrap_probability"]:g}'
    if settings.get('rounding') == 'dither':
      text += ', dither'
    if 'drift=' in aggregator:
      text += f', drift {settings["drift"]:g}'
    return text
  given = aggregator.partition(':')[2].replace(',', ', ')
  name = scheme.name.replace('_', ' ')
  return f'{name} ({given})' if given else name


def _bits(modulus: int) -> str:
  return f'{math.log2(modulus):.3g}'


def alpha_label(aggregator: str) -> str:
  """As the paper's figures: alpha and the ratio sigma/t that it stands for."""
  alpha = aggregators.parse(aggregator).settings.get('wrap_probability')
  if alpha is None:
    return label(aggregator)
  # t is where a normal variable of spread sigma leaves [-t, t] with this odds.
  ratio = 1 / scipy.stats.norm.isf(alpha / 2)
  return f'$\\alpha$={alpha:.2g} ($\\sigma/t$={ratio:.2f})'


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
    widths = np.array([final_accuracy.interval_width(s) for s in samples])
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


def plot_series(axes, rows, value, label_fn=label) -> None:
  """Draws one curve for each aggregator, with its band if there are few.

  Args:
    axes: Matplotlib axes, whose scale says how to average.
    rows: Joined round rows.
    value: As for `series`.
    label_fn: Turns an aggregator text into a legend entry.
  """
  # Styles follow the aggregators of all rows, so that panels agree.
  order = list(
    collections.OrderedDict.fromkeys(r['config']['aggregator'] for r in rows)
  )
  is_log = axes.get_yscale() == 'log'
  for aggregator, curve in series(rows, value, is_log).items():
    rounds, means, ends, count = curve
    look = style(order.index(aggregator))
    axes.plot(rounds, means, label=label_fn(aggregator), **look)
    if count > 1 and len(order) <= _MOST_BANDS:
      axes.fill_between(
        rounds, *ends, color=look['color'], alpha=0.2, linewidth=0
      )
  axes.xaxis.set_major_locator(
    ticker.MaxNLocator(steps=(1, 2, 5, 10), integer=True)
  )


def measurement(name: str) -> Callable[[Row], Optional[float]]:
  """A `value` for `series`: the aggregator measurement of that name."""

  def value(row):
    for key, number in row.get('aggregator', {}).items():
      if key.split('/')[-1] == name:
        return number
    return None

  return value


def tuned_bin_size(row: Row) -> Optional[float]:
  """A `value` for `series`: the bin size of rounds that do not calibrate."""
  # A calibration runs at a ladder of bins; the state's one is not used.
  if measurement('calibrating')(row):
    return None
  return measurement('bin_size')(row)


def training_figure(rows: Sequence[Row], title: str = ''):
  """Accuracy and bin size by round, side by side."""
  figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
  plot_series(left, rows, final_accuracy.percent)
  left.set(xlabel='round', ylabel='test accuracy (%)')
  left.grid(alpha=0.3)
  add_legend(left)
  right.set(
    xlabel='round',
    ylabel='bin size (units of the summed values)',
    yscale='log',
  )
  plot_series(right, rows, tuned_bin_size)
  right.grid(alpha=0.3, which='both')
  note = repeats_note(rows)
  figure.suptitle(f'{title} ({note})' if title else note, fontsize='medium')
  figure.tight_layout()
  return figure


def accuracy_figure(rows: Sequence[Row], *, zoom: bool, title: str = ''):
  """Accuracy by round with alpha and sigma/t in the legend.

  The paper's figures 2 and 3.

  Args:
    rows: Joined round rows.
    zoom: Whether to show only the later half of the rounds and the accuracies
      that occur there.
    title: Put above, before the number of repeats.
  """
  curves = series(rows, final_accuracy.percent)
  legend_inches = _LEGEND_INCHES if len(curves) > _MOST_INSIDE else 0
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
    return alpha_label(aggregator) + below

  plot_series(axes, rows, final_accuracy.percent, label_fn=label_fn)
  axes.set(xlabel='round', ylabel='test accuracy (%)')
  axes.grid(alpha=0.3)
  add_legend(axes)
  note = repeats_note(rows)
  figure.suptitle(f'{title} ({note})' if title else note, fontsize='medium')
  figure.tight_layout()
  return figure


def tuning_figure(rows: Sequence[Row], title: str = ''):
  """Bin size and estimated spread of an entry of the sum, by round.

  Args:
    rows: Joined round rows; those of aggregators without an estimate are left
      out.
    title: Put above, before the number of repeats.

  Raises:
    ValueError: If that leaves none.
  """
  rows = [row for row in rows if measurement('sum_stddev')(row) is not None]
  if not rows:
    raise ValueError(
      '`rows` must hold some of an aggregator that estimates the spread, such '
      'as autotuned, found none.'
    )
  figure, panels = plt.subplots(1, 2, figsize=(10, 4), sharex=True)
  values = (
    (tuned_bin_size, 'bin size (units of the summed values)'),
    (
      measurement('sum_stddev'),
      'estimated spread of the sum (same units)',
    ),
  )
  for axes, (value, text) in zip(panels, values):
    axes.set(xlabel='round', ylabel=text, yscale='log')
    plot_series(axes, rows, value, label_fn=alpha_label)
    axes.grid(alpha=0.3, which='both')
  add_legend(panels[-1])
  note = repeats_note(rows)
  figure.suptitle(f'{title} ({note})' if title else note, fontsize='medium')
  figure.tight_layout()
  return figure


# Families of aggregators share a marker and a colour in scatter plots.
_FAMILIES = (
  ('autotuned', 'this package', 'o'),
  ('plain_mean', 'plain mean, 32-bit floats', 's'),
  ('fixed_range', 'fixed range', 'v'),
  ('secure_aggregator', 'TFF secure_aggregator', 'D'),
  ('compression_aggregator', 'TFF compression_aggregator (not secure)', '^'),
  ('ddp_secure_aggregator', 'TFF ddp_secure_aggregator, no noise', 'P'),
  ('rotated_quantization', 'rotated quantization (not secure)', 'X'),
  ('kashin', 'Kashin coefficients, same fit', '*'),
)
# The same colour as without, but hollow.
_DITHERED = ' with dither'


def _family(aggregator: str) -> str:
  """The family of an aggregator text, which may hold places for bits."""
  is_dither = 'rounding=dither' in aggregator
  return aggregator.partition(':')[0] + (_DITHERED if is_dither else '')


def _families(present) -> List[str]:
  """The families among `present`, in the order of legends."""
  names = [name + end for name, _, _ in _FAMILIES for end in ('', _DITHERED)]
  return [name for name in names if name in present]


def family_style(name: str) -> Dict[str, Any]:
  """Label, marker and colour of an aggregator's family."""
  plain = name.removesuffix(_DITHERED)
  index = [family for family, _, _ in _FAMILIES].index(plain)
  _, text, marker = _FAMILIES[index]
  look = dict(label=text, marker=marker, color=COLOURS[index])
  if plain != name:
    look.update(label=text + _DITHERED, markerfacecolor='white')
  return look


def accuracy_by_bytes_figure(rows: Sequence[Row], title: str = ''):
  """Final accuracy (`final_accuracy`) against bytes per client and round."""
  figure, axes = plt.subplots(figsize=(7, 4.5))
  points = final_accuracy.by_aggregator(rows)
  by_family = {}
  for point in points:
    by_family.setdefault(_family(point['aggregator']), []).append(point)
  for family in _families(by_family):
    mine = by_family[family]
    axes.errorbar(
      [p['bytes_per_client'] for p in mine],
      [p['mean'] for p in mine],
      [p['interval'] for p in mine],
      linestyle='none',
      capsize=3,
      **family_style(family),
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
  figure.suptitle(f'{title} ({note})' if title else note, fontsize='medium')
  figure.tight_layout()
  return figure


def wrapped_normal_figure(sigma_over_t: float = 0.5):
  """A normal density and the same wrapped to [-t, t]: the paper's figure 1.

  Args:
    sigma_over_t: Spread of the normal in units of t.
  """
  figure, axes = plt.subplots(figsize=(6.5, 4))
  x = np.linspace(-2, 2, 2001)
  density = scipy.stats.norm.pdf(x, scale=sigma_over_t)
  inside = np.abs(x) <= 1
  wraps = np.arange(-3, 4)
  wrapped = scipy.stats.norm.pdf(
    x[:, np.newaxis] + 2 * wraps, scale=sigma_over_t
  ).sum(axis=1)
  axes.plot(x, density, label='normal', **style(0))
  axes.plot(
    x[inside], wrapped[inside], label='wrapped to $[-t, t]$', **style(1)
  )
  axes.fill_between(
    x,
    density,
    where=~inside,
    color=COLOURS[0],
    alpha=0.3,
    linewidth=0,
    label='tails that wrap',
  )
  axes.fill_between(
    x[inside],
    density[inside],
    wrapped[inside],
    color=COLOURS[1],
    alpha=0.3,
    linewidth=0,
    label='where they end up',
  )
  for edge in (-1, 1):
    axes.axvline(edge, color='black', linewidth=0.8, linestyle=':')
  axes.set(
    xlabel='value of an entry of the rotated sum (units of $t$)',
    ylabel='density',
    ylim=(0, None),
    title=f'$\\sigma/t$ = {sigma_over_t:g}: an entry wraps with '
    f'probability {2 * scipy.stats.norm.sf(1 / sigma_over_t):.2g}',
  )
  axes.legend(fontsize='small')
  figure.tight_layout()
  return figure


def lattice_limit(bits, num_clients: int):
  """Least error of ideal lattices under a modular sum, as a share of energy.

  Each client's quantization to a fine lattice adds an error energy e per
  coordinate; the sum of variance s + n e (s from the signal) must fit into the
  cell of a coarse lattice of 4^bits times the fine one's size, whose second
  moment is 4^bits e at best (both lattices ideal, Zamir 2014). The best linear
  decoding then leaves n e s / (s + n e), that is n / 4^bits of s.

  Args:
    bits: Bits per coordinate, number or array.
    num_clients: Number of summands.

  Returns:
    Error energy over the energy of the true sum, at most 1.
  """
  return np.minimum(1.0, num_clients / 4.0 ** np.asarray(bits))


def nmse_figure(rows: Sequence[Row], title: str = ''):
  """Error of the mean against bits per coordinate, a panel per kind of vector.

  The median over the rounds after the tuner has settled, and over repeats. Bits
  are those of the whole payload for each entry of the vector that is averaged,
  so that padding and redundant coefficients count.

  Args:
    rows: Joined rows of `mean_estimation.run`.
    title: Put above.
  """
  kinds = list(
    collections.OrderedDict.fromkeys(r['config']['vectors'] for r in rows)
  )
  columns = min(3, len(kinds))
  lines = -(-len(kinds) // columns)
  figure, panels = plt.subplots(
    lines,
    columns,
    figsize=(4.2 * columns, 3.6 * lines),
    squeeze=False,
    sharey=True,
  )
  for axes in panels.flat[len(kinds) :]:
    axes.set_visible(False)
  limits, handles = [], {}
  for axes, kind in zip(panels.flat, kinds):
    mine = [
      r
      for r in rows
      if r['config']['vectors'] == kind
      and r['round'] > r['config']['settling_rounds']
    ]
    # What was not padded tells the length of the vectors themselves.
    length = min(
      8 * r['bytes_per_client'] / r['bits_per_coordinate'] for r in mine
    )
    points = {}
    for row in mine:
      name = _family(row['config']['aggregator'])
      bits = 8 * row['bytes_per_client'] / length
      points.setdefault(name, {}).setdefault(bits, []).append(row['nmse'])
    num_clients = mine[0]['config']['num_clients']
    for name in _families(points):
      bits = sorted(points[name])
      # Exact sums have an error of 0, which a logarithm cannot show.
      errors = [max(np.median(points[name][b]), 1e-14) for b in bits]
      (handles[name],) = axes.plot(
        bits, errors, linestyle='-', **family_style(name)
      )
      limits += bits
    grid = np.linspace(min(limits), min(16, max(limits)), 100)
    (handles['limit'],) = axes.plot(
      grid,
      lattice_limit(grid, num_clients),
      color='gray',
      linestyle=':',
      label='limit of ideal lattices',
    )
    axes.set(
      xlabel='bits sent per coordinate of the update',
      xlim=(0, 38),
      yscale='log',
      title=kind.replace('_', ' '),
    )
    axes.grid(alpha=0.3)
  for axes in panels[:, 0]:
    axes.set_ylabel('error energy / energy of the mean')
  figure.legend(
    handles=list(handles.values()),
    fontsize='small',
    ncol=3,
    loc='lower center',
  )
  repeats = len({r['config']['seed'] for r in rows})
  runs = '1 run' if repeats == 1 else f'{repeats} repeats'
  figure.suptitle(
    f'{title} ({runs} each, median over settled rounds)'.strip(),
    fontsize='medium',
  )
  legend_inches = 0.2 + 0.2 * -(-len(handles) // 3)
  figure.tight_layout(rect=(0, legend_inches / (3.6 * lines), 1, 1))
  return figure


def save(figure, path: str) -> str:
  """Writes a figure as its suffix says, closes it and returns the path."""
  figure.savefig(path, dpi=150)
  plt.close(figure)
  return path

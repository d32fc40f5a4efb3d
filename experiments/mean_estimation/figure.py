# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The figure of mean estimation: error against bits, from result rows."""

import collections
from typing import Any, Dict, Mapping, Sequence

from matplotlib import pyplot as plt
import numpy as np

from experiments.common import aggregators
from experiments.common import palette

Row = Mapping[str, Any]

# What a rotated fixed range adds to its family's name, and its look.
_ROTATED = {
  ', rotated, best known range': dict(markerfacecolor='white'),
  ', rotated, adaptive range': dict(markerfacecolor='white', linestyle='--'),
}


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


def curve(aggregator: str) -> str:
  """The curve of an aggregator: its family, and what rotated range it has.

  Ranges that are known beforehand are one curve, whatever they are.

  Args:
    aggregator: Text that may hold places for numbers.

  Returns:
    A name for the legend.
  """
  filled = aggregators.fill_in(aggregator, bits=8, largest=1.0)
  settings = aggregators.parse(filled).settings
  name = palette.family(aggregator)
  if not settings.get('rotate'):
    return name
  known, adaptive = _ROTATED
  return name + (adaptive if settings['clip_range'] is None else known)


def _style(name: str) -> Dict[str, Any]:
  for words, look in _ROTATED.items():
    if name.endswith(words):
      family = name.removesuffix(words)
      return {**palette.family_style(family), **look, 'label': name}
  return palette.family_style(name)


def _in_order(names) -> Sequence[str]:
  """As in other legends, what is rotated after what is not."""
  families = palette.families(name.partition(',')[0] for name in names)
  return sorted(
    names, key=lambda name: (families.index(name.partition(',')[0]), name)
  )


def errors_by_bits(
  rows: Sequence[Row], length: float
) -> Dict[str, Dict[float, float]]:
  """The error of each curve at each number of bits, the best if several are.

  Args:
    rows: Joined rows of settled rounds, of one kind of vectors.
    length: Entries of a vector.

  Returns:
    By `curve` and by bits sent for an entry, the least over aggregators of the
    median over rounds and repeats.
  """
  measured: Dict[Any, list] = {}
  for row in rows:
    text = row['config']['aggregator']
    bits = 8 * row['bytes_per_client'] / length
    measured.setdefault((text, bits), []).append(row['nmse'])
  found: Dict[str, Dict[float, float]] = {}
  for (text, bits), errors in measured.items():
    # Exact sums have an error of 0, which a logarithm cannot show.
    error = max(np.median(errors), 1e-14)
    points = found.setdefault(curve(text), {})
    points[bits] = min(points.get(bits, error), error)
  return found


def draw(rows: Sequence[Row], title: str = ''):
  """Error of the mean against bits per coordinate, a panel per kind of vector.

  The median over the rounds after the tuner has settled, and over repeats. Bits
  are those of the whole payload for each entry of the vector that is averaged,
  so that padding and redundant coefficients count.

  Args:
    rows: Joined rows of `estimation.Runner`.
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
    points = errors_by_bits(mine, length)
    num_clients = mine[0]['config']['num_clients']
    for name in _in_order(points):
      bits = sorted(points[name])
      (handles[name],) = axes.plot(
        bits,
        [points[name][b] for b in bits],
        **{'linestyle': '-', **_style(name)},
      )
      limits += bits
    grid = np.linspace(min(limits), min(16, max(limits)), 100)
    (handles['limit'],) = axes.plot(
      grid,
      lattice_limit(grid, num_clients),
      color=palette.NEUTRAL,
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

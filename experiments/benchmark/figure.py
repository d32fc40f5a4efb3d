# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The figure of the benchmark: how many times the reference each case takes."""

import itertools
from typing import Any, Dict, Sequence

from matplotlib import lines as mpl_lines
import matplotlib.pyplot as plt

from experiments.benchmark import summary
from experiments.common import palette
from experiments.common import plot_style

_TITLES = {
  'transform': 'Hadamard transform',
  'encode': "a client's encoding",
  'decode': "the server's decoding",
  'download encode': "the server's coding of the model",
  'download decode': "a client's decoding of the model",
  'round': 'a whole round',
  'download round': 'a download, simulated',
}


_COLUMNS = 2


def draw(rows: Sequence[Dict[str, Any]], title: str = ''):
  """Returns a figure with one panel for each group in `rows`.

  Args:
    rows: Of `timing.run`.
    title: Put above, before the number of repeats.
  """
  cells = summary.summarize(rows)
  groups = [g for g in _TITLES if any(cell['group'] == g for cell in cells)]
  num_rows = -(-len(groups) // _COLUMNS)
  figure, panels = plt.subplots(
    num_rows, _COLUMNS, figsize=(11, 4.4 * num_rows), squeeze=False
  )
  for group, axes in itertools.zip_longest(groups, panels.flat):
    if group is None:
      axes.set_axis_off()
      continue
    _panel(axes, group, [cell for cell in cells if cell['group'] == group])
  repeats = sorted({cell['repeats'] for cell in cells})
  counts = ' or '.join(str(count) for count in repeats)
  note = f'medians, with quartiles as bars; repeats: {counts}'
  return plot_style.finish(figure, title, note)


def _panel(axes, group, cells):
  """Draws ratios against the size, or for rounds against the case."""
  axes.set_title(_TITLES[group], fontsize='medium')
  axes.grid(alpha=0.3)
  compared = [cell for cell in cells if cell['case'] != cell['reference']]
  ratio = f'time over that of the reference, {cells[0]["reference"]}'
  if 'round' in group:
    _draw_by_case(axes, compared)
    axes.axvline(1.0, color='grey', linewidth=0.8)
    axes.set_xlim(left=0.0)
    axes.set_xlabel(ratio)
  else:
    _draw_by_size(axes, compared)
    axes.set_xscale('log', base=2)
    axes.set_yscale('log')
    axes.axhline(1.0, color='grey', linewidth=0.8)
    axes.set_xlabel('values in the vector')
    axes.set_ylabel(ratio)
    axes.legend(fontsize='x-small', loc='upper left')
    # Room for it above the lines.
    axes.set_ylim(top=10 * axes.get_ylim()[1])


def _ratios(cells):
  """Medians, and distances of the quartiles from them."""
  middle = [cell['per_reference'][1] for cell in cells]
  below = [m - c['per_reference'][0] for m, c in zip(middle, cells)]
  above = [c['per_reference'][2] - m for m, c in zip(middle, cells)]
  return middle, [below, above]


def _owner(case):
  """The library that a case is of, as `palette` names it."""
  owners = {'tff_autotune_secagg': 'autotuned', 'TFF': 'TFF', 'TFMOT': 'TFMOT'}
  return owners.get(case.split()[0], 'neutral')


def _looks(cases):
  """Colour and line style of each case, by the library that it is of."""
  by_owner = {}
  for case in cases:
    by_owner.setdefault(_owner(case), []).append(case)
  looks = {}
  for owner, members in by_owner.items():
    looks.update(zip(members, palette.shades(owner, len(members))))
  return looks


def _draw_by_size(axes, rows):
  """A line for each case."""
  lines = {}
  for row in rows:
    lines.setdefault(row['case'], []).append(row)
  looks = _looks(lines)
  for case, cells in lines.items():
    cells.sort(key=lambda row: row['dim'])
    middle, bars = _ratios(cells)
    axes.errorbar(
      [cell['dim'] for cell in cells],
      middle,
      yerr=bars,
      label=case,
      marker='o',
      markersize=3,
      capsize=2,
      **looks[case],
    )


def _draw_by_case(axes, rows):
  """A row for each case, a mark for each size of vector and round.

  Colours are those of the libraries, marks those of the sizes.
  """
  cases = list(dict.fromkeys(row['case'] for row in rows))
  sizes = {}
  for row in rows:
    sizes.setdefault((row['dim'], row['num_clients']), []).append(row)
  legend = []
  for index, ((dim, num_clients), cells) in enumerate(sorted(sizes.items())):
    look = dict(
      marker='os^Dv<>'[index % 7], markersize=5, linestyle='none', capsize=2
    )
    for cell in cells:
      middle, bars = _ratios([cell])
      row = cases.index(cell['case']) + 0.2 * (index - (len(sizes) - 1) / 2)
      axes.errorbar(
        middle,
        [row],
        xerr=bars,
        color=palette.COLOURS[_owner(cell['case'])],
        **look,
      )
    del look['capsize']
    legend.append(
      mpl_lines.Line2D(
        [],
        [],
        color=palette.NEUTRAL,
        label=f'{dim:,} values, {num_clients} clients',
        **look,
      )
    )
  axes.legend(handles=legend, fontsize='x-small', loc='upper right')
  axes.set_yticks(range(len(cases)), cases, fontsize='x-small')
  axes.invert_yaxis()

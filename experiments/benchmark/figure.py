# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The figure of the benchmark: how many times the reference each case takes."""

from typing import Any, Dict, Sequence

import matplotlib.pyplot as plt

from experiments.benchmark import summary
from experiments.common import palette
from experiments.common import plot_style

_TITLES = {
  'transform': 'Hadamard transform',
  'encode': "a client's encoding",
  'decode': "the server's decoding",
  'round': 'a whole round',
}


def draw(rows: Sequence[Dict[str, Any]], title: str = ''):
  """Returns a figure with one panel for each group in `rows`.

  Args:
    rows: Of `timing.run`.
    title: Put above, before the number of repeats.
  """
  cells = summary.summarize(rows)
  groups = [g for g in _TITLES if any(cell['group'] == g for cell in cells)]
  figure, panels = plt.subplots(
    1, len(groups), figsize=(4.6 * len(groups), 4.4), squeeze=False
  )
  for group, axes in zip(groups, panels[0]):
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
  if group == 'round':
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
  # Below the axes where marks are everywhere.
  below = dict(loc='upper center', bbox_to_anchor=(0.5, -0.16))
  axes.legend(fontsize='x-small', **(below if group == 'round' else {}))


def _ratios(cells):
  """Medians, and distances of the quartiles from them."""
  middle = [cell['per_reference'][1] for cell in cells]
  below = [m - c['per_reference'][0] for m, c in zip(middle, cells)]
  above = [c['per_reference'][2] - m for m, c in zip(middle, cells)]
  return middle, [below, above]


def _looks(cases):
  """Colour and line style of each case, by the library that it is of."""
  owners = {'tff_autotune_secagg': 'autotuned', 'TFF': 'TFF', 'TFMOT': 'TFMOT'}
  by_owner = {}
  for case in cases:
    owner = owners.get(case.split()[0], 'neutral')
    by_owner.setdefault(owner, []).append(case)
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
  """A row for each case, a mark for each size of vector and round."""
  cases = list(dict.fromkeys(row['case'] for row in rows))
  sizes = {}
  for row in rows:
    sizes.setdefault((row['dim'], row['num_clients']), []).append(row)
  looks = palette.shades('neutral', len(sizes))
  for index, ((dim, num_clients), cells) in enumerate(sorted(sizes.items())):
    middle, bars = _ratios(cells)
    axes.errorbar(
      middle,
      [cases.index(cell['case']) for cell in cells],
      xerr=bars,
      label=f'{dim:,} values, {num_clients} clients',
      marker='os^Dv<>'[index % 7],
      markersize=4,
      capsize=2,
      color=looks[index]['color'],
      linestyle='none',
    )
  axes.set_yticks(range(len(cases)), cases, fontsize='x-small')
  axes.invert_yaxis()

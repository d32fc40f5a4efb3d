# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What runs come to: excess loss at the end, rounds and bytes to a target."""

import collections
import math
from typing import Any, Dict, List, Mapping, Optional, Sequence

import numpy as np

from experiments.common import aggregators
from experiments.common import arms
from experiments.common import crossing
from experiments.common import result_rows
from experiments.common import t_interval
from experiments.common import tables

Row = Mapping[str, Any]

# What runs of one comparison may differ in.
_VARIED = ('aggregator', 'seed')

_WORDS = {
  'zeroing=false': '',
  'clipping=false': '',
  'clipping=true': '',
  'rotate=true': 'rotated',
  'rotate=false': '',
  'clip_range=auto': 'adaptive range',
  'prediction=true': 'predicted',
}


def label(text: str) -> str:
  """The text of an aggregator in words."""
  name, _, rest = text.partition(':')
  words = [name]
  for item in rest.split(',') if rest else ():
    key, _, value = item.partition('=')
    if key == 'bits':
      item = f'{value} bits'
    elif key == 'modulus':
      item = f'{math.log2(int(value)):.3g} bits'
    elif value.startswith('{max'):
      item = 'known range'
    words.append(_WORDS.get(item, item))
  if aggregators.parse(
    aggregators.fill_in(text, bits=1, largest=1.0)
  ).settings.get('clipping'):
    words.append('clipping')
  return ', '.join(word for word in words if word)


def rounds_to(rows: Sequence[Row], target: float) -> Optional[float]:
  """After how many rounds a run's excess loss is at most a target.

  Between evaluations the logarithm of the excess is taken to be linear.

  Args:
    rows: Of one run, in the order of its rounds.
    target: Positive.

  Returns:
    The first such time, or None if there is none.
  """
  points = ((row['round'], -math.log(row['excess_loss'])) for row in rows)
  return crossing.first_at_least(points, -math.log(target))


def by_aggregator(
  rows: Sequence[Row], targets: Sequence[float]
) -> List[Dict[str, Any]]:
  """What the runs of every aggregator come to, over its seeds.

  Args:
    rows: Joined round rows of one comparison.
    targets: Excess losses to reach.

  Returns:
    For each aggregator, in the order of appearance, a dict of `aggregator`,
    `repeats`, `bits_per_coordinate`, `bytes_per_client`, `round_bytes`,
    `rounds`; `excess_loss`, the geometric mean at the end, and `interval`, the
    two ends of its 95 % t-interval (of logarithms); `nmse`, the geometric mean
    over seeds of the median error in the last half of the rounds (0 if one is
    0); and `rounds_to`, for each target the mean of the rounds to it, or None
    if one of the runs does not reach it.

  Raises:
    ValueError: Runs differ in more than aggregator and seed, or in how far they
      have come.
  """
  runs = collections.OrderedDict()
  for row in rows:
    runs.setdefault(row['run'], []).append(row)
  result_rows.check_one_setting(rows, _VARIED)
  _check_ends(runs)
  return [
    _summary(name, group, targets)
    for name, group in arms.grouped(runs.values()).items()
  ]


def _check_ends(runs):
  for members in runs.values():
    config = members[0]['config']
    if members[-1]['round'] != config['num_rounds']:
      raise ValueError(
        f'`rows` must be of whole runs, found that {config["aggregator"]} with '
        f'seed {config["seed"]} has come to round {members[-1]["round"]} of '
        f'{config["num_rounds"]}: let it finish.'
      )


def _summary(name, group, targets):
  logs = [math.log(members[-1]['excess_loss']) for members in group]
  middle, width = float(np.mean(logs)), t_interval.half_width(logs)
  last = group[0][-1]
  times = [[rounds_to(members, t) for members in group] for t in targets]
  return dict(
    aggregator=name,
    repeats=len(group),
    bits_per_coordinate=last['bits_per_coordinate'],
    bytes_per_client=last['bytes_per_client'],
    round_bytes=last['round_bytes'],
    rounds=last['round'],
    excess_loss=math.exp(middle),
    interval=(math.exp(middle - width), math.exp(middle + width)),
    nmse=_geometric_mean([_late_error(members) for members in group]),
    rounds_to=[None if None in t else float(np.mean(t)) for t in times],
  )


def _late_error(members):
  half = members[-1]['round'] / 2
  return float(np.median([r['nmse'] for r in members if r['round'] > half]))


def _geometric_mean(values):
  if min(values) <= 0:
    return 0.0
  return float(np.exp(np.mean(np.log(values))))


def format_table(
  found: Sequence[Mapping[str, Any]], targets: Sequence[float]
) -> str:
  """`by_aggregator` as a Markdown table.

  A cell of a target has rounds, megabytes of a client's updates until then, and
  megabytes of its rounds in all: updates, models, keys.
  """
  heads = ['aggregator', 'bytes up', 'in all', 'seeds', 'excess loss']
  heads += ['95 % interval', 'error of the sum']
  heads += [f'to {target:.0e}: rounds, MB up, in all' for target in targets]
  lines = []
  for row in found:
    low, high = row['interval']
    cells = [
      label(row['aggregator']),
      f'{row["bytes_per_client"]:,}',
      f'{row["round_bytes"]:,}',
      row['repeats'],
      f'{row["excess_loss"]:.1e}',
      f'{low:.1e} to {high:.1e}' if row['repeats'] > 1 else '-',
      f'{row["nmse"]:.1e}',
    ]
    for time in row['rounds_to']:
      if time is None:
        cells.append('-')
        continue
      up, whole = (
        time * row[name] / 1e6 for name in ('bytes_per_client', 'round_bytes')
      )
      cells.append(f'{time:.0f}, {up:.2g}, {whole:.2g}')
    lines.append(cells)
  return tables.markdown(heads, lines)

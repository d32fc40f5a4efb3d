# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The demo: what aggregators cost and what accuracy they reach.

A thin layer over `sweep`: a closing table with the point of comparison named,
and one picture.
"""

import os
from typing import Any, Dict, Sequence

from experiments.common import plot_style
from experiments.common import result_rows
from experiments.common import results_file
from experiments.training import figures

PICTURE_NAME = 'demo.png'


def draw_picture(results_path: str, output_dir: str) -> str:
  """Draws accuracy and bin size by round; returns the path of the picture."""
  rows = result_rows.read(results_path)
  runs = results_file.ResultsFile(results_path).rows()
  data = next(r['data'] for r in runs if r['kind'] == 'run')
  return plot_style.save(
    figures.training_figure(rows, title=f'Federated averaging on {data}'),
    os.path.join(output_dir, PICTURE_NAME),
  )


def verdict(summary: Sequence[Dict[str, Any]]) -> str:
  """Compares each aggregator with the plain mean, if that is there.

  Args:
    summary: Rows of `TrainingSweep.summary`.

  Returns:
    A head, and a line for each aggregator that is not the plain mean; or ''.
  """
  plain = {s['seed']: s for s in summary if s['arm'] == 'plain_mean'}
  lines = ['Against plain_mean: accuracy, and bytes up and in all']
  for row in summary:
    base = plain.get(row['seed'])
    if base is None or row is base:
      continue
    points = 100 * (row['accuracy'] - base['accuracy'])
    up = base['bytes_per_client'] / row['bytes_per_client']
    text = f'{points:+.2f} points, 1/{up:.3g} up'
    if base['round_bytes'] and row['round_bytes']:
      text += f', 1/{base["round_bytes"] / row["round_bytes"]:.3g} in all'
    lines.append(f'  {row["arm"]}: {text}')
  return '\n'.join(lines) if len(lines) > 1 else ''

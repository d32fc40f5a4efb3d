# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The figure: error against bits at equal privacy, from result rows."""

from matplotlib import pyplot as plt

from experiments.common import palette
from experiments.common import plot_style


def draw(rows, title=''):
  """Returns a figure with one column for each cohort.

  Args:
    rows: Joined rows of `comparison.run`.
    title: Put above.
  """
  cohorts = sorted({row['num_clients'] for row in rows})
  figure, axes = plt.subplots(
    1,
    len(cohorts),
    figsize=(4.2 * len(cohorts), 4.0),
    sharey=True,
    squeeze=False,
  )
  for panel, cohort in zip(axes[0], cohorts):
    for scheme in ('distributed_dp', 'ddp_secure_aggregator'):
      points = sorted(
        (row['bits'], row['error_ratio'])
        for row in rows
        if (row['scheme'], row['num_clients']) == (scheme, cohort)
        and row['error_ratio'] is not None
      )
      if not points:
        continue
      bits, errors = zip(*points)
      panel.plot(bits, errors, **palette.family_style(scheme))
    panel.axhline(
      1.0, color=palette.NEUTRAL, linewidth=1, label='central Gaussian'
    )
    panel.set(
      title=f'clients: {cohort}',
      xlabel='bits per coordinate',
      yscale='log',
      # Above, next to nothing of the sum is left.
      ylim=(0.7, 30.0),
    )
    panel.grid(alpha=0.3)
  axes[0, 0].set_ylabel("error energy / central Gaussian's")
  axes[0, 0].legend(fontsize='small')
  dims = '/'.join(str(dim) for dim in sorted({row['dim'] for row in rows}))
  note = f'One round each, {dims} coordinates; equal real noise multiplier'
  return plot_style.finish(figure, title, note)

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The figure of the error table, from result rows."""

from matplotlib import pyplot as plt

from experiments.common import palette
from experiments.common import plot_style


def draw(rows, title=''):
  """Returns a figure with one column for each cohort.

  Args:
    rows: Joined rows of `table.run`.
    title: Put above, before the number of rounds.
  """
  cohorts = sorted({row['num_clients'] for row in rows})
  figure, axes = plt.subplots(
    2,
    len(cohorts),
    figsize=(3.2 * len(cohorts), 6.4),
    sharex=True,
    sharey='row',
    squeeze=False,
  )
  curves = [('automatic', None, 'stochastic'), ('dither', None, 'dither')]
  curves += [
    (rf'$\alpha$={alpha:g}', alpha, 'stochastic')
    for alpha in sorted(
      {r['wrap_probability'] for r in rows} - {None}, reverse=True
    )
  ]
  styles = palette.shades('autotuned', len(curves))
  for column, cohort in zip(axes.T, cohorts):
    for index, (label, alpha, rounding) in enumerate(curves):
      points = sorted(
        (
          row['modulus'],
          row['nmse'],
          row['predicted_nmse'],
          row['bits_above_bound'],
          2 * row['standard_error'],
        )
        for row in rows
        if row.get('fewest_clients') is None
        and (
          row['num_clients'],
          row['wrap_probability'],
          row['rounding'],
          row['clients'],
        )
        == (cohort, alpha, rounding, 'orthogonal')
      )
      if not points:
        continue
      modulus, measured, predicted, bits, bars = zip(*points)
      style = styles[index]
      dots = dict(color=style['color'], markersize=4)
      # A bar below 0 would leave the axis.
      below = [min(bar, 0.9 * nmse) for bar, nmse in zip(bars, measured)]
      column[0].errorbar(modulus, measured, [below, bars], fmt='o', **dots)
      column[0].loglog(modulus, predicted, **style, label=label)
      column[1].semilogx(modulus, bits, 'o-', **dots)
    column[0].set_title(f'clients: {cohort}', fontsize='medium')
    column[1].set_xlabel('modulus k')
    for panel in column:
      panel.set_xscale('log', base=2)
      panel.grid(alpha=0.3)
  axes[0, 0].set_ylabel('NMSE of the sum')
  axes[1, 0].set(ylabel=r'bits above NMSE = $n/k^2$', ylim=(-1, 6))
  axes[0, 0].legend(fontsize='x-small')
  rounds = [row['num_rounds'] for row in rows]
  note = (
    f'Dots: measured, mean of {min(rounds)} to {max(rounds)} rounds, bars: two'
    ' standard errors; lines: predicted'
  )
  return plot_style.finish(figure, title, note)

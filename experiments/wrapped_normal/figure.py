# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The figure of the wrapped normal: the paper's figure 1."""

from matplotlib import pyplot as plt
import numpy as np
import scipy.stats

from experiments.common import palette

_WRAPPED = palette.COLOURS['autotuned']
_LEFT, _RIGHT = '#994455', '#EECC66'  # Of no aggregator (Tol 2021).


def draw(sigma_over_t: float = 0.5, title: str = ''):
  """Draws a normal density and the same wrapped to [-t, t].

  Args:
    sigma_over_t: Standard deviation of the normal in units of t.
    title: Put above; by default what is shown.
  """
  figure, axes = plt.subplots(figsize=(6.5, 4))
  x = np.linspace(-2, 2, 2001)
  density = scipy.stats.norm.pdf(x, scale=sigma_over_t)
  inside = np.abs(x) <= 1
  wraps = np.arange(-3, 4)
  wrapped = scipy.stats.norm.pdf(
    x[:, np.newaxis] + 2 * wraps, scale=sigma_over_t
  ).sum(axis=1)
  axes.plot(x, density, label='normal', color=palette.NEUTRAL)
  axes.plot(
    x[inside],
    wrapped[inside],
    label='wrapped to $[-t, t]$',
    color=_WRAPPED,
  )
  for side, colour, text in ((-1, _LEFT, 'left'), (1, _RIGHT, 'right')):
    axes.fill_between(
      x,
      density,
      where=side * x >= 1,
      color=colour,
      alpha=0.4,
      linewidth=0,
      label=f'{text} tail, and where it ends up',
    )
    # One period further, on top of what is there.
    tail = scipy.stats.norm.pdf(x[inside] + 2 * side, scale=sigma_over_t)
    axes.fill_between(
      x[inside],
      density[inside],
      density[inside] + tail,
      color=colour,
      alpha=0.4,
      linewidth=0,
    )
  for edge in (-1, 1):
    axes.axvline(edge, color=palette.NEUTRAL, linewidth=0.8, linestyle=':')
  axes.set(
    xlabel='value of an entry of the rotated sum (units of $t$)',
    ylabel='density',
    ylim=(0, None),
    title=title
    or f'$\\sigma/t$ = {sigma_over_t:g}: an entry wraps with '
    f'probability {2 * scipy.stats.norm.sf(1 / sigma_over_t):.2g}',
  )
  axes.legend(fontsize='small')
  figure.tight_layout()
  return figure

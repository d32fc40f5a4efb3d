# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The figure of the forecast: one recorded series and what rules make of it."""

from typing import Sequence

from matplotlib import pyplot as plt
import numpy as np

from experiments.common import palette
from experiments.forecasting import replay

_COLOUR = palette.COLOURS['autotuned']
# The rule before it, of the same package.
_RULE_BEFORE = palette.shades('autotuned', 2)[1]['color']


def draw(setting: replay.Setting, sizes: Sequence[float], title: str = ''):
  """Returns a figure of sizes with forecast and bin size, above the errors.

  Args:
    setting: of all rounds.
    sizes: standard deviation of a coordinate of each round's sum.
    title: put above.
  """
  learned = replay.replay(setting, replay.Forecasting(setting), sizes)
  last_round = replay.replay(
    setting, replay.Smoothing(setting, gain=1.0, stddev=0.1), sizes
  )
  figure, (upper, lower) = plt.subplots(
    2, 1, figsize=(8, 6.4), sharex=True, height_ratios=(3, 2)
  )
  rounds = np.arange(1, len(sizes) + 1)
  upper.plot(
    rounds, sizes, 'o', color=palette.NEUTRAL, markersize=3, label='sum'
  )
  upper.plot(rounds, np.exp(learned.means), color=_COLOUR, label='forecast')
  band = [np.exp(learned.means + z * learned.stddevs) for z in (-2, 2)]
  upper.fill_between(
    rounds,
    *band,
    color=_COLOUR,
    alpha=0.2,
    linewidth=0,
    label='two standard deviations of it',
  )
  half_period = setting.modulus / 2 * np.exp(learned.log_bin_sizes)
  upper.plot(
    rounds,
    half_period,
    '--',
    color=palette.NEUTRAL,
    label=f'half the period, {setting.modulus // 2} bins',
  )
  upper.set_yscale('log')
  upper.set_ylabel('standard deviation of a coordinate')
  upper.legend(fontsize='small', ncols=2)
  lower.plot(
    rounds,
    last_round.errors,
    ':',
    color=_RULE_BEFORE,
    label='last round, margin 0.1',
  )
  lower.plot(rounds, learned.errors, color=_COLOUR, label='forecast')
  lower.set_yscale('log')
  lower.set_ylabel('error of the round (NMSE)')
  lower.set_xlabel('round')
  lower.legend(fontsize='small')
  for axes in (upper, lower):
    axes.grid(alpha=0.3)
  figure.suptitle(title, fontsize='medium')
  figure.tight_layout()
  return figure

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Draws medians and quartiles of the ratios that were timed.

  python -m experiments.benchmark.plot \
      --flagfile=experiments/benchmark/configs/figures/benchmark.flags
"""

from experiments.common import plot_binary


def _draw(rows, title):
  from experiments.benchmark import figure

  return figure.draw(rows, title)


main = plot_binary.main_of(_draw, ('group', 'case', 'seconds'), kind='time')

if __name__ == '__main__':
  plot_binary.run(main)

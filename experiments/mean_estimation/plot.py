# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Draws error against bits from the results of mean estimation.

  python -m experiments.mean_estimation.plot \
      --flagfile=experiments/mean_estimation/configs/figures/mean_estimation.flags
"""

from experiments.common import plot_binary


def _draw(rows, title):
  from experiments.mean_estimation import figure

  return figure.draw(rows, title)


main = plot_binary.main_of(_draw, ('nmse', 'bits_per_coordinate'))

if __name__ == '__main__':
  plot_binary.run(main)

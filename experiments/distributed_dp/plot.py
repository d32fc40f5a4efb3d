# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Draws error against bits at equal privacy.

  python -m experiments.distributed_dp.plot \
      --flagfile=experiments/distributed_dp/configs/figures/distributed_dp.flags
"""

from experiments.common import plot_binary


def _draw(rows, title):
  from experiments.distributed_dp import figure

  return figure.draw(rows, title)


main = plot_binary.main_of(_draw, ('scheme', 'bits', 'error_ratio'))

if __name__ == '__main__':
  plot_binary.run(main)

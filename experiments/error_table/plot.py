# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Draws NMSE and bits above the bound against the modulus.

  python -m experiments.error_table.plot \
      --flagfile=experiments/error_table/configs/figures/error_table.flags
"""

from experiments.common import plot_binary


def _draw(rows, title):
  from experiments.error_table import figure

  return figure.draw(rows, title)


main = plot_binary.main_of(_draw, ('modulus', 'nmse', 'bits_above_bound'))

if __name__ == '__main__':
  plot_binary.run(main)

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Draws how near to the optimum descents come. Runs nothing.

  python -m experiments.convergence.plot \
      --results=results/descent.jsonl --output=descent.png
"""

from experiments.common import plot_binary


def _draw(rows, title):
  from experiments.convergence import figure

  return figure.draw(rows, title)


main = plot_binary.main_of(_draw, ('excess_loss', 'round_bytes'))

if __name__ == '__main__':
  plot_binary.run(main)

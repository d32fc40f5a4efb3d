# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Draws accuracy under masks beside that of the simulation. Runs nothing.

  python -m experiments.deployment.plot \
      --results=experiments/deployment/results/digits.jsonl --output=digits.png
"""

from experiments.common import plot_binary


def _draw(rows, title):
  from experiments.deployment import figure

  return figure.accuracy_figure(rows, title)


main = plot_binary.main_of(_draw, ('test_accuracy', 'unmasked'))

if __name__ == '__main__':
  plot_binary.run(main)

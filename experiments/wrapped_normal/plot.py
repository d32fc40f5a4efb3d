# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Draws a normal density and its wrapped version: the paper's figure 1.

python -m experiments.wrapped_normal.plot --output=wrapped_normal.png
"""

from absl import flags

from experiments.common import plot_binary

_SIGMA_OVER_T = flags.DEFINE_float(
  'sigma_over_t', 0.5, 'Spread of the normal, in units of t.', 1e-3
)


def _draw(title):
  from experiments.wrapped_normal import figure

  return figure.draw(_SIGMA_OVER_T.value, title)


main = plot_binary.main_of(_draw, columns=None)

if __name__ == '__main__':
  plot_binary.run(main)

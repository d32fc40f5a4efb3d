# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Draws a normal density and its wrapped version: the paper's figure 1.

python -m experiments.wrapped_normal.plot --output=wrapped_normal.png
"""

from absl import app
from absl import flags

from experiments.common import quiet  # isort: skip. Before TensorFlow is imported.
from experiments.common import flag_groups
from experiments.common import plots

del quiet  # Imported for its side effect.

FLAGS = flags.FLAGS
flag_groups.define_plot({}, with_results=False)
flags.DEFINE_float(
  'sigma_over_t',
  0.5,
  'Spread of the normal, in units of t. Default: 0.5.',
  lower_bound=1e-3,
)


def main(argv):
  del argv  # Unused.
  flag_groups.require('output')
  print(
    plots.save(plots.wrapped_normal_figure(FLAGS.sigma_over_t), FLAGS.output)
  )


if __name__ == '__main__':
  app.run(main, flags_parser=flag_groups.parse)

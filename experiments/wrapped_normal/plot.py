# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Draws a normal density and its wrapped version: the paper's figure 1.

python -m experiments.wrapped_normal.plot --output=wrapped_normal.png
"""

from absl import app
from absl import flags

from experiments.common import quiet  # isort: skip. Before TensorFlow is imported.
from experiments.common import flag_groups
from experiments.common import plot_style
from experiments.wrapped_normal import figure

del quiet  # Imported for its side effect.

FLAGS = flags.FLAGS
flag_groups.define_picture()
flags.DEFINE_float(
  'sigma_over_t', 0.5, 'Spread of the normal, in units of t.', 1e-3
)


def main(argv):
  flag_groups.take_only_flags(argv)
  drawn = figure.draw(FLAGS.sigma_over_t, title=FLAGS.title)
  print(plot_style.save(drawn, FLAGS.output))


if __name__ == '__main__':
  flags.mark_flag_as_required('output')
  app.run(main)

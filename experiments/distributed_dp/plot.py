# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Draws error against bits at equal privacy.

  python -m experiments.distributed_dp.plot \
      --flagfile=experiments/distributed_dp/configs/figures/distributed_dp.flags
"""

from absl import app
from absl import flags

from experiments.common import quiet  # isort: skip. Before TensorFlow is imported.
from experiments.common import flag_groups
from experiments.common import plot_style
from experiments.distributed_dp import figure

del quiet  # Imported for its side effect.

FLAGS = flags.FLAGS
flag_groups.define_results()
flag_groups.define_picture()


def main(argv):
  flag_groups.take_only_flags(argv)
  rows = flag_groups.read_rows()
  print(plot_style.save(figure.draw(rows, title=FLAGS.title), FLAGS.output))


if __name__ == '__main__':
  flags.mark_flags_as_required(['results', 'output'])
  app.run(main)

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Draws medians and quartiles of the ratios that were timed.

  python -m experiments.benchmark.plot \
      --flagfile=experiments/benchmark/configs/figures/benchmark.flags
"""

from absl import app
from absl import flags

from experiments.common import quiet  # isort: skip. Before TensorFlow is imported.
from experiments.benchmark import figure
from experiments.common import flag_groups
from experiments.common import plot_style

del quiet  # Imported for its side effect.

FLAGS = flags.FLAGS
flag_groups.define_results()
flag_groups.define_picture()


def main(argv):
  flag_groups.take_only_flags(argv)
  rows = flag_groups.read_rows(kind='time')
  print(plot_style.save(figure.draw(rows, title=FLAGS.title), FLAGS.output))


if __name__ == '__main__':
  flags.mark_flags_as_required(['results', 'output'])
  app.run(main)

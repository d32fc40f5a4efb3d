# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Draws recorded sizes of sums with their forecast, band and bin size.

  python -m experiments.forecasting.plot \
      --flagfile=experiments/forecasting/configs/figures/forecasting.flags
"""

from absl import app
from absl import flags

from experiments.common import quiet  # isort: skip. Before TensorFlow is imported.
from experiments.common import flag_groups
from experiments.common import plot_style
from experiments.forecasting import figure
from experiments.forecasting import recorded

del quiet  # Imported for its side effect.

FLAGS = flags.FLAGS
flag_groups.define_results()
flag_groups.define_picture()
flags.DEFINE_integer('trace_seed', 1, 'Seed of the run to draw.')
flags.DEFINE_integer('trace_rounds', None, 'Rounds to draw; all if not given.')
flags.DEFINE_integer('replay_modulus', 256, 'Modulus of the replay.', 2)


def main(argv):
  flag_groups.take_only_flags(argv)
  rows = flag_groups.read_rows()
  sizes = recorded.sizes(rows)[FLAGS.trace_seed][: FLAGS.trace_rounds]
  setting = recorded.setting(rows, FLAGS.replay_modulus)
  drawn = figure.draw(setting, sizes, FLAGS.title)
  print(plot_style.save(drawn, FLAGS.output))


if __name__ == '__main__':
  flags.mark_flags_as_required(['results', 'output'])
  app.run(main)

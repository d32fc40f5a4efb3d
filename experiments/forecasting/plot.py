# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Draws recorded sizes of sums with their forecast, band and bin size.

  python -m experiments.forecasting.plot \
      --flagfile=experiments/forecasting/configs/figures/forecasting.flags
"""

from absl import app
from absl import flags

from experiments.common import quiet  # isort: skip. Before TensorFlow is imported.
from experiments.common import result_rows
from experiments.forecasting import figure
from experiments.forecasting import recorded

del quiet  # Imported for its side effect.

FLAGS = flags.FLAGS
flags.DEFINE_list('results', None, 'Rows of trainings.')
flags.DEFINE_integer('seed', 1, 'Of the run to draw.')
flags.DEFINE_integer('modulus', 256, 'To replay with.', lower_bound=2)
flags.DEFINE_integer('rounds', None, 'To draw; all if not given.')
flags.DEFINE_string('title', '', 'Written above.')
flags.DEFINE_string('output', None, 'Picture to write; its suffix says how.')


def main(argv):
  del argv  # Unused.
  rows = result_rows.read(*FLAGS.results)
  sizes = recorded.sizes(rows)[FLAGS.seed][: FLAGS.rounds]
  setting = recorded.setting(rows, FLAGS.modulus)
  figure.draw(setting, sizes, FLAGS.title).savefig(FLAGS.output, dpi=150)
  print(FLAGS.output)


if __name__ == '__main__':
  flags.mark_flags_as_required(['results', 'output'])
  app.run(main)

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Draws figures from the results of training runs. Runs nothing.

  python -m experiments.training.plot \
      --results=experiments/training/results/fashion_iid.jsonl \
      --figure=accuracy --output=fashion_iid.png
"""

import functools

from absl import app
from absl import flags

from experiments.common import quiet  # isort: skip. Before TensorFlow is imported.
from experiments.common import flag_groups
from experiments.common import plot_style
from experiments.training import figures

del quiet  # Imported for its side effect.

FLAGS = flags.FLAGS
FIGURES = {
  'training': figures.training_figure,
  'accuracy': functools.partial(figures.accuracy_figure, zoom=False),
  'accuracy_zoom': functools.partial(figures.accuracy_figure, zoom=True),
  'tuning': figures.tuning_figure,
  'accuracy_by_bytes': figures.accuracy_by_bytes_figure,
}
flag_groups.define_results()
flag_groups.define_picture()
flags.DEFINE_enum('figure', 'accuracy', list(FIGURES), 'What to draw.')


def main(argv):
  flag_groups.take_only_flags(argv)
  rows = flag_groups.read_rows()
  figure = FIGURES[FLAGS.figure](rows, title=FLAGS.title)
  print(plot_style.save(figure, FLAGS.output))


if __name__ == '__main__':
  flags.mark_flags_as_required(['results', 'output'])
  app.run(main)

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Draws figures from the results of training runs. Runs nothing.

  python -m experiments.training.plot \
      --results=experiments/training/results/fashion_iid.jsonl \
      --figure=accuracy_by_bytes \
      --output=experiments/training/figures/fashion_iid_bytes.png
"""

import functools

from absl import app
from absl import flags

from experiments.common import quiet  # isort: skip. Before TensorFlow is imported.
from experiments.common import flag_groups
from experiments.common import plots
from experiments.common import result_rows

del quiet  # Imported for its side effect.

FLAGS = flags.FLAGS
_FIGURES = {
  'training': plots.training_figure,
  'accuracy': functools.partial(plots.accuracy_figure, zoom=False),
  'accuracy_zoom': functools.partial(plots.accuracy_figure, zoom=True),
  'tuning': plots.tuning_figure,
  'accuracy_by_bytes': plots.accuracy_by_bytes_figure,
}
flag_groups.define_plot(
  {'figure': ('accuracy', list(_FIGURES), 'What to draw.')}
)


def main(argv):
  del argv  # Unused.
  flag_groups.require('results', 'output')
  rows = flag_groups.select_rows(result_rows.read(*FLAGS.results))
  path = plots.save(
    _FIGURES[FLAGS.figure](rows, title=FLAGS.title), FLAGS.output
  )
  print(path)


if __name__ == '__main__':
  app.run(main, flags_parser=flag_groups.parse)

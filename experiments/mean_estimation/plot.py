# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Draws error against bits from the results of mean estimation. Runs nothing.

  python -m experiments.mean_estimation.plot \
      --results=experiments/mean_estimation/results/mean_estimation.jsonl \
      --output=experiments/mean_estimation/figures/mean_estimation.png
"""

from absl import app
from absl import flags

from experiments.common import quiet  # isort: skip. Before TensorFlow is imported.
from experiments.common import flag_groups
from experiments.common import plots
from experiments.common import result_rows

del quiet  # Imported for its side effect.

FLAGS = flags.FLAGS
flag_groups.define_plot({})


def main(argv):
  del argv  # Unused.
  flag_groups.require('results', 'output')
  rows = flag_groups.select_rows(result_rows.read(*FLAGS.results))
  print(plots.save(plots.nmse_figure(rows, title=FLAGS.title), FLAGS.output))


if __name__ == '__main__':
  app.run(main, flags_parser=flag_groups.parse)

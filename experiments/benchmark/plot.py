# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Draws what run_benchmark wrote: medians and quartiles of ratios.

  python -m experiments.benchmark.plot \
      --input=experiments/benchmark/results/benchmark.jsonl \
      --output=experiments/benchmark/figures/benchmark.svg
"""

from absl import app
from absl import flags

from experiments.common import quiet  # isort: skip. Before TensorFlow is imported.
from experiments.benchmark import figure
from experiments.common import plots
from experiments.common import result_rows

del quiet  # Imported for its side effect.

FLAGS = flags.FLAGS
flags.DEFINE_string('input', None, 'JSON lines file.', required=True)
flags.DEFINE_string('output', None, 'Image file, .svg or .png.', required=True)


def main(argv):
  del argv  # Unused.
  rows = [
    row
    for row in result_rows.ResultsFile(FLAGS.input).rows()
    if row['kind'] == 'time'
  ]
  print(plots.save(figure.figure(rows), FLAGS.output))


if __name__ == '__main__':
  app.run(main)

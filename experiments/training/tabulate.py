# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Prints final accuracies from the results of training runs. Runs nothing.

  python -m experiments.training.tabulate \
      --results=experiments/training/results/fashion_iid.jsonl
"""

from absl import app
from absl import flags

from experiments.common import quiet  # isort: skip. Before TensorFlow is imported.
from experiments.common import flag_groups
from experiments.common import result_rows
from experiments.training import final_accuracy

del quiet  # Imported for its side effect.

FLAGS = flags.FLAGS
flag_groups.define_results()


def main(argv):
  del argv  # Unused.
  flag_groups.require('results')
  rows = flag_groups.select_rows(result_rows.read(*FLAGS.results))
  print(final_accuracy.format_table(final_accuracy.by_aggregator(rows)))


if __name__ == '__main__':
  app.run(main, flags_parser=flag_groups.parse)

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
from experiments.training import final_accuracy

del quiet  # Imported for its side effect.

flag_groups.define_results()


def main(argv):
  flag_groups.take_only_flags(argv)
  rows = flag_groups.read_rows()
  print(final_accuracy.format_table(final_accuracy.by_aggregator(rows)))


if __name__ == '__main__':
  flags.mark_flag_as_required('results')
  app.run(main)

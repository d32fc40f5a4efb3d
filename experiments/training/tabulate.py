# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Prints final accuracies from the results of training runs. Runs nothing.

  python -m experiments.training.tabulate \
      --results=experiments/training/results/fashion_iid.jsonl
"""

from absl import flags

from experiments.common import command_line
from experiments.common import flag_groups

flag_groups.define_results()
flag_groups.define_select()
flags.DEFINE_float(
  'last_part',
  1 / 6,
  'Share of the rounds, at the end, whose evaluations count.',
  lower_bound=1e-9,
  upper_bound=1.0,
)

FLAGS = flags.FLAGS


def main():
  from experiments.training import final_accuracy

  rows = flag_groups.read_rows(('test_accuracy',))
  found = final_accuracy.by_aggregator(rows, FLAGS.last_part)
  print(final_accuracy.format_table(found))


if __name__ == '__main__':
  command_line.run(main, required=['results'])

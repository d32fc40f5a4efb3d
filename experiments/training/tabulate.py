# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Prints final accuracies from the results of training runs. Runs nothing.

  python -m experiments.training.tabulate \
      --results=experiments/training/results/fashion_iid.jsonl
"""

from experiments.common import command_line
from experiments.common import flag_groups

flag_groups.define_results()
flag_groups.define_select()


def main():
  from experiments.training import final_accuracy

  rows = flag_groups.read_rows(('test_accuracy',))
  print(final_accuracy.format_table(final_accuracy.by_aggregator(rows)))


if __name__ == '__main__':
  command_line.run(main, required=['results'])

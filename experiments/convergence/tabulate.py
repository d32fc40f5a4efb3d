# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Prints a table of how near to the optimum descents come. Runs nothing.

python -m experiments.convergence.tabulate --results=results/descent.jsonl
"""

from absl import flags

from experiments.common import command_line
from experiments.common import flag_groups

FLAGS = flags.FLAGS
flag_groups.define_results()
flag_groups.define_select()
flag_groups.define_numbers(
  'targets', [1e-4, 1e-6, 1e-8], 'Excess losses to reach.'
)


def main():
  from experiments.convergence import table

  rows = flag_groups.read_rows(('excess_loss',))
  with command_line.user_errors():
    found = table.by_aggregator(rows, FLAGS.targets)
  print(table.format_table(found, FLAGS.targets))


if __name__ == '__main__':
  command_line.run(main, required=['results'])

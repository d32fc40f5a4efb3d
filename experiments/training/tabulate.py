# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Prints final accuracies from the results of training runs. Runs nothing.

  python -m experiments.training.tabulate \
      --results=experiments/training/results/fashion_iid.jsonl \
      --accuracies=0.8,0.84
"""

from absl import flags

from experiments.common import arms
from experiments.common import command_line
from experiments.common import flag_groups
from experiments.training import table_flags

FLAGS = flags.FLAGS


def main():
  from experiments.training import final_accuracy
  from experiments.training import rounds_to_accuracy

  accuracies = table_flags.accuracies()
  rows = flag_groups.read_rows(('test_accuracy',))
  names = sorted({arms.of(row['config']) for row in rows})
  if command_line.is_given('reference') and FLAGS.reference not in names:
    raise command_line.UserError(
      f'--reference must be an aggregator of the rows, which have '
      f'{", ".join(names)}; found {FLAGS.reference!r}.'
    )
  if FLAGS.last_round is not None:
    rows = [row for row in rows if row['round'] <= FLAGS.last_round]
  with command_line.user_errors():
    found = final_accuracy.by_aggregator(rows, FLAGS.last_part, FLAGS.reference)
    reached = [
      rounds_to_accuracy.by_aggregator(rows, accuracy, FLAGS.reference)
      for accuracy in accuracies
    ]
  print(f'Means over the last {FLAGS.last_part:.3g} of the rounds:\n')
  print(final_accuracy.format_table(found, FLAGS.reference))
  print(f'\n{final_accuracy.NOTE}')
  for accuracy, of_accuracy in zip(accuracies, reached):
    print(f'\nTo a test accuracy of {100 * accuracy:.4g} %:\n')
    print(rounds_to_accuracy.format_table(of_accuracy, FLAGS.reference))
  if accuracies:
    print(f'\n{rounds_to_accuracy.NOTE}')


if __name__ == '__main__':
  command_line.run(main, required=['results'])

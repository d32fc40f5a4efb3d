# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Prints final accuracies from the results of training runs. Runs nothing.

  python -m experiments.training.tabulate \
      --results=experiments/training/results/fashion_iid.jsonl \
      --accuracies=0.8,0.84
"""

from typing import List

from absl import flags

from experiments.common import arms
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

flags.DEFINE_integer(
  'last_round',
  None,
  'Leave out what came after this round; with --last_part, a look at any part '
  'of training.',
  lower_bound=1,
)
flags.DEFINE_string(
  'reference',
  'plain_mean',
  'The aggregator of the rows that all are compared with; "NAME down=8" if '
  'its model went down in 8 bits.',
)
flags.DEFINE_list(
  'accuracies',
  [],
  'Test accuracies, above 0 and below 1: a table for each of the rounds and '
  'bytes until it is first reached.',
)

FLAGS = flags.FLAGS


def _accuracies() -> List[float]:
  try:
    found = [float(text) for text in FLAGS.accuracies]
  except ValueError:
    found = [0.0]
  if not all(0 < accuracy < 1 for accuracy in found):
    raise command_line.UserError(
      '--accuracies must be numbers above 0 and below 1, separated by commas, '
      f'found {",".join(FLAGS.accuracies)!r}.'
    )
  return found


def main():
  from experiments.training import final_accuracy
  from experiments.training import rounds_to_accuracy

  accuracies = _accuracies()
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

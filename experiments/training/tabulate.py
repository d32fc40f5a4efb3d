# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Prints final accuracies from the results of training runs. Runs nothing.

  python -m experiments.training.tabulate \
      --results=experiments/training/results/fashion_iid.jsonl
"""

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

FLAGS = flags.FLAGS


def main():
  from experiments.training import final_accuracy

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
  print(f'Means over the last {FLAGS.last_part:.3g} of the rounds:\n')
  print(final_accuracy.format_table(found, FLAGS.reference))


if __name__ == '__main__':
  command_line.run(main, required=['results'])

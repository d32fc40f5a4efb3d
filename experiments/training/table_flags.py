# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The flags of the tables of trainings."""

from typing import List

from absl import flags

from experiments.common import command_line
from experiments.common import flag_groups

FLAGS = flags.FLAGS

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


def accuracies() -> List[float]:
  """Those of --accuracies; UserError if they are none."""
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

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Prints how many bits and bytes a model and a cohort need.

With --modulus, says whether that one would do; the status is 1 if not.

  python -m experiments.planner.run --num_values=1000000 --num_clients=100
  python -m experiments.planner.run --num_clients=1000 --modulus=16
"""

import sys

from absl import app
from absl import flags

from experiments.common import quiet  # isort: skip. Before TensorFlow is imported.
from experiments.common import flag_groups
from experiments.planner import table
import tff_autotune_secagg as autotune

del quiet  # Imported for its side effect.

FLAGS = flags.FLAGS
flags.DEFINE_integer('num_values', 10**6, 'Size of the model.', lower_bound=1)
flags.DEFINE_integer('num_clients', 10, 'Clients in a round.', lower_bound=1)
flag_groups.define_numbers(
  'targets', [0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4], 'Errors (NMSE).'
)
flags.DEFINE_bool('dither', False, 'Subtractive dither for the rounding.')
flags.DEFINE_integer('modulus', None, 'A modulus to judge.')


def main(argv):
  flag_groups.take_only_flags(argv)
  num_clients = FLAGS.num_clients
  rounding = autotune.Rounding.STOCHASTIC
  if FLAGS.dither:
    rounding = autotune.Rounding.DITHER
  print(f'{FLAGS.num_values:,d} values, {num_clients:,d} clients')
  found = table.rows(FLAGS.num_values, num_clients, FLAGS.targets, rounding)
  print(table.format_table(found))
  smallest = table.smallest_modulus(num_clients, rounding)
  print(f'Smallest modulus that works at all: {smallest}')
  if FLAGS.modulus is None:
    return
  options = dict(
    modulus=FLAGS.modulus, num_clients=num_clients, rounding=rounding
  )
  try:
    autotune.AutotunedSecureSumFactory(**options)
  except ValueError as error:
    print(error)
    sys.exit(1)
  error = autotune.predicted_nmse(**options)
  print(f'Modulus {FLAGS.modulus}: predicted NMSE {error:.2g}')


if __name__ == '__main__':
  app.run(main)

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Prints epsilon, bits and noise of private rounds for a model and a cohort.

  python -m experiments.planner.run_private --num_values=1000000 \
      --num_clients=1000 --min_clients=700 --num_rounds=1,10,100
"""

from absl import app
from absl import flags

from experiments.common import quiet  # isort: skip. Before TensorFlow is imported.
from experiments.common import flag_groups
from experiments.planner import private

del quiet  # Imported for its side effect.

FLAGS = flags.FLAGS
flags.DEFINE_integer('num_values', 10**6, 'Size of the model.', 1)
flags.DEFINE_integer('num_clients', 100, 'Clients in a round.', 2)
flags.DEFINE_integer(
  'min_clients',
  None,
  'Fewest honest noise shares in a released sum; by default all clients.',
  2,
)
flag_groups.define_numbers('noise_multipliers', [0.5, 1.0, 2.0, 4.0, 8.0], 'z.')
flag_groups.define_numbers(
  'num_rounds', [1, 10, 100], 'Rounds that one client takes part in.'
)
flags.DEFINE_float('delta', 1e-6, 'Of the whole training.', 0.0, 1.0)
flags.DEFINE_float(
  'alignment',
  0.3,
  'Norm of the sum over that of as many parallel updates of full length.',
  0.0,
  1.0,
)


def main(argv):
  flag_groups.take_only_flags(argv)
  found = private.rows(
    num_values=FLAGS.num_values,
    num_clients=FLAGS.num_clients,
    min_clients=FLAGS.min_clients or FLAGS.num_clients,
    noise_multipliers=FLAGS.noise_multipliers,
    num_rounds=FLAGS.num_rounds,
    delta=FLAGS.delta,
    alignment=FLAGS.alignment,
  )
  print(private.format_table(found, FLAGS.num_rounds))


if __name__ == '__main__':
  app.run(main)

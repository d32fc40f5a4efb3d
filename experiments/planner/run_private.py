# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Prints epsilon, bits and noise of private rounds for a model and a cohort.

  python -m experiments.planner.run_private --num_values=1000000 \
      --num_clients=1000 --min_clients=700 --num_rounds=1,10,100
"""

from absl import flags

from experiments.common import command_line
from experiments.common import flag_groups

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
flag_groups.define_smoke()
_SMOKE = dict(num_values=1000, noise_multipliers=[1.0], num_rounds=[1])


def main():
  values = {**FLAGS.flag_values_dict(), **flag_groups.smoke_values(_SMOKE)}
  from experiments.planner import private

  with command_line.user_errors():
    found = private.rows(
      num_clients=FLAGS.num_clients,
      min_clients=FLAGS.min_clients or FLAGS.num_clients,
      delta=FLAGS.delta,
      alignment=FLAGS.alignment,
      **{
        n: values[n] for n in ('num_values', 'noise_multipliers', 'num_rounds')
      },
    )
  print(private.format_table(found, values['num_rounds']))


if __name__ == '__main__':
  command_line.run(main)

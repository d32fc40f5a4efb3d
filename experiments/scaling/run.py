# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Measures training with each number of workers; see docs/several_machines.md.

python -m experiments.scaling.run --workers=10.9.1.2:8000,10.9.2.2:8000 \
    --results=results/scaling.jsonl
"""

import dataclasses

from absl import flags

from experiments.common import command_line
from experiments.common import flag_groups
from experiments.common import results_file
from experiments.training import settings

FLAGS = flags.FLAGS
flags.DEFINE_list('workers', [], "Addresses 'host:port'; none: local only.")
flags.DEFINE_integer('num_rounds', 12, 'Rounds, two of them untimed.', 3)
flags.DEFINE_integer('clients_per_round', 10, 'Clients in a round.', 1)
flags.DEFINE_float('width', 4.0, 'Factor on the filters of the model.', 0.1)
flags.DEFINE_string(
  'aggregator', 'autotuned:modulus=256,rounding=dither', 'As in training.'
)
flag_groups.define_results()
flag_groups.define_smoke()
_SMOKE = dict(num_rounds=3, clients_per_round=2, width=0.1)


def main():
  values = {**FLAGS.flag_values_dict(), **flag_groups.smoke_values(_SMOKE)}
  with command_line.user_errors():
    training = settings.Config(
      dataset='digits',
      model='digits_cnn',
      aggregator=FLAGS.aggregator,
      width=values['width'],
      num_clients=values['clients_per_round'],
      clients_per_round=values['clients_per_round'],
      num_rounds=values['num_rounds'],
      eval_every=values['num_rounds'] + 1,
    )
  with flag_groups.held_results() as file:
    _run(training, file)


def _run(training, file):
  from experiments.common import sweep
  from experiments.scaling import scaling

  config = scaling.Config(
    training=training,
    worker_counts=tuple(range(len(FLAGS.workers) + 1)),
    workers=tuple(FLAGS.workers),
  )
  with command_line.user_errors():
    sweep.set_context(FLAGS.workers)  # All must answer before any is timed.
    scaling.check(config)
  values = dict(dataclasses.asdict(training), num_workers=len(FLAGS.workers))
  run = results_file.run_name(values)
  for row in file.store(run, values, scaling.run(config)):
    print('  '.join(f'{key} {value:.5g}' for key, value in row.items()))


if __name__ == '__main__':
  command_line.run(main)

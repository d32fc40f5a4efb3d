# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Measures training with each number of workers; see docs/several_machines.md.

python -m experiments.scaling.run --workers=10.9.1.2:8000,10.9.2.2:8000
"""

from absl import app
from absl import flags

from experiments.common import quiet  # isort: skip. Before TensorFlow is imported.
from experiments.common import flag_groups
from experiments.scaling import scaling
from experiments.training import trainer

del quiet  # Imported for its side effect.

FLAGS = flags.FLAGS
flags.DEFINE_list('workers', [], "Addresses 'host:port'; none: local only.")
flags.DEFINE_integer('num_rounds', 12, 'Rounds, two of them untimed.', 3)
flags.DEFINE_integer('clients_per_round', 10, 'Clients in a round.', 1)
flags.DEFINE_float('width', 4.0, 'Factor on the filters of the model.', 0.1)
flags.DEFINE_string(
  'aggregator', 'autotuned:modulus=256,rounding=dither', 'As in training.'
)


def main(argv):
  flag_groups.take_only_flags(argv)
  training = trainer.Config(
    dataset='digits',
    model='digits_cnn',
    aggregator=FLAGS.aggregator,
    width=FLAGS.width,
    num_clients=FLAGS.clients_per_round,
    clients_per_round=FLAGS.clients_per_round,
    num_rounds=FLAGS.num_rounds,
    eval_every=FLAGS.num_rounds + 1,
  )
  config = scaling.Config(
    training=training,
    worker_counts=tuple(range(len(FLAGS.workers) + 1)),
    workers=tuple(FLAGS.workers),
  )
  for row in scaling.run(config):
    print('  '.join(f'{key} {value:.5g}' for key, value in row.items()))


if __name__ == '__main__':
  app.run(main)

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The flags of training runs, and the configs that they describe."""

import dataclasses
from typing import Any, Dict, List

from absl import flags

from experiments.common import arms
from experiments.common import command_line
from experiments.common import flag_groups
from experiments.training import settings

FLAGS = flags.FLAGS

# To stay short, smoke runs leave out what comes after so many aggregators: each
# must be compiled. The demo has as many.
_SMOKE_AGGREGATORS = 5

flag_groups.define_sweep()
flag_groups.define_fields(
  settings.Config,
  augment='Mirror and shift training images at random.',
  dirichlet_concentration=(
    'Concentration of the dirichlet partition: smaller is less even.'
  ),
  num_clients='Clients that share the images.',
  clients_per_round='Clients drawn for a round.',
  local_epochs='Passes over its images per client.',
  batch_size='Images in a batch of a client.',
  client_learning_rate='Step size of the clients.',
  client_momentum='Momentum of the clients.',
  width="Factor on the number of the model's filters.",
  num_rounds='Rounds of training.',
  eval_every='Rounds between two evaluations.',
  server_learning_rate='Factor on the mean update.',
  server_momentum='Momentum of the server.',
)
flag_groups.define_fields(
  settings.Config,
  at_least=0,
  partition_seed='Seed of the partition into clients.',
  fewest_clients_per_round=(
    'Draw the number of clients of a round too, from this to '
    '--clients_per_round, uniformly on a logarithmic scale; 0: do not.'
  ),
)
flags.DEFINE_enum(
  'server_optimizer', 'sgd', ['sgd', 'adam'], "The server's optimizer."
)
flag_groups.define_numbers(
  'model_download_bits',
  [arms.FLOAT_BITS],
  'Bits of a parameter of the model on its way down: 32 for floats, or 2 to 8. '
  'One number for all aggregators, or one for each, with commas.',
  at_least=2,
)
flags.DEFINE_boolean(
  'partition_of_each_seed',
  False,
  'Give each seed a partition of its own: --partition_seed plus the seed.',
)
flags.DEFINE_enum(
  'partition',
  'iid',
  ['iid', 'dirichlet'],
  'How training images are split among the clients.',
)


def _smoke() -> Dict[str, Any]:
  """What a smoke run shrinks, clients as many as a given cohort needs."""
  small = dict(settings.SMOKE)
  if command_line.is_given('clients_per_round'):
    small['num_clients'] = max(small['num_clients'], FLAGS.clients_per_round)
  if command_line.is_given('num_clients'):
    small['clients_per_round'] = min(
      small['clients_per_round'], FLAGS.num_clients
    )
  return small


def _model_download_bits(num_aggregators: int) -> List[int]:
  """The bits of each aggregator's download."""
  bits = FLAGS.model_download_bits
  if len(bits) > 1 and len(bits) != num_aggregators:
    if command_line.is_given('model_download_bits'):
      raise command_line.UserError(
        '--model_download_bits must be one number, or one for each of '
        f'{num_aggregators} aggregators, found {len(bits)} numbers.'
      )
    # A flag file's numbers go with its aggregators, and not with others.
    bits = [arms.FLOAT_BITS]
  return bits if len(bits) > 1 else bits * num_aggregators


def configs() -> List[settings.Config]:
  """One config for each seed and aggregator of the flags."""
  seeds, aggregators = flag_groups.compared(_SMOKE_AGGREGATORS)
  arms_of_seed = list(
    zip(aggregators, _model_download_bits(len(FLAGS.aggregator)))
  )
  configs = [
    flag_groups.read_fields(
      settings.Config,
      smoke=_smoke(),
      aggregator=aggregator,
      model_download_bits=bits,
      seed=seed,
    )
    for seed in seeds
    for aggregator, bits in arms_of_seed
  ]
  if not FLAGS.partition_of_each_seed:
    return configs
  return [
    dataclasses.replace(c, partition_seed=c.partition_seed + c.seed)
    for c in configs
  ]

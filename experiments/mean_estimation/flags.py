# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The flags of mean estimation, and the configs that they describe."""

from typing import List

from absl import flags

from experiments.common import command_line
from experiments.common import flag_groups
from experiments.mean_estimation import settings as estimation_settings
from experiments.training import settings as training_settings

FLAGS = flags.FLAGS

# Of the training whose updates are recorded; all else is `Config`'s default.
_RECORDED_FIELDS = (
  'dataset',
  'model',
  'num_clients',
  'clients_per_round',
  'num_rounds',
  'batch_size',
  'client_learning_rate',
)


def _check_kinds(kinds) -> bool:
  try:
    for kind in kinds:
      estimation_settings.Config('plain_mean', vectors=kind)
  except ValueError as e:
    raise flags.ValidationError(str(e)) from e
  return True


flag_groups.define_sweep()
flag_groups.define_fields(
  training_settings.Config,
  num_clients='Clients that share the images.',
  clients_per_round='Clients drawn for a round.',
  num_rounds='Rounds of training.',
  batch_size='Images in a batch of a client.',
  client_learning_rate='Step size of the clients.',
)
flags.DEFINE_list(
  'vectors',
  ['dense'],
  f'Kinds of vectors, of {", ".join(estimation_settings.KINDS)}; recorded are '
  'client updates of a training run on the data set.',
)
flags.register_validator('vectors', _check_kinds)
flags.DEFINE_integer('dim', 10_000, 'Entries of a synthetic vector.', 1)
flags.DEFINE_integer(
  'settling_rounds', 3, 'First rounds, which figures leave out.', 0
)
flag_groups.define_numbers(
  'bits',
  [4, 8],
  'Bits per coordinate: what {bits} and {modulus} in an aggregator stand for; '
  '{max} stands for the largest entry, {3*rms} for three times the root mean '
  'square of a coordinate after a rotation.',
  at_least=1,
)


def configs() -> List[estimation_settings.Config]:
  """All combinations of the flags, shrunken if `--smoke` says so."""
  settings = dict(
    num_clients=FLAGS.clients_per_round,
    dim=FLAGS.dim,
    num_rounds=FLAGS.num_rounds,
    settling_rounds=FLAGS.settling_rounds,
  )
  small = flag_groups.smoke_values(
    dict(clients_per_round=2, dim=100, num_rounds=2, settling_rounds=1)
  )
  settings.update(small)
  settings['num_clients'] = settings.pop(
    'clients_per_round', settings['num_clients']
  )
  seeds, bits, aggregators = FLAGS.seeds, FLAGS.bits, FLAGS.aggregator
  if FLAGS.smoke and not command_line.is_given('seeds'):
    seeds = seeds[:1]
  if FLAGS.smoke and not command_line.is_given('bits'):
    bits = bits[-1:]
  if FLAGS.smoke and not command_line.is_given('aggregator'):
    aggregators = aggregators[:2]
  with command_line.user_errors():
    return estimation_settings.configs(
      aggregators, bits, FLAGS.vectors, seeds, **settings
    )


def recording_config() -> training_settings.Config:
  """The training run whose client updates are recorded."""
  return flag_groups.read_fields(
    training_settings.Config,
    *_RECORDED_FIELDS,
    smoke=training_settings.SMOKE,
    aggregator='plain_mean',
    seed=FLAGS.seeds[0],
  )

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The flags of mean estimation, and the configs that they describe."""

from typing import List

from absl import flags

from experiments.common import flag_groups
from experiments.mean_estimation import estimation
from experiments.training import trainer

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
      estimation.Config('plain_mean', vectors=kind)
  except ValueError as e:
    raise flags.ValidationError(str(e)) from e
  return True


flag_groups.define_sweep()
flag_groups.define_fields(
  trainer.Config,
  num_clients='Clients that share the images.',
  clients_per_round='Clients drawn for a round.',
  num_rounds='Rounds of training.',
  batch_size='Images in a batch of a client.',
  client_learning_rate='Step size of the clients.',
)
flags.DEFINE_list(
  'vectors',
  ['dense'],
  f'Kinds of vectors, of {", ".join(estimation.KINDS)}; recorded are client '
  'updates of a training run on the data set.',
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
  '{max} stands for the largest entry.',
)


def configs() -> List[estimation.Config]:
  """All combinations of the flags, shrunken if `--smoke` says so."""
  settings = dict(
    num_clients=FLAGS.clients_per_round,
    dim=FLAGS.dim,
    num_rounds=FLAGS.num_rounds,
    settling_rounds=FLAGS.settling_rounds,
  )
  seeds, bits, aggregators = FLAGS.seeds, FLAGS.bits, FLAGS.aggregator
  if FLAGS.smoke:
    settings.update(num_clients=2, dim=100, num_rounds=2, settling_rounds=1)
    seeds, bits, aggregators = seeds[:1], bits[-1:], aggregators[:2]
  return estimation.configs(aggregators, bits, FLAGS.vectors, seeds, **settings)


def recording_config() -> trainer.Config:
  """The training run whose client updates are recorded."""
  config = flag_groups.read_fields(
    trainer.Config,
    *_RECORDED_FIELDS,
    aggregator='plain_mean',
    seed=FLAGS.seeds[0],
  )
  return trainer.smoke(config) if FLAGS.smoke else config

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The settings of a training."""

import dataclasses
from typing import Any, Dict

from experiments.common import aggregators
from experiments.common import arms

_CODED_BITS = range(2, 9)
# Rows and checkpoints from before there was a choice keep their names.
_CHOICES_OF_LATER = (
  'model_download_bits',
  'fewest_clients_per_round',
  'server_optimizer',
)


@dataclasses.dataclass(frozen=True)
class Config:
  """Everything that decides the numbers of one run.

  Attributes:
    dataset: One of `datasets.NAMES`.
    aggregator: Text that `aggregators.parse` reads.
    model: One of `models.NAMES`.
    width: Factor on the number of filters of the model.
    partition: 'iid' or 'dirichlet'.
    dirichlet_concentration: Parameter of the 'dirichlet' partition.
    num_clients: Clients among which the training images are split.
    clients_per_round: Clients drawn without replacement for each round.
    fewest_clients_per_round: With a number above 0, a round has so many clients
      to `clients_per_round`, each number as likely on a logarithmic scale.
    num_rounds: Rounds of training.
    local_epochs: Passes of a client over its images in a round.
    batch_size: Images in a client's batch.
    client_learning_rate: Step size of the clients' SGD.
    client_momentum: Momentum of the clients' SGD, 0 for none.
    server_learning_rate: Factor on the mean update.
    server_momentum: Momentum of the server's SGD, 0 for none.
    server_optimizer: 'sgd' or 'adam', which takes no momentum.
    augment: Whether clients mirror and shift their images at random.
    eval_every: Rounds between evaluations on the whole test set.
    model_download_bits: Bits of a parameter of the model on its way down: 32
      for floats, or 2 to 8 for `low_bit_model_distributor`.
    seed: Seed of client sampling, batches, initial weights, aggregator and
      download, each with a stream of its own (`seeds.Stream`).
    partition_seed: Seed of the partition into clients.
    smoke: Whether random images and shrunken sizes replace the real thing.
  """

  dataset: str
  aggregator: str
  model: str
  width: float = 1.0
  partition: str = 'iid'
  dirichlet_concentration: float = 0.3
  num_clients: int = 100
  clients_per_round: int = 10
  num_rounds: int = 100
  local_epochs: int = 1
  batch_size: int = 10
  client_learning_rate: float = 0.1
  client_momentum: float = 0.0
  server_learning_rate: float = 1.0
  server_momentum: float = 0.0
  augment: bool = False
  eval_every: int = 1
  model_download_bits: int = arms.FLOAT_BITS
  fewest_clients_per_round: int = 0
  server_optimizer: str = 'sgd'
  seed: int = 1
  partition_seed: int = 0
  smoke: bool = False

  def __post_init__(self):
    aggregators.parse(self.aggregator)
    for name in (
      'num_clients',
      'clients_per_round',
      'num_rounds',
      'local_epochs',
      'batch_size',
      'eval_every',
    ):
      if getattr(self, name) < 1:
        raise ValueError(
          f'`{name}` must be an int of at least 1, found '
          f'{getattr(self, name)!r}.'
        )
    if self.clients_per_round > self.num_clients:
      raise ValueError(
        '`clients_per_round` must be at most `num_clients`, found '
        f'{self.clients_per_round} and {self.num_clients}.'
      )
    if self.model_download_bits not in (*_CODED_BITS, arms.FLOAT_BITS):
      raise ValueError(
        '`model_download_bits` must be 2 to 8, or 32 for floats, found '
        f'{self.model_download_bits!r}.'
      )
    if not 0 <= self.fewest_clients_per_round <= self.clients_per_round:
      raise ValueError(
        '`fewest_clients_per_round` must be 0 to `clients_per_round`, found '
        f'{self.fewest_clients_per_round} and {self.clients_per_round}.'
      )
    if self.server_optimizer not in ('sgd', 'adam'):
      raise ValueError(
        "`server_optimizer` must be 'sgd' or 'adam', found "
        f'{self.server_optimizer!r}.'
      )
    if self.server_optimizer == 'adam' and self.server_momentum:
      raise ValueError(
        "`server_momentum` must be 0 with 'adam', found "
        f'{self.server_momentum!r}.'
      )
    if self.partition not in ('iid', 'dirichlet'):
      raise ValueError(
        f"`partition` must be 'iid' or 'dirichlet', found {self.partition!r}."
      )

  def asdict(self) -> Dict[str, Any]:
    """The settings as a dict of plain values."""
    found = dataclasses.asdict(self)
    for name in _CHOICES_OF_LATER:
      if found[name] == getattr(type(self), name):
        del found[name]
    return found


# What a smoke run shrinks.
SMOKE = dict(
  num_clients=4,
  clients_per_round=2,
  num_rounds=2,
  local_epochs=1,
  batch_size=5,
  width=0.1,
  eval_every=1,
)

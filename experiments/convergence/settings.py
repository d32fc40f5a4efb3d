# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What decides the numbers of one descent."""

import dataclasses

from experiments.common import aggregators


@dataclasses.dataclass(frozen=True)
class Config:
  """Everything that decides the numbers of one run.

  Attributes:
    dataset: One of `datasets.NAMES`.
    aggregator: Text that `aggregators.parse` reads, in which `{max}` stands for
      the largest coordinate of a rotated update times its weight at the start
      and at the optimum, which nobody knows before the training, and `{max/4}`
      for a fourth of it.
    num_examples: Training images, the first of the data set.
    num_features: Principal components of the pixels.
    l2: Factor on half the squared norm of the weights in the objective.
    dirichlet_concentration: Parameter of the partition.
    num_clients: Clients, all of which are in every round.
    num_rounds: Steps of gradient descent.
    learning_rate: Size of a step.
    eval_every: Rounds between two rows.
    seed: Seed of the partition, of rotations and of rounding.
    smoke: Whether random images and shrunken sizes replace the real thing.
  """

  dataset: str
  aggregator: str
  num_examples: int = 6000
  num_features: int = 123
  l2: float = 0.01
  dirichlet_concentration: float = 0.3
  num_clients: int = 100
  num_rounds: int = 100
  learning_rate: float = 3.0
  eval_every: int = 1
  seed: int = 1
  smoke: bool = False

  def __post_init__(self):
    aggregators.parse(self.text(1.0))
    for name in (
      'num_examples',
      'num_features',
      'num_clients',
      'num_rounds',
      'eval_every',
    ):
      if getattr(self, name) < 1:
        raise ValueError(
          f'`{name}` must be an int of at least 1, found '
          f'{getattr(self, name)!r}.'
        )
    for name in ('l2', 'dirichlet_concentration', 'learning_rate'):
      if not getattr(self, name) > 0:
        raise ValueError(
          f'`{name}` must be a positive float, found {getattr(self, name)!r}.'
        )
    if self.num_clients > self.num_examples:
      raise ValueError(
        '`num_clients` must be at most `num_examples`, found '
        f'{self.num_clients} and {self.num_examples}.'
      )

  def text(self, largest: float) -> str:
    """The aggregator, with the largest coordinate put in."""
    return aggregators.fill_in(self.aggregator, bits=0, largest=largest)


# What a smoke run shrinks.
SMOKE = dict(
  num_examples=60,
  num_features=5,
  num_clients=4,
  num_rounds=4,
  eval_every=2,
)

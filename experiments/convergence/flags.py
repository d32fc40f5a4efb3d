# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The flags of descents, and the configs that they describe."""

from typing import List

from experiments.common import flag_groups
from experiments.convergence import settings

# Smoke runs leave out what comes after so many aggregators.
_SMOKE_AGGREGATORS = 3

flag_groups.define_compared()
flag_groups.define_fields(
  settings.Config,
  num_examples='Training images of all clients together.',
  num_features='Principal components of the pixels.',
  l2='Factor on half the squared norm of the weights.',
  dirichlet_concentration=(
    'Concentration of the dirichlet partition: smaller is less even.'
  ),
  num_clients='Clients that share the images.',
  num_rounds='Rounds of training.',
  learning_rate='Size of a step of gradient descent.',
  eval_every='Rounds between two evaluations.',
)
flag_groups.define_results()
flag_groups.define_smoke()


def configs() -> List[settings.Config]:
  """One config for each seed and aggregator of the flags."""
  seeds, aggregators = flag_groups.compared(_SMOKE_AGGREGATORS)
  return [
    flag_groups.read_fields(
      settings.Config,
      smoke=dict(settings.SMOKE, smoke=True),
      aggregator=aggregator,
      seed=seed,
    )
    for seed in seeds
    for aggregator in aggregators
  ]

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The flags of deployed trainings, and the configs that they describe."""

from typing import List

from absl import flags

from experiments.common import flag_groups
from experiments.deployment import settings
from experiments.training import flags as training_flags

FLAGS = flags.FLAGS

flags.adopt_module_key_flags(training_flags)
flag_groups.define_fields(
  settings.Config,
  dropout='Probability that a client vanishes after it has shared its keys.',
  threshold_share=(
    'Survivors without whom nothing is unmasked, as a share of the clients of '
    'a round.'
  ),
)
flags.DEFINE_boolean(
  'simulate', True, "Train each with TFF's simulation as well, to compare."
)
flags.DEFINE_boolean(
  'drop_metrics',
  None,
  'Leave loss and accuracy at the clients; else they are sent in the clear. By '
  'default with distributed_dp only.',
)


def _drops_metrics(aggregator: str) -> bool:
  if FLAGS.drop_metrics is None:
    return settings.drops_metrics(aggregator)
  return FLAGS.drop_metrics


def configs() -> List[settings.Config]:
  """Configs for each seed and aggregator of the flags."""
  ways = [settings.MASKED, settings.SIMULATED][: 1 + FLAGS.simulate]
  return [
    flag_groups.read_fields(
      settings.Config,
      training=training,
      run_by=run_by,
      drop_metrics=_drops_metrics(training.aggregator),
    )
    for training in training_flags.configs()
    for run_by in ways
  ]

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The flags of what a sweep of trainings keeps beside its rows."""

from typing import Any, Dict

from absl import flags

from experiments.common import flag_groups

FLAGS = flags.FLAGS

flags.DEFINE_integer(
  'checkpoint_every', 10, 'Rounds between two checkpoints.', lower_bound=1
)
flags.DEFINE_boolean('tensorboard', True, 'Write TensorBoard summaries too.')


def sweep_options() -> Dict[str, Any]:
  """Keyword arguments of `TrainingSweep` that the flags decide."""
  return dict(
    flag_groups.sweep_options(),
    checkpoint_every=FLAGS.checkpoint_every,
    tensorboard=FLAGS.tensorboard,
  )

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Trains with federated averaging, once for every aggregator and seed.

Writes results.jsonl, checkpoints/ and tensorboard/ into --output_dir. A run
that was interrupted continues when the same command is given again.

  python -m experiments.training.run \
      --flagfile=experiments/training/configs/demo.flags --num_rounds=20
"""

import sys

from absl import app
from absl import flags

from experiments.common import quiet  # isort: skip. Before TensorFlow is imported.
from experiments.common import flag_groups
from experiments.common import sweep
from experiments.training import flags as training_flags
from experiments.training import sweep as training_sweep

del quiet  # Imported for its side effect.

FLAGS = flags.FLAGS
flags.adopt_module_key_flags(training_flags)


def main(argv):
  flag_groups.take_only_flags(argv)
  runs = training_sweep.TrainingSweep(
    training_flags.configs(),
    output_dir=FLAGS.output_dir or sweep.new_output_dir('training'),
    **training_flags.sweep_options(),
  )
  status = runs.run()
  if status == 0:
    print(training_sweep.format_table(runs.summary()))
    print(f'\nResults: {runs.results.path}')
  sys.exit(status)


if __name__ == '__main__':
  app.run(main)

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Trains with federated averaging, once for every aggregator and seed.

Writes results.jsonl, checkpoints/ and tensorboard/ into --output_dir. A run
that was interrupted continues when the same command is given again with that
--output_dir. How many bits your model and cohort need is a question for
`python -m tff_autotune_secagg.planner`.

  python -m experiments.training.run \
      --flagfile=experiments/training/configs/demo.flags --num_rounds=20
"""

from absl import flags

from experiments.common import command_line
from experiments.common import flag_groups
from experiments.training import flags as training_flags
from experiments.training import sweep_flags
from experiments.training import threads

del threads  # Imported for its side effect, before TensorFlow.

FLAGS = flags.FLAGS
flags.adopt_module_key_flags(training_flags)
flags.adopt_module_key_flags(sweep_flags)


def main():
  configs = training_flags.configs()
  from experiments.training import sweep as training_sweep

  runs = training_sweep.TrainingSweep(
    configs,
    output_dir=flag_groups.output_dir('training'),
    **sweep_flags.sweep_options(),
  )
  status = runs.run()
  if status == 0:
    print(training_sweep.format_table(runs.summary()))
    print(f'\nResults: {runs.results.path}')
  return status


if __name__ == '__main__':
  command_line.run(main)

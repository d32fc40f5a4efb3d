# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Measures the error of aggregators at several bits per coordinate.

On synthetic vectors, and on client updates recorded while a model trains.
Writes results.jsonl into --output_dir; combinations that are in it already are
not run again.

  python -m experiments.mean_estimation.run --vectors=dense,sparse --bits=4,8 \
      --aggregator=autotuned:modulus={modulus} --num_rounds=8
"""

from absl import flags

from experiments.common import command_line
from experiments.common import flag_groups
from experiments.mean_estimation import flags as estimation_flags

FLAGS = flags.FLAGS
flags.adopt_module_key_flags(estimation_flags)


def main():
  configs = estimation_flags.configs()
  training = estimation_flags.recording_config()
  from experiments.mean_estimation import sweep as estimation_sweep

  runs = estimation_sweep.EstimationSweep(
    configs,
    training=training,
    output_dir=flag_groups.output_dir('mean_estimation'),
    **flag_groups.sweep_options(),
  )
  status = runs.run()
  if status == 0:
    print(f'Results: {runs.results.path}')
  return status


if __name__ == '__main__':
  command_line.run(main)

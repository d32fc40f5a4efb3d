# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Measures the error of aggregators at several bits per coordinate.

On synthetic vectors, and on client updates recorded while a model trains.
Writes results.jsonl into --output_dir; combinations that are in it already are
not run again.

  python -m experiments.mean_estimation.run --vectors=dense,sparse --bits=4,8 \
      --aggregator=autotuned:modulus={modulus} --num_rounds=8
"""

import sys

from absl import app
from absl import flags

from experiments.common import quiet  # isort: skip. Before TensorFlow is imported.
from experiments.common import flag_groups
from experiments.common import sweep
from experiments.mean_estimation import flags as estimation_flags
from experiments.mean_estimation import sweep as estimation_sweep

del quiet  # Imported for its side effect.

FLAGS = flags.FLAGS
flags.adopt_module_key_flags(estimation_flags)


def main(argv):
  flag_groups.take_only_flags(argv)
  runs = estimation_sweep.EstimationSweep(
    estimation_flags.configs(),
    training=estimation_flags.recording_config(),
    output_dir=FLAGS.output_dir or sweep.new_output_dir('mean_estimation'),
    **flag_groups.sweep_options(),
  )
  status = runs.run()
  if status == 0:
    print(f'Results: {runs.results.path}')
  sys.exit(status)


if __name__ == '__main__':
  app.run(main)

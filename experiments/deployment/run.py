# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Trains as a runtime would: TFF's form, masked sums, clients that drop out.

Prints what a client receives and sends, and trains the demo's network by the
form's graphs, every secure sum by pairwise masks; then by TFF's simulation with
the same clients, to compare. Needs the `cryptography` package. Writes
results.jsonl and deployment.png into --output_dir.

  python -m experiments.deployment.run \
      --aggregator=autotuned:modulus=256 --dropout=0.2
"""

import os

from absl import flags

from experiments.common import command_line
from experiments.common import flag_groups
from experiments.deployment import flags as deployment_flags
from experiments.training import threads

del threads  # Imported for its side effect, before TensorFlow.

FLAGS = flags.FLAGS
_FLAG_FILE = os.path.join(os.path.dirname(__file__), 'configs', 'digits.flags')
_PICTURE_NAME = 'deployment.png'
flags.adopt_module_key_flags(deployment_flags)


def main():
  configs = deployment_flags.configs()
  with command_line.user_errors():
    try:
      from experiments.deployment import sweep as deployment_sweep
    except ImportError as e:
      raise ValueError(f'The protocol needs what is not installed: {e}.') from e
  from experiments.common import plot_style
  from experiments.common import result_rows
  from experiments.deployment import figure

  runs = deployment_sweep.DeploymentSweep(
    configs,
    output_dir=flag_groups.output_dir('deployment'),
    **flag_groups.sweep_options(),
  )
  status = runs.run()
  if status == 0:
    print(deployment_sweep.format_table(runs.summary()))
    drawn = figure.accuracy_figure(result_rows.read(runs.results.path))
    path = os.path.join(runs.output_dir, _PICTURE_NAME)
    print(f'\nPicture: {plot_style.save(drawn, path)}')
    print(f'Results: {runs.results.path}')
  return status


if __name__ == '__main__':
  command_line.run(main, flag_file=_FLAG_FILE)

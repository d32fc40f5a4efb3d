# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""The demo: federated training on real images with few-bit secure sums.

Trains a small network on scikit-learn's handwritten digits five times: with a
plain mean of 32-bit floats, with a fixed clipping range, with the autotuned
aggregator at 8 and at 4 bits, and at 8 bits with a model that goes down in 8.
Shows a progress bar, then a table; writes results.jsonl, tensorboard/ and
demo.png.

  python -m experiments.training.run_demo
  python -m experiments.training.run_demo --num_rounds=9 \
      --aggregator=autotuned:modulus=64
"""

import os
import shlex
import sys

from absl import flags

from experiments.common import command_line
from experiments.common import flag_groups
from experiments.training import flags as training_flags
from experiments.training import sweep_flags
from experiments.training import threads

del threads  # Imported for its side effect, before TensorFlow.

FLAGS = flags.FLAGS
_FLAG_FILE = os.path.join(os.path.dirname(__file__), 'configs', 'demo.flags')
flags.adopt_module_key_flags(training_flags)
flags.adopt_module_key_flags(sweep_flags)


def main():
  configs = training_flags.configs()
  from experiments.training import demo
  from experiments.training import sweep as training_sweep

  runs = training_sweep.TrainingSweep(
    configs,
    output_dir=flag_groups.output_dir('demo'),
    **sweep_flags.sweep_options(),
  )
  status = runs.run()
  if status == 0:
    summary = runs.summary()
    print(f'\n{training_sweep.format_table(summary)}')
    verdict = demo.verdict(summary)
    if verdict:
      print(f'\n{verdict}')
    picture = demo.draw_picture(runs.results.path, runs.output_dir)
    print(f'\nPicture: {picture}')
    print(f'Results: {runs.results.path}')
    if FLAGS.tensorboard:
      board = f'{sys.executable} -m tensorboard.main'
      print(f'TensorBoard: {board} --logdir={runs.output_dir}/tensorboard')
  elif status == command_line.INTERRUPTED_STATUS:
    given = [a for a in sys.argv[1:] if not a.startswith('--output_dir')]
    again = shlex.quote(' '.join([*given, f'--output_dir={runs.output_dir}']))
    print(f'With make: make demo DEMO_ARGS={again}', file=sys.stderr)
  return status


if __name__ == '__main__':
  command_line.run(main, flag_file=_FLAG_FILE)

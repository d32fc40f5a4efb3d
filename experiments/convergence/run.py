# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Descends by all clients at once, through aggregators that are compared.

Appends to --results, leaving out what is there already.

  python -m experiments.convergence.run --results=results/descent.jsonl
  python -m experiments.convergence.run --results=results/uneven.jsonl \
      --dataset=fashion_mnist --num_clients=1000 --dirichlet_concentration=0.1 \
      --aggregator=plain_mean --aggregator=autotuned:modulus=1024
"""

import functools
import sys

from absl import flags

from experiments.common import command_line
from experiments.common import flag_groups
from experiments.convergence import flags as descent_flags

FLAGS = flags.FLAGS
flags.adopt_module_key_flags(descent_flags)


def main():
  configs = descent_flags.configs()
  options = dict(data_dir=FLAGS.data_dir, allow_download=FLAGS.allow_download)
  from experiments.convergence import descents

  with flag_groups.held_results(is_required=True) as file:
    descents.run_all(
      configs,
      file,
      options,
      functools.partial(print, file=sys.stderr, flush=True),
    )
    print(f'Results: {file.path}')


if __name__ == '__main__':
  command_line.run(
    main,
    on_interrupt='Interrupted. The same command continues from there.',
  )

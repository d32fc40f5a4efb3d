# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Measures the error of private means over bits and cohorts.

Appends to --results, leaving out what is there already, and prints the table.

  python -m experiments.distributed_dp.run --results=results/private.jsonl
  python -m experiments.distributed_dp.run --cohorts=10 --dim=4096 \
      --this_bits=5,6 --tff_bits=12 --results=results/small.jsonl
"""

import itertools

from absl import flags

from experiments.common import command_line
from experiments.common import flag_groups

FLAGS = flags.FLAGS
flag_groups.define_numbers('cohorts', [100, 1000], 'Clients in a round.', 2)
flag_groups.define_numbers('this_bits', [5, 6, 7, 8, 9, 10, 12], 'Of this.', 1)
flag_groups.define_numbers(
  'tff_bits', [10, 11, 12, 13, 14, 15, 16, 18, 20], "Of TFF's.", 1
)
flags.DEFINE_float('noise_multiplier', 1.0, 'z.', 1e-3)
flags.DEFINE_integer('dim', 2**16, 'Entries of a vector.', 1024)
flags.DEFINE_integer('seed', 0, 'Seed of the vectors.', 0)
flag_groups.define_results()
flag_groups.define_smoke()
_SMOKE = dict(cohorts=[5], dim=1024, this_bits=[6], tff_bits=[5, 16])


def main():
  with flag_groups.held_results(is_required=True) as file:
    _run(file)


def _run(file):
  values = {**FLAGS.flag_values_dict(), **flag_groups.smoke_values(_SMOKE)}
  options = {n: values[n] for n in ('noise_multiplier', 'dim', 'seed')}
  from experiments.distributed_dp import comparison
  from tff_autotune_secagg import simulation

  with command_line.user_errors():
    wanted = list(
      itertools.chain.from_iterable(
        comparison.cells(
          num_clients, values['this_bits'], values['tff_bits'], **options
        )
        for num_clients in values['cohorts']
      )
    )
    comparison.check(wanted)
  simulation.set_local_context()
  print(comparison.HEAD)
  for row in file.store_missing('distributed_dp', wanted, comparison.run):
    print(comparison.format_row(row), flush=True)


if __name__ == '__main__':
  command_line.run(
    main,
    on_interrupt='Interrupted. The same command continues from there.',
  )

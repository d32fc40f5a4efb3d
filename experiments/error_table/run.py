# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Measures the error of a round over moduli, cohorts and wrap probabilities.

Appends to --results, leaving out what is there already, and prints the table.

  python -m experiments.error_table.run --results=results/error_table.jsonl
  python -m experiments.error_table.run --moduli=16 --cohorts=1,10 --alphas= \
      --results=results/small_table.jsonl
"""

from absl import flags

from experiments.common import command_line
from experiments.common import flag_groups

FLAGS = flags.FLAGS
flag_groups.define_numbers(
  'moduli', [4, 16, 64, 256, 4096, 65536], 'Moduli.', 2
)
flag_groups.define_numbers(
  'cohorts', [1, 10, 100, 1000], 'Clients in a round.', 1
)
flag_groups.define_numbers(
  'alphas', [1e-2, 1e-3, 1e-4, 1e-6, 1e-8], "The paper's wrap probabilities."
)
flags.DEFINE_integer('dim', 2**13, 'Entries of a vector.', 1024)
flags.DEFINE_integer('num_rounds', 8, 'Rounds of the largest cohorts.', 1)
flags.DEFINE_integer('seed', 0, 'Seed of everything.', 0)
flag_groups.define_results()
flag_groups.define_smoke()
_SMOKE = dict(moduli=[16], cohorts=[1], alphas=[], dim=1024, num_rounds=1)


def main():
  with flag_groups.held_results(is_required=True) as file:
    _run(file)


def _run(file):
  values = {**FLAGS.flag_values_dict(), **flag_groups.smoke_values(_SMOKE)}
  from experiments.error_table import table

  with command_line.user_errors():
    cells = list(
      table.cells(
        *(values[name] for name in ('moduli', 'cohorts', 'alphas')),
        **{name: values[name] for name in ('dim', 'num_rounds', 'seed')},
      )
    )
    table.check(cells)
  print(table.HEAD)
  for row in file.store_missing('error_table', cells, table.run):
    print(table.format_row(row), flush=True)


if __name__ == '__main__':
  command_line.run(
    main,
    on_interrupt='Interrupted. The same command continues from there.',
  )

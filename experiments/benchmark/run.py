# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Times this package beside TFF and TFMOT.

Writes its rows to --results, if that is given, and prints a table. Leave the
machine alone meanwhile.

  python -m experiments.benchmark.run --results=results/benchmark.jsonl
"""

import dataclasses

from absl import flags

from experiments.benchmark import summary
from experiments.benchmark import timing
from experiments.common import command_line
from experiments.common import flag_groups
from experiments.common import results_file

FLAGS = flags.FLAGS
flags.DEFINE_multi_enum(
  'groups', list(timing.GROUPS), timing.GROUPS, 'What to time.'
)
flag_groups.define_fields(
  timing.Config,
  dims='Vector sizes.',
  round_dims='Vector sizes of whole rounds.',
  num_clients='Clients in a round.',
  aggregators='Names of the aggregators to time; none: all of them.',
  repeats='Timed calls of a case.',
  round_repeats='Timed rounds of a case.',
)
flag_groups.define_fields(timing.Config, at_least=2, modulus='Of the residues.')
flag_groups.define_results()
flag_groups.define_smoke()


def main():
  config = flag_groups.read_fields(timing.Config, smoke=timing.SMOKE)
  with flag_groups.held_results() as file:
    _run(config, file)


def _run(config, file):
  with command_line.user_errors():
    timing.check(config)
  from tff_autotune_secagg import simulation

  if any('round' in group for group in config.groups):
    simulation.set_local_context()
  settings = dataclasses.asdict(config)
  run = results_file.run_name(dict(settings, aggregator='benchmark'))
  rows = list(file.store(run, settings, timing.run(config), kind='time'))
  print(summary.format_table(rows))
  print()
  print(summary.format_pairs(rows))


if __name__ == '__main__':
  command_line.run(main)

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Counts the bytes of a masking protocol, by bits and clients.

Needs the `cryptography` package. Prints a table and writes its rows.

  python -m experiments.protocol_cost.run --results=results/protocol_cost.jsonl
"""

import dataclasses

from absl import flags

from experiments.common import command_line
from experiments.common import flag_groups
from experiments.common import results_file
from experiments.protocol_cost import settings

FLAGS = flags.FLAGS
flag_groups.define_fields(
  settings.Config,
  num_clients='Cohorts.',
  bits='Bits of a value.',
  dims='Entries of a vector.',
)
flag_groups.define_fields(
  settings.Config, at_least=0, seed='Seed of vectors and keys.'
)
flag_groups.define_results()
flag_groups.define_smoke()


def main():
  config = flag_groups.read_fields(settings.Config, smoke=settings.SMOKE)
  with flag_groups.held_results() as file:
    _run(config, file)


def _run(config, file):
  with command_line.user_errors():
    try:
      from experiments.protocol_cost import cost
    except ImportError as e:
      raise ValueError(f'The protocol needs what is not installed: {e}.') from e
    cost.check(config)
  values = dataclasses.asdict(config)
  run = results_file.run_name(dict(values, aggregator='protocol_cost'))
  rows = (dict(row, round=n) for n, row in enumerate(cost.run(config), 1))
  print(cost.format_table(list(file.store(run, values, rows))))


if __name__ == '__main__':
  command_line.run(main)

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Counts the bytes of a masking protocol, by bits and clients.

Needs the `cryptography` package. Prints a table and writes its rows.

  python -m experiments.protocol_cost.run --output=results/protocol_cost.jsonl
"""

import dataclasses

from absl import app
from absl import flags

from experiments.common import quiet  # isort: skip. Before TensorFlow is imported.
from experiments.common import flag_groups
from experiments.common import result_rows
from experiments.protocol_cost import cost

del quiet  # Imported for its side effect.

FLAGS = flags.FLAGS
flag_groups.define_fields(
  cost.Config,
  num_clients='Cohorts.',
  bits='Bits of a value.',
  dims='Entries of a vector.',
)
flag_groups.define_fields(
  cost.Config, at_least=0, seed='Seed of vectors and keys.'
)
flag_groups.define_output('results/protocol_cost.jsonl')


def main(argv):
  flag_groups.take_only_flags(argv)
  config = flag_groups.read_fields(cost.Config)
  settings = dataclasses.asdict(config)
  run = result_rows.run_name(dict(settings, aggregator='protocol_cost'))
  file = result_rows.ResultsFile(FLAGS.output)
  file.drop_rounds_after(run, 0)
  rows = (dict(row, round=n) for n, row in enumerate(cost.run(config), 1))
  print(cost.format_table(list(file.store(run, settings, rows))))


if __name__ == '__main__':
  app.run(main)

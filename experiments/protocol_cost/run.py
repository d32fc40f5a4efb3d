# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Counts the bytes of a masking protocol, by bits and clients.

  python -m experiments.protocol_cost.run --output=results/protocol_cost.jsonl

Needs the `cryptography` package. Prints a table and writes its rows.
"""

import dataclasses
import os

from absl import app
from absl import flags

from experiments.common import result_rows
from experiments.protocol_cost import cost

FLAGS = flags.FLAGS
flags.DEFINE_multi_integer('num_clients', [10, 30, 100], 'Cohorts.', 2)
flags.DEFINE_multi_integer('bits', [4, 8, 16], 'Bits of a value.', 1, 16)
flags.DEFINE_multi_integer('dims', [2**16, 2**20], 'Entries of a vector.', 1)
flags.DEFINE_integer('seed', 1, 'Seed of vectors and keys.', 0)
flags.DEFINE_string(
  'output', 'results/protocol_cost.jsonl', 'File for the rows.'
)


def main(argv):
  del argv  # Unused.
  config = cost.Config(
    num_clients=tuple(FLAGS.num_clients),
    bits=tuple(FLAGS.bits),
    dims=tuple(FLAGS.dims),
    seed=FLAGS.seed,
  )
  fields = dataclasses.asdict(config)
  run = result_rows.run_name(dict(fields, aggregator='protocol_cost'))
  file = result_rows.ResultsFile(FLAGS.output)
  if not file.has_run(run):
    file.append(
      dict(kind='run', run=run, config=fields, start=result_rows.now())
    )
  file.drop_rounds_after(run, 0)
  rows = []
  for number, row in enumerate(cost.run(config), 1):
    file.append(dict(kind='round', run=run, round=number, **row))
    rows.append(row)
  if os.path.exists(f'{FLAGS.output}.lock'):
    os.remove(f'{FLAGS.output}.lock')
  print(cost.format_table(rows))


if __name__ == '__main__':
  app.run(main)

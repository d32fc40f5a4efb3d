# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Soaks the aggregator: thousands of rounds of faults, each one checked.

  python -m experiments.soak.run --num_rounds=5000

Appends a row for every 50 rounds to --output and continues there when it was
interrupted. Exits with status 1 if a round broke a claim.
"""

import dataclasses
import json
import os
import shutil
import sys

from absl import app
from absl import flags

from experiments.common import quiet  # isort: skip. Before TensorFlow is imported.
import tensorflow_federated as tff

from experiments.common import result_rows
from experiments.soak import soak
import tff_autotune_secagg as tas

del quiet  # Imported for its side effect.

FLAGS = flags.FLAGS
flags.DEFINE_integer('num_rounds', 5000, 'Rounds of the script.', 1)
flags.DEFINE_integer('dim', 1024, 'Entries of a client vector.', 1)
flags.DEFINE_integer('modulus', 256, 'Modulus of the aggregator.', 2)
flags.DEFINE_boolean('dither', False, 'Round by dither.')
flags.DEFINE_integer('seed', 1, 'Seed of everything.', 0)
flags.DEFINE_string('output', 'results/soak.jsonl', 'File for the rows.')


def main(argv):
  del argv  # Unused.
  config = soak.Config(
    num_rounds=FLAGS.num_rounds,
    dim=FLAGS.dim,
    modulus=FLAGS.modulus,
    dither=FLAGS.dither,
    seed=FLAGS.seed,
  )
  fields = dict(dataclasses.asdict(config), aggregator='soak')
  run = result_rows.run_name(fields)
  file = result_rows.ResultsFile(FLAGS.output)
  folder = f'{FLAGS.output}.{run}.state'
  manager = tff.program.FileProgramStateManager(
    folder, keep_total=1, keep_first=False
  )
  tas.simulation.set_local_context()
  if not file.has_run(run):
    file.append(
      dict(
        kind='run',
        run=run,
        config=fields,
        start=result_rows.now(),
        environment=result_rows.environment(),
      )
    )
  for row in soak.run(config, state_manager=manager):
    file.drop_rounds_after(run, row['round'] - 1)
    file.append(dict(kind='round', run=run, **row))
    print(
      f'round {row["round"]}: {len(row["violations"])} violations, '
      f'{row["python_mib"]} + {row["worker_mib"]} MiB',
      flush=True,
    )
  rows = [r for r in result_rows.read(FLAGS.output) if r['run'] == run]
  summary = soak.summarize(rows)
  print(json.dumps(summary, indent=2))
  shutil.rmtree(folder, ignore_errors=True)
  if os.path.exists(f'{FLAGS.output}.lock'):
    os.remove(f'{FLAGS.output}.lock')
  sys.exit(1 if summary['violations'] else 0)


if __name__ == '__main__':
  app.run(main)

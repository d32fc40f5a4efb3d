# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Soaks the aggregator: thousands of rounds of faults, each one checked.

Appends a row for every 50 rounds to --output and continues there when it was
interrupted. Exits with status 1 if a round broke a claim.

  python -m experiments.soak.run --num_rounds=5000
"""

import json
import sys

from absl import app
from absl import flags

from experiments.common import quiet  # isort: skip. Before TensorFlow is imported.
from experiments.common import flag_groups
from experiments.common import result_rows
from experiments.soak import soak
from tff_autotune_secagg import simulation

del quiet  # Imported for its side effect.

FLAGS = flags.FLAGS
flag_groups.define_fields(
  soak.Config,
  num_rounds='Rounds of the script.',
  dim='Entries of a client vector.',
  dither='Round by dither.',
)
flag_groups.define_fields(
  soak.Config, at_least=2, modulus='Modulus of the aggregator.'
)
flag_groups.define_fields(soak.Config, at_least=0, seed='Seed of everything.')
flag_groups.define_output('results/soak.jsonl')


def main(argv):
  flag_groups.take_only_flags(argv)
  config = flag_groups.read_fields(soak.Config)
  simulation.set_local_context()
  file = result_rows.ResultsFile(FLAGS.output)
  for row in soak.run_to_file(config, file):
    print(
      f'round {row["round"]}: {len(row["violations"])} violations, '
      f'{row["python_mib"]} + {row["worker_mib"]} MiB',
      flush=True,
    )
  summary = soak.summarize(soak.rows_of(config, file))
  print(json.dumps(summary, indent=2))
  sys.exit(1 if summary['violations'] else 0)


if __name__ == '__main__':
  app.run(main)

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Times this package beside TFF and TFMOT.

Appends to --output, if it is given, and prints a table. Leave the machine alone
meanwhile.

  python -m experiments.benchmark.run --output=results/benchmark.jsonl
"""

import dataclasses

from absl import app
from absl import flags

from experiments.common import quiet  # isort: skip. Before TensorFlow is imported.
from experiments.benchmark import summary
from experiments.benchmark import timing
from experiments.common import flag_groups
from experiments.common import result_rows
from tff_autotune_secagg import simulation

del quiet  # Imported for its side effect.

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
flag_groups.define_output()
flag_groups.define_smoke()


def main(argv):
  flag_groups.take_only_flags(argv)
  config = flag_groups.read_fields(timing.Config)
  config = timing.smoke(config) if FLAGS.smoke else config
  if 'round' in config.groups:
    simulation.set_local_context()
  rows = timing.run(config)
  if FLAGS.output:
    settings = dataclasses.asdict(config)
    run = result_rows.run_name(dict(settings, aggregator='benchmark'))
    file = result_rows.ResultsFile(FLAGS.output)
    rows = file.store(run, settings, rows, kind='time')
  print(summary.format_table(list(rows)))


if __name__ == '__main__':
  app.run(main)

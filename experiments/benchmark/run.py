# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Times the plugin beside TFF and TFMOT; see experiments/README.md.

Appends to --output and prints a table. Leave the machine alone meanwhile.

  python -m experiments.benchmark.run \
      --output=experiments/benchmark/results/benchmark.jsonl
"""

from absl import app
from absl import flags

from experiments.common import quiet  # isort: skip. Before TensorFlow is imported.
import dataclasses

from experiments.benchmark import summary
from experiments.benchmark import timing
from experiments.common import result_rows
from tff_autotune_secagg import simulation

del quiet  # Imported for its side effect.

_DEFAULT = timing.Config()
_SMOKE = dict(
  dims=(1000,), round_dims=(1000,), num_clients=(2,), repeats=1, round_repeats=1
)

FLAGS = flags.FLAGS
flags.DEFINE_multi_enum(
  'groups', list(_DEFAULT.groups), timing.GROUPS, 'What to time.'
)
flags.DEFINE_list('dims', [str(d) for d in _DEFAULT.dims], 'Vector sizes.')
flags.DEFINE_list(
  'round_dims',
  [str(d) for d in _DEFAULT.round_dims],
  'Vector sizes of whole rounds.',
)
flags.DEFINE_list(
  'num_clients', [str(n) for n in _DEFAULT.num_clients], 'Round sizes.'
)
flags.DEFINE_list(
  'aggregators', [], 'Names of the aggregators to time; none: all of them.'
)
flags.DEFINE_integer('repeats', _DEFAULT.repeats, 'Timed calls of a case.', 1)
flags.DEFINE_integer(
  'round_repeats', _DEFAULT.round_repeats, 'Timed rounds of a case.', 1
)
flags.DEFINE_integer('modulus', _DEFAULT.modulus, 'Of the residues.', 2)
flags.DEFINE_string('output', None, 'JSON lines file to append to.')
flags.DEFINE_bool('smoke', False, 'Tiny sizes, in seconds.')


def main(argv):
  del argv  # Unused.
  config = timing.Config(
    groups=tuple(FLAGS.groups),
    dims=tuple(int(d) for d in FLAGS.dims),
    round_dims=tuple(int(d) for d in FLAGS.round_dims),
    num_clients=tuple(int(n) for n in FLAGS.num_clients),
    aggregators=tuple(FLAGS.aggregators),
    repeats=FLAGS.repeats,
    round_repeats=FLAGS.round_repeats,
    modulus=FLAGS.modulus,
  )
  if FLAGS.smoke:
    config = dataclasses.replace(config, **_SMOKE)
  if 'round' in config.groups:
    simulation.set_local_context()
  output = result_rows.ResultsFile(FLAGS.output) if FLAGS.output else None
  if output:
    output.append(
      dict(
        kind='run',
        run='benchmark',
        config=dataclasses.asdict(config),
        environment=result_rows.environment(),
      )
    )
  rows = []
  for row in timing.run(config):
    rows.append(row)
    if output:
      output.append(dict(kind='time', run='benchmark', **row))
  print(summary.format_table(rows))


if __name__ == '__main__':
  app.run(main)

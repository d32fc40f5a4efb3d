# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Measures the error of private means over bits and cohorts.

Appends to --output, leaving out what is there already, and prints the table.

  python -m experiments.distributed_dp.run --output=results/distributed_dp.jsonl
  python -m experiments.distributed_dp.run --cohorts=10 --dim=4096 \
      --this_bits=5,6 --tff_bits=12 --output=results/small.jsonl
"""

from absl import app
from absl import flags

from experiments.common import quiet  # isort: skip. Before TensorFlow is imported.
from experiments.common import flag_groups
from experiments.common import result_rows
from experiments.distributed_dp import comparison
import tff_autotune_secagg as autotune

del quiet  # Imported for its side effect.

FLAGS = flags.FLAGS
flag_groups.define_numbers('cohorts', [100, 1000], 'Clients in a round.')
flag_groups.define_numbers('this_bits', [5, 6, 7, 8, 9, 10, 12], 'Of this.')
flag_groups.define_numbers(
  'tff_bits', [10, 11, 12, 13, 14, 15, 16, 18, 20], "Of TFF's."
)
flags.DEFINE_float('noise_multiplier', 1.0, 'z.', 1e-3)
flags.DEFINE_integer('dim', 2**16, 'Entries of a vector.', 1024)
flags.DEFINE_integer('seed', 0, 'Seed of the vectors.', 0)
flag_groups.define_output()


def main(argv):
  flag_groups.take_only_flags(argv)
  autotune.simulation.set_local_context()
  print(comparison.HEAD)
  file = result_rows.ResultsFile(FLAGS.output)
  for num_clients in FLAGS.cohorts:
    wanted = comparison.cells(
      num_clients,
      FLAGS.this_bits,
      FLAGS.tff_bits,
      noise_multiplier=FLAGS.noise_multiplier,
      dim=FLAGS.dim,
      seed=FLAGS.seed,
    )
    for row in comparison.run_missing(wanted, file):
      print(comparison.format_row(row), flush=True)


if __name__ == '__main__':
  flags.mark_flag_as_required('output')
  app.run(main)

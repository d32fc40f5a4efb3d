# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Measures the error of a round over moduli, cohorts and wrap probabilities.

Appends to --output, leaving out what is there already, and prints the table.

  python -m experiments.error_table.run --output=results/error_table.jsonl
  python -m experiments.error_table.run --moduli=16 --cohorts=1,10 --alphas= \
      --output=results/small_table.jsonl
"""

from absl import app
from absl import flags

from experiments.common import quiet  # isort: skip. Before TensorFlow is imported.
from experiments.common import flag_groups
from experiments.common import result_rows
from experiments.error_table import table

del quiet  # Imported for its side effect.

FLAGS = flags.FLAGS
flag_groups.define_numbers('moduli', [4, 16, 64, 256, 4096, 65536], 'Moduli.')
flag_groups.define_numbers('cohorts', [1, 10, 100, 1000], 'Clients in a round.')
flag_groups.define_numbers(
  'alphas', [1e-2, 1e-3, 1e-4], "The paper's wrap probabilities."
)
flags.DEFINE_integer('dim', 2**13, 'Entries of a vector.', 1024)
flags.DEFINE_integer('num_rounds', 8, 'Rounds of the largest cohorts.', 1)
flags.DEFINE_integer('seed', 0, 'Seed of everything.', 0)
flag_groups.define_output()


def main(argv):
  flag_groups.take_only_flags(argv)
  cells = table.cells(
    FLAGS.moduli,
    FLAGS.cohorts,
    FLAGS.alphas,
    dim=FLAGS.dim,
    num_rounds=FLAGS.num_rounds,
    seed=FLAGS.seed,
  )
  print(table.HEAD)
  file = result_rows.ResultsFile(FLAGS.output)
  for row in table.run_missing(cells, file):
    print(table.format_row(row), flush=True)


if __name__ == '__main__':
  flags.mark_flag_as_required('output')
  app.run(main)

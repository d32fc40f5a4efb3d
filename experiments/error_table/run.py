# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Measures the error of a round over moduli, cohorts and wrap probabilities.

Appends to --output, leaving out what is there already, and prints the table.

  python -m experiments.error_table.run
  python -m experiments.error_table.run --moduli=16 --cohorts=1,10 --alphas= \
      --output=/tmp/table.jsonl
"""

import dataclasses
import os

from absl import app
from absl import flags

from experiments.common import quiet  # isort: skip. Before TensorFlow is imported.
from experiments.common import result_rows
from experiments.error_table import table

del quiet  # Imported for its side effect.

FLAGS = flags.FLAGS
_FOLDER = os.path.dirname(__file__)
_RUN = 'error_table'
flags.DEFINE_list('moduli', '4,16,64,256,4096,65536', 'Moduli.')
flags.DEFINE_list('cohorts', '1,10,100,1000', 'Clients in a round.')
flags.DEFINE_list('alphas', '1e-2,1e-3,1e-4', "The paper's wrap probabilities.")
flags.DEFINE_integer('dim', 2**13, 'Entries of a vector.', lower_bound=1024)
flags.DEFINE_integer(
  'num_rounds', 8, 'Rounds of the largest cohorts.', lower_bound=1
)
flags.DEFINE_integer('seed', 0, 'Seed of everything.', lower_bound=0)
flags.DEFINE_string(
  'output',
  os.path.join(_FOLDER, 'results', 'error_table.jsonl'),
  'JSON lines file.',
)


def main(argv):
  del argv  # Unused.
  file = result_rows.ResultsFile(FLAGS.output)
  fields = [field.name for field in dataclasses.fields(table.Cell)]
  done = [
    [row[field] for field in fields]
    for row in file.rows()
    if row['kind'] == 'round'
  ]
  num_new = 0
  for cell in table.cells(
    [int(modulus) for modulus in FLAGS.moduli],
    [int(cohort) for cohort in FLAGS.cohorts],
    [float(alpha) for alpha in FLAGS.alphas if alpha],
    dim=FLAGS.dim,
    num_rounds=FLAGS.num_rounds,
    seed=FLAGS.seed,
  ):
    if [getattr(cell, field) for field in fields] in done:
      continue
    row = table.run(cell)
    if not file.has_run(_RUN):
      file.append(
        dict(kind='run', run=_RUN, config={}, **result_rows.environment())
      )
    file.append(
      dict(row, kind='round', run=_RUN, round=len(done) + num_new + 1)
    )
    num_new += 1
    print(table.format_table([row]).splitlines()[1], flush=True)
  print(f'{num_new} new rows in {FLAGS.output}')


if __name__ == '__main__':
  app.run(main)

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Draws the error table: NMSE and bits above the bound against the modulus.

python -m experiments.error_table.plot
"""

import os

from absl import app
from absl import flags

from experiments.common import plots
from experiments.error_table import figure

FLAGS = flags.FLAGS
_FOLDER = os.path.dirname(__file__)
flags.DEFINE_string(
  'input', os.path.join(_FOLDER, 'results', 'error_table.jsonl'), 'Rows.'
)
flags.DEFINE_string(
  'output', os.path.join(_FOLDER, 'figures', 'error_table.png'), 'Picture.'
)


def main(argv):
  del argv  # Unused.
  os.makedirs(os.path.dirname(os.path.abspath(FLAGS.output)), exist_ok=True)
  rows = figure.read(FLAGS.input)
  print(plots.save(figure.draw(rows), FLAGS.output))


if __name__ == '__main__':
  app.run(main)

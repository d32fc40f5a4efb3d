# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Prints what the forecast would have cost on the recorded trainings.

  python -m experiments.forecasting.run \
      --flagfile=experiments/forecasting/configs/forecasting.flags
"""

import os

from absl import app
from absl import flags

from experiments.common import quiet  # isort: skip. Before TensorFlow is imported.
from experiments.common import flag_groups
from experiments.common import result_rows
from experiments.forecasting import table

del quiet  # Imported for its side effect.

FLAGS = flags.FLAGS
flag_groups.define_results()
flag_groups.define_numbers('replay_moduli', [16, 64, 256], 'Of the replay.')
flag_groups.define_numbers(
  'blind_moduli', [16, 32], 'To count blind rounds of.'
)


def main(argv):
  flag_groups.take_only_flags(argv)
  ratios, blind = [], []
  print('trace, modulus, runs x rounds, from round: NMSE of the best choice in')
  print('hindsight; multiples of it: the last round and 0.1, the forecast')
  for path in FLAGS.results:
    name = os.path.splitext(os.path.basename(path))[0]
    trained = result_rows.read(path)
    found = table.rows(name, trained, FLAGS.replay_moduli)
    for row in found:
      print(
        '{trace:24s} {modulus:5d} {runs} x {rounds:3d} {first_round:2d}: '
        '{best:.4f} {last_round:5.2f} {forecast:5.2f}'.format(**row),
        flush=True,
      )
    ratios += found
    blind += table.blind_rows(name, trained, FLAGS.blind_moduli)
  print(f'geometric mean, runs of {table.MIN_ROUNDS} rounds or more')
  for first in (5, 2):
    for rule in ('last_round', 'forecast'):
      print(f'  from {first}, {rule}: {table.summary(ratios, first, rule)}')
  print('blind rounds: recorded; replayed and mean error, last round, forecast')
  for row in blind:
    print(
      '{trace:24s} {modulus:5d} of {rounds}: {recorded}; {last_round} '
      '{last_round_error:.3f}, {forecast} {forecast_error:.3f}'.format(**row)
    )


if __name__ == '__main__':
  flags.mark_flags_as_required(['results'])
  app.run(main)

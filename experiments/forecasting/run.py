# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Prints what the forecast would have cost on the recorded trainings.

  python -m experiments.forecasting.run \
      --flagfile=experiments/forecasting/configs/forecasting.flags
"""

import os

from absl import flags

from experiments.common import command_line
from experiments.common import flag_groups

FLAGS = flags.FLAGS
flag_groups.define_results()
flag_groups.define_numbers('replay_moduli', [16, 64, 256], 'Of the replay.', 2)
flag_groups.define_numbers(
  'blind_moduli', [16, 32], 'To count blind rounds of.', 2
)
flag_groups.define_smoke()
_SMOKE = dict(replay_moduli=[256], blind_moduli=[])


def main():
  values = {**FLAGS.flag_values_dict(), **flag_groups.smoke_values(_SMOKE)}
  trained = {
    path: flag_groups.read_rows(('aggregator',), paths=[path])
    for path in FLAGS.results
  }
  from experiments.forecasting import table

  ratios, blind = [], []
  print('trace, modulus, runs x rounds, from round: NMSE of the best choice in')
  print('hindsight; multiples of it: the last round and 0.1, the forecast')
  for path, rows in trained.items():
    name = os.path.splitext(os.path.basename(path))[0]
    with command_line.user_errors():
      found = table.rows(name, rows, values['replay_moduli'])
    for row in found:
      print(
        '{trace:24s} {modulus:5d} {runs} x {rounds:3d} {first_round:2d}: '
        '{best:.4f} {last_round:5.2f} {forecast:5.2f}'.format(**row),
        flush=True,
      )
    ratios += found
    blind += table.blind_rows(name, rows, values['blind_moduli'])
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
  command_line.run(main, required=['results'])

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Draws recorded sizes of sums with their forecast, band and bin size.

  python -m experiments.forecasting.plot \
      --flagfile=experiments/forecasting/configs/figures/forecasting.flags
"""

from absl import flags

from experiments.common import plot_binary

FLAGS = flags.FLAGS
flags.DEFINE_integer('trace_seed', 1, 'Seed of the run to draw.')
flags.DEFINE_integer('trace_rounds', None, 'Rounds to draw; all if not given.')
flags.DEFINE_integer('replay_modulus', 256, 'Modulus of the replay.', 2)


def _draw(rows, title):
  from experiments.forecasting import figure
  from experiments.forecasting import recorded

  sizes = recorded.sizes(rows)
  if FLAGS.trace_seed not in sizes:
    raise ValueError(
      f'--trace_seed must be one of {sorted(sizes)}, found {FLAGS.trace_seed}.'
    )
  setting = recorded.setting(rows, FLAGS.replay_modulus)
  return figure.draw(
    setting, sizes[FLAGS.trace_seed][: FLAGS.trace_rounds], title
  )


main = plot_binary.main_of(_draw, ('aggregator',))

if __name__ == '__main__':
  plot_binary.run(main)

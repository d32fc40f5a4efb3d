# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Draws figures from the results of training runs. Runs nothing.

  python -m experiments.training.plot \
      --results=experiments/training/results/fashion_iid.jsonl \
      --figure=accuracy --output=fashion_iid.png
"""

from absl import flags

from experiments.common import plot_binary

# The functions of `figures` and `byte_figures` that draw them, and how.
FIGURES = {
  'training': ('training_figure', {}),
  'accuracy': ('accuracy_figure', dict(zoom=False)),
  'accuracy_zoom': ('accuracy_figure', dict(zoom=True)),
  'alpha': ('alpha_figure', {}),
  'difference': ('difference_figure', {}),
  'tuning': ('tuning_figure', {}),
  'prediction': ('prediction_figure', {}),
  'accuracy_by_bytes': ('accuracy_by_bytes_figure', {}),
  'accuracy_over_bytes': ('accuracy_over_bytes_figure', {}),
}
_OF_BYTES = 'bytes_figure'
_FIGURE = flags.DEFINE_enum(
  'figure', 'accuracy', list(FIGURES), 'What to draw.'
)


def _draw(rows, title):
  from experiments.training import byte_figures
  from experiments.training import figures

  name, options = FIGURES[_FIGURE.value]
  module = byte_figures if name.endswith(_OF_BYTES) else figures
  return getattr(module, name)(rows, title=title, **options)


main = plot_binary.main_of(_draw, ('test_accuracy',))

if __name__ == '__main__':
  plot_binary.run(main)

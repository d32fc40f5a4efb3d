# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
import numpy as np

from experiments.training import byte_figures


def _run(aggregator, num_bytes, accuracies):
  return [
    dict(
      run=aggregator,
      round=number,
      config=dict(aggregator=aggregator, seed=1, clients_per_round=10),
      bits_per_coordinate=8,
      bytes_per_client=num_bytes,
      test_accuracy=accuracy,
    )
    for number, accuracy in accuracies.items()
  ]


class AccuracyOverBytesTest(absltest.TestCase):
  def test_rounds_become_bytes_of_updates_and_of_both_directions(self):
    rows = _run('plain_mean', 4000, {1: 0.1, 10: 0.5, 20: 0.6})
    rows += _run('kashin', 1000, {1: 0.1, 10: 0.4, 20: 0.7})
    panels = byte_figures.accuracy_over_bytes_figure(rows).axes
    # The model takes 4,000 bytes, keys of ten clients 2,676.
    for axes, plain, kashin in zip(panels, (4000, 8000), (1000, 7676)):
      curves = [line.get_xydata() for line in axes.lines]
      rounds = np.array([1, 10, 20])
      np.testing.assert_allclose(
        curves,
        [
          np.stack([plain * rounds, [10.0, 50.0, 60.0]], axis=1),
          np.stack([kashin * rounds, [10.0, 40.0, 70.0]], axis=1),
        ],
      )
      # The start is out of view, the rest is not.
      low, high = axes.get_ylim()
      self.assertBetween(low, 11, 40)
      self.assertBetween(high, 70, 75)

  def test_rows_that_do_not_say_what_the_model_took_are_refused(self):
    with self.assertRaisesRegex(ValueError, 'some of plain_mean, found none'):
      byte_figures.accuracy_over_bytes_figure(_run('kashin', 1000, {1: 0.1}))


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `comparison`; `final_accuracy_test` has what it refuses."""

from absl.testing import absltest

from experiments.common import two_way
from experiments.training import comparison


def _row(aggregator, number, **others):
  config = dict(aggregator=aggregator, seed=1, clients_per_round=10)
  return dict(
    run=aggregator,
    round=number,
    bytes_per_client=1000,
    config=config,
    **others,
  )


class EvaluatedRunsTest(absltest.TestCase):
  def test_rows_are_in_the_order_of_rounds(self):
    rows = [
      _row('kashin', 3, test_accuracy=0.3),
      _row('plain_mean', 3, test_accuracy=0.2),
      _row('kashin', 1, test_accuracy=0.1),
      _row('kashin', 2),
    ]
    runs = comparison.evaluated_runs(rows)
    self.assertEqual(
      [[(row['run'], row['round']) for row in run] for run in runs],
      [[('kashin', 1), ('kashin', 3)], [('plain_mean', 3)]],
    )


class BytesTest(absltest.TestCase):
  def test_both_directions_and_keys(self):
    rows = [
      _row('kashin', 1, test_accuracy=0.1, download_bytes_per_client=300),
      _row('plain_mean', 1, test_accuracy=0.1),
      _row('central_dp', 1, test_accuracy=0.1),
    ]
    runs = comparison.evaluated_runs(rows)
    # Old rows take the plain mean's update for the model. Keys of ten clients
    # are 2,676 bytes.
    self.assertEqual(
      comparison.bytes_of_a_round(runs),
      {
        'kashin': (1000, 3976),
        'plain_mean': (1000, 2000),
        'central_dp': (1000, 2000),
      },
    )
    # Without it nobody knows.
    self.assertEqual(
      comparison.bytes_of_a_round([runs[0], runs[2]]),
      {'kashin': (1000, 3976), 'central_dp': (1000, None)},
    )


class DifferenceTextTest(absltest.TestCase):
  def test_with_and_without_an_interval(self):
    text = comparison.difference_text
    self.assertEqual(text(None), '-')
    self.assertEqual(text(two_way.Difference(0.25)), '+0.25')
    self.assertEqual(text(two_way.Difference(-0.5, 0.25)), '-0.50 ± 0.25')
    self.assertEqual(
      text(two_way.Difference(-7.5, 2.5), digits=1), '-7.5 ± 2.5'
    )


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `rounds_to_accuracy` on rows whose answer can be seen."""

from absl.testing import absltest
from absl.testing import parameterized

from experiments.training import rounds_to_accuracy


def _run(aggregator, seed, accuracies, num_bytes=1000, model_bytes=4000):
  """Rows of a run that is evaluated every five rounds, from the fifth on."""
  rows = []
  for index, accuracy in enumerate(accuracies, 1):
    config = dict(aggregator=aggregator, seed=seed, clients_per_round=10)
    row = dict(
      run=f'{aggregator}-{seed}',
      bits_per_coordinate=8,
      bytes_per_client=num_bytes,
      download_bytes_per_client=model_bytes,
      config=config,
    )
    rows.append(dict(row, round=5 * index - 1))  # Not evaluated.
    rows.append(dict(row, round=5 * index, test_accuracy=accuracy))
  return rows


def _cells(table):
  return [
    [cell.strip() for cell in line.split('|')[1:-1]]
    for line in table.splitlines()
  ]


class FirstRoundTest(parameterized.TestCase):
  @parameterized.parameters(
    # A fourth of the way from round 10 to round 15.
    ([0.5, 0.6, 0.8], 0.65, 11.25),
    # An evaluation that has it to the point.
    ([0.5, 0.75, 0.8], 0.75, 10.0),
    # Falls again later, and fell before.
    ([0.5, 0.25, 0.75, 0.1], 0.5, 5.0),
    ([0.25, 0.0, 0.5, 0.1], 0.375, 13.75),
    # At the first evaluation, or never.
    ([0.9, 0.95], 0.5, 5.0),
    ([0.5, 0.6], 0.7, None),
  )
  def test_interpolates_around_the_first_crossing(
    self, accuracies, accuracy, expected
  ):
    run = [
      row for row in _run('kashin', 1, accuracies) if 'test_accuracy' in row
    ]
    found = rounds_to_accuracy.first_round(run, accuracy)
    if expected is None:
      self.assertIsNone(found)
    else:
      self.assertAlmostEqual(found, expected)


class ByAggregatorTest(absltest.TestCase):
  def _rows(self):
    # To 0.5: the plain mean after 10 and 20 rounds, the others after 5 and 10
    # and after 15 and 15.
    rows = []
    for seed, plain, kashin, other in (
      (1, [0.4, 0.5, 0.6, 0.7], [0.5, 0.6, 0.7, 0.8], [0.0, 0.2, 0.5, 0.6]),
      (2, [0.1, 0.2, 0.4, 0.5], [0.4, 0.5, 0.6, 0.7], [0.1, 0.3, 0.5, 0.6]),
    ):
      rows += _run('plain_mean', seed, plain, 4000)
      rows += _run('kashin', seed, kashin, 1000)
      rows += _run('rotated_quantization:bits=4', seed, other, 500)
    return rows

  def test_means_and_intervals_are_those_by_hand(self):
    plain, kashin, other = rounds_to_accuracy.by_aggregator(self._rows(), 0.5)
    # The t quantile of one degree of freedom is 12.7062; of two values that are
    # d apart the interval is as wide as 12.7062 d / 2 to either side.
    self.assertAlmostEqual(plain.rounds.value, 15.0)
    self.assertAlmostEqual(plain.rounds.half_width, 12.7062 * 5, places=2)
    self.assertAlmostEqual(kashin.rounds.value, 7.5)
    self.assertAlmostEqual(kashin.rounds.half_width, 12.7062 * 2.5, places=2)
    self.assertAlmostEqual(other.rounds.half_width, 0.0)
    # Bytes of updates, then with the model and, under masks, with keys.
    self.assertAlmostEqual(plain.update_bytes.value, 15 * 4000)
    self.assertAlmostEqual(plain.round_bytes.value, 15 * 8000)
    self.assertAlmostEqual(kashin.update_bytes.value, 7.5 * 1000)
    self.assertAlmostEqual(kashin.round_bytes.value, 7.5 * (5000 + 2676))
    self.assertAlmostEqual(other.round_bytes.value, 15 * 4500)

  def test_differences_are_paired_and_pooled(self):
    plain, kashin, other = rounds_to_accuracy.by_aggregator(self._rows(), 0.5)
    # Pairs of -5 and -10 rounds; and of 5 and -5.
    self.assertAlmostEqual(kashin.rounds_paired.mean, -7.5)
    self.assertAlmostEqual(
      kashin.rounds_paired.half_width, 12.7062 * 2.5, places=2
    )
    self.assertAlmostEqual(other.rounds_paired.mean, 0.0)
    self.assertAlmostEqual(other.rounds_paired.half_width, 63.53, places=2)
    self.assertIsNone(plain.rounds_paired)
    # All six: less the effects of arm and seed, -2.5 and 2.5 are left of the
    # plain mean, nothing of kashin, and 2.5 and -2.5 of the other. The squares
    # sum up to 25, with two degrees of freedom, whose t quantile is 4.3027.
    for found, mean in ((kashin, -7.5), (other, 0.0)):
      self.assertAlmostEqual(found.rounds_difference.mean, mean)
      self.assertAlmostEqual(
        found.rounds_difference.half_width, 4.3027 * 12.5**0.5, places=2
      )
    # Bytes pair seed by seed: 5 * 7676 - 10 * 8000 and 10 * 7676 - 20 * 8000.
    self.assertAlmostEqual(kashin.bytes_paired.mean, -62430)
    self.assertAlmostEqual(
      kashin.bytes_paired.half_width, 12.7062 * 20810, delta=10
    )

  def test_without_all_seeds_there_is_a_count_and_no_mean(self):
    # Only seed 1 of the plain mean comes to 0.65.
    plain, kashin, other = rounds_to_accuracy.by_aggregator(self._rows(), 0.65)
    self.assertEqual((plain.num_reached, plain.repeats), (1, 2))
    self.assertEqual((kashin.num_reached, other.num_reached), (2, 0))
    self.assertIsNone(plain.rounds)
    self.assertAlmostEqual(kashin.rounds.value, (12.5 + 17.5) / 2)
    # Nor a difference from a reference that is not always there.
    self.assertIsNone(kashin.rounds_difference)
    self.assertIsNone(kashin.rounds_paired)
    self.assertIsNone(kashin.bytes_paired)
    found = rounds_to_accuracy.by_aggregator(self._rows(), 0.65, 'kashin')
    self.assertAlmostEqual(found[1].rounds_difference.mean, 0.0)

  def test_runs_that_have_not_finished_or_are_there_twice_are_refused(self):
    rows = self._rows()
    with self.assertRaisesRegex(ValueError, 'rows` must be of whole runs'):
      rounds_to_accuracy.by_aggregator(rows[:-1], 0.5)
    again = [dict(row, run='again') for row in rows if row['run'] == 'kashin-1']
    with self.assertRaisesRegex(ValueError, 'one run of kashin with seed 1'):
      rounds_to_accuracy.by_aggregator(rows + again, 0.9)


class TableTest(absltest.TestCase):
  def test_cells(self):
    rows = _run('plain_mean', 1, [0.4, 0.5], 4_000_000, 4_000_000)
    rows += _run('plain_mean', 2, [0.2, 0.5], 4_000_000, 4_000_000)
    rows += _run('rotated_quantization', 1, [0.5, 0.6], 1_000_000, 4_000_000)
    rows += _run('rotated_quantization', 2, [0.5, 0.6], 1_000_000, 4_000_000)
    rows += _run('central_dp', 1, [0.1, 0.2], 1_000_000, 4_000_000)
    found = rounds_to_accuracy.by_aggregator(rows, 0.5)
    head, _, *lines = _cells(rounds_to_accuracy.format_table(found))
    self.assertEqual(
      head,
      [
        'aggregator',
        'reached',
        'rounds',
        'MB up',
        'MB in all',
        'rounds minus `plain_mean`, paired',
        'pooled',
        'MB in all minus `plain_mean`, paired',
      ],
    )
    self.assertEqual(
      lines,
      [
        [
          '`plain_mean`',
          '2 of 2',
          '10.0 ± 0.0',
          '40.00 ± 0.00',
          '80.00 ± 0.00',
          '-',
          '+0.0',
          '-',
        ],
        [
          '`rotated_quantization`',
          '2 of 2',
          '5.0 ± 0.0',
          '5.00 ± 0.00',
          '25.00 ± 0.00',
          '-5.0 ± 0.0',
          '-5.0 ± 0.0',
          '-55.00 ± 0.00',
        ],
        ['`central_dp`', '0 of 1', *['-'] * 6],
      ],
    )

  def test_one_run_has_no_interval_and_old_rows_no_bytes_of_the_model(self):
    rows = _run('kashin', 1, [0.4, 0.5])
    for row in rows:
      del row['download_bytes_per_client']
    found = rounds_to_accuracy.by_aggregator(rows, 0.5)
    (cells,) = _cells(rounds_to_accuracy.format_table(found))[2:]
    self.assertEqual(
      cells, ['`kashin`', '1 of 1', '10.0', '0.01', '-', '-', '-', '-']
    )

  def test_the_note_says_what_is_shown(self):
    for words in ('linear', 'paired', 'pooled', 'not all seeds', 'keys'):
      self.assertIn(words, rounds_to_accuracy.NOTE)


if __name__ == '__main__':
  absltest.main()

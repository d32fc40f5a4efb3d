# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `final_accuracy` on rows whose answer can be seen."""

from absl.testing import absltest

from experiments.training import final_accuracy


def _run(aggregator, seed, accuracies):
  """Rows of a run; None where a round was not evaluated."""
  rows = []
  for number, accuracy in enumerate(accuracies, 1):
    row = dict(
      run=f'{aggregator}-{seed}',
      round=number,
      bits_per_coordinate=8,
      bytes_per_client=1000,
      config=dict(aggregator=aggregator, seed=seed, clients_per_round=10),
    )
    if accuracy is not None:
      row['test_accuracy'] = accuracy
    rows.append(row)
  return rows


class ByAggregatorTest(absltest.TestCase):
  def test_averages_the_evaluations_of_the_last_sixth(self):
    # Of 12 rounds, the last two, and the two before.
    accuracies = [0.1] * 8 + [0.2, 0.4, 0.3, 0.5]
    (found,) = final_accuracy.by_aggregator(_run('kashin', 1, accuracies))
    self.assertAlmostEqual(found['mean'], 40.0)
    self.assertAlmostEqual(found['rise'], 10.0)
    self.assertEqual((found['rounds'], found['repeats']), (12, 1))
    self.assertIsNone(found['difference'])
    (found,) = final_accuracy.by_aggregator(_run('kashin', 1, accuracies), 1.0)
    evaluated = [100 * share for share in accuracies if share is not None]
    self.assertAlmostEqual(found['mean'], sum(evaluated) / len(evaluated))
    self.assertIsNone(found['rise'])

  def test_differences_are_taken_within_a_seed(self):
    rows = []
    for seed, level in ((1, 0.5), (2, 0.7), (3, 0.9)):
      rows += _run('plain_mean', seed, [level])
      rows += _run('kashin', seed, [level + 0.01])
    rows += _run('kashin', 4, [0.0])  # Without a partner.
    reference, found = final_accuracy.by_aggregator(rows)
    self.assertEqual(reference['aggregator'], 'plain_mean')
    self.assertAlmostEqual(reference['mean'], 70.0)
    self.assertGreater(reference['interval'], 40.0)
    self.assertAlmostEqual(found['difference'].mean, 1.0)
    self.assertLess(found['difference'].half_width, 1e-9)
    self.assertAlmostEqual(found['paired'].mean, 1.0)
    self.assertLess(found['paired'].half_width, 1e-9)
    self.assertIsNone(reference['paired'])
    self.assertEqual(found['repeats'], 4)
    self.assertIsNone(found['rise'])

  def test_runs_with_a_coded_model_are_an_arm_of_their_own(self):
    rows = _run('plain_mean', 1, [0.5]) + _run('kashin', 1, [0.6])
    coded = _run('kashin', 2, [0.7])
    for row in coded:
      row['config'].update(seed=1, model_download_bits=8)
      row.update(run='coded', download_bytes_per_client=250)
    found = final_accuracy.by_aggregator(rows + coded)
    self.assertEqual(
      [point['arm'] for point in found],
      ['plain_mean', 'kashin', 'kashin down=8'],
    )
    self.assertAlmostEqual(found[2]['difference'].mean, 20.0)
    # Update, model and keys; the model of old rows is as large as a plain sum.
    self.assertEqual(found[1]['round_bytes'] - found[2]['round_bytes'], 750)
    self.assertIn('`kashin down=8`', final_accuracy.format_table(found))

  def test_another_reference(self):
    rows = []
    for seed, level in ((1, 0.5), (2, 0.7)):
      rows += _run('plain_mean', seed, [level])
      rows += _run('kashin', seed, [level + 0.01 * seed])
    found = final_accuracy.by_aggregator(rows, reference='kashin')
    self.assertAlmostEqual(found[0]['difference'].mean, -1.5)
    self.assertAlmostEqual(found[1]['difference'].mean, 0.0)
    self.assertEqual(found[1]['round_bytes'], 1000 + 1000 + 2676)
    head = final_accuracy.format_table(found, 'kashin').splitlines()[0]
    self.assertIn('| minus `kashin` ', head)

  def test_two_runs_with_other_settings_are_not_mixed(self):
    rows = _run('plain_mean', 1, [0.5]) + _run('plain_mean', 1, [0.6])
    rows[1]['run'] = 'another'
    with self.assertRaisesRegex(
      ValueError, 'one run of plain_mean with seed 1, found two'
    ):
      final_accuracy.by_aggregator(rows)

  def test_settings_that_differ_are_named(self):
    rows = _run('plain_mean', 1, [0.5]) + _run('kashin', 1, [0.6])
    for row, name in zip(rows, ('iid', 'dirichlet')):
      row['config']['partition'] = name
    for compare in (
      final_accuracy.by_aggregator,
      final_accuracy.differences_by_round,
    ):
      with self.assertRaisesRegex(
        ValueError,
        'of runs with one partition, found iid and dirichlet: choose',
      ):
        compare(rows)

  def test_a_run_that_has_not_finished_is_named(self):
    rows = _run('plain_mean', 1, [0.5, 0.6]) + _run('kashin', 1, [0.5])
    with self.assertRaisesRegex(
      ValueError, 'kashin with seed 1 has come to round 1 and others to 2: let'
    ):
      final_accuracy.by_aggregator(rows)
    shorter = [row for row in rows if row['round'] == 1]
    self.assertLen(final_accuracy.by_aggregator(shorter), 2)

  def test_another_partition_is_another_block(self):
    rows = _run('plain_mean', 1, [0.5]) + _run('kashin', 1, [0.6])
    self.assertIsNotNone(final_accuracy.by_aggregator(rows)[1]['difference'])
    rows[1]['config']['partition_seed'] = 7
    self.assertIsNone(final_accuracy.by_aggregator(rows)[1]['difference'])

  def test_table_has_intervals_and_bounds_where_there_are_repeats(self):
    rows = []
    for seed, level, gain in ((1, 0.5, 0.01), (2, 0.7, 0.03)):
      rows += _run('plain_mean', seed, [level])
      rows += _run('kashin', seed, [level + gain])
    cells = final_accuracy.format_table(
      final_accuracy.by_aggregator(rows)
    ).splitlines()[-1]
    # By hand: pairs of 1 and 3 points; t with one degree of freedom has the
    # quantiles 12.71 and 6.31.
    self.assertIn(
      '| +2.00 ± 12.71 | ± 12.71 | -4.31 |', ' '.join(cells.split())
    )

  def test_table_has_the_mean_of_the_pairs_where_it_is_another_one(self):
    rows = []
    for seed, accuracies in (
      (1, (0.50, 0.51, 0.52)),
      (2, (0.60, 0.63, 0.62)),
      (3, (None, 0.70, 0.72)),
    ):
      names = ('plain_mean', 'kashin', 'rotated_quantization')
      for name, accuracy in zip(names, accuracies):
        if accuracy is not None:
          rows += _run(name, seed, [accuracy])
    found = final_accuracy.by_aggregator(rows)[1]
    # Pairs of 1 and 3 points. The third seed counts in the pooled mean, by the
    # aggregator that both were tried beside.
    self.assertAlmostEqual(found['paired'].mean, 2.0)
    self.assertLess(found['difference'].mean, 1.9)
    table = final_accuracy.format_table([found])
    self.assertIn('| +2.00 ± 12.71 |', ' '.join(table.split()))

  def test_table(self):
    rows = _run('plain_mean', 1, [None] * 5 + [0.5])
    rows += _run('kashin', 1, [None] * 5 + [0.4999])
    rows += _run('rotated_quantization', 1, [0.5, 0.5, 0.5, 0.5, 0.53, 0.52])
    lines = final_accuracy.format_table(
      final_accuracy.by_aggregator(rows)
    ).splitlines()
    self.assertLen(lines, 5)
    cells = [[cell.strip() for cell in line.split('|')[1:-1]] for line in lines]
    self.assertEqual(
      cells[3],
      ['`kashin`', '8', '1,000', '4,676', '1', '49.99', '-0.01', '-', '-', '-'],
    )
    self.assertEqual(
      cells[4],
      [
        '`rotated_quantization`',
        '8',
        '1,000',
        '2,000',
        '1',
        '52.00',
        '+2.00',
        '-',
        '-',
        '-1.00',
      ],
    )


if __name__ == '__main__':
  absltest.main()

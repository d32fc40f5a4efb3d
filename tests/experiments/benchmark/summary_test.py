# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest

from experiments.benchmark import summary


def _row(case, repeat, seconds, group='round'):
  return dict(
    group=group,
    dim=8,
    num_clients=2,
    case=case,
    repeat=repeat,
    seconds=seconds,
    process_seconds=seconds / 2,
  )


class SummaryTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    # The machine is half as fast in the last repeat; ratios do not see it.
    self._rows = [
      _row(case, repeat, seconds * (2 if repeat == 2 else 1))
      for repeat in range(3)
      for case, seconds in ((summary.PLAIN_SUM, 0.1), ('new', 0.3))
    ]

  def test_ratios_are_taken_within_each_repeat(self):
    plain, new = summary.summarize(self._rows)
    self.assertEqual(plain['per_reference'], (1.0, 1.0, 1.0))
    for ratio in new['per_reference']:
      self.assertAlmostEqual(ratio, 3.0)
    self.assertEqual(new['reference'], summary.PLAIN_SUM)
    self.assertAlmostEqual(new['milliseconds'][1], 300.0)
    self.assertAlmostEqual(new['processor_milliseconds'][1], 150.0)

  def test_pairs_are_compared_within_each_repeat(self):
    # The machine is half as fast in the last repeat.
    rows = [
      _row(case, repeat, seconds * (2 if repeat == 2 else 1))
      for repeat in range(3)
      for case, seconds in (
        (summary.OUR_SUM, 0.2),
        (summary.OUR_PREDICTED_SUM, 0.25 + 0.05 * (repeat == 1)),
        (summary.THEIR_MEAN, 1.0),
      )
    ]
    (found,) = summary.pairs(rows)
    self.assertEqual(
      (found['case'], found['reference']),
      (summary.OUR_PREDICTED_SUM, summary.OUR_SUM),
    )
    for name, wanted in (('least', 1.25), ('median', 1.25), ('largest', 1.5)):
      self.assertAlmostEqual(found[name], wanted)
    table = summary.format_pairs(rows)
    self.assertEndsWith(table.strip(), '1.25 [1.25, 1.50] |')
    # Other cases are in no pair.
    self.assertEmpty(summary.pairs(self._rows))

  def test_table_has_a_line_for_each_case(self):
    table = summary.format_table(self._rows)
    cells = [cell.strip() for cell in table.splitlines()[-1].split('|')[1:-1]]
    self.assertEqual(
      cells,
      ['round', '8', '2', 'new', '300 (300, 450)', '', '3 (3, 3)'],
    )


if __name__ == '__main__':
  absltest.main()

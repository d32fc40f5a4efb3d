# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest

from experiments.benchmark import figure
from experiments.benchmark import summary
from experiments.benchmark import timing


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


class RunTest(absltest.TestCase):
  def test_times_every_case_of_the_local_groups(self):
    config = timing.Config(
      groups=('transform', 'encode', 'decode'), dims=(1030,), repeats=2
    )
    rows = list(timing.run(config))
    for group in config.groups:
      cases = [row['case'] for row in rows if row['group'] == group]
      self.assertIn(summary.COPY, cases)
      self.assertIn('tff_autotune_secagg', cases)
      for case in set(cases):
        self.assertEqual(cases.count(case), 2)
    self.assertGreater(min(row['seconds'] for row in rows), 0.0)
    self.assertIn('| encode | 1,030 |', summary.format_table(rows))

  def test_leaves_out_rounds_with_too_many_values(self):
    config = timing.Config(
      groups=('round',),
      round_dims=(10,),
      num_clients=(11,),
      max_round_values=100,
    )
    self.assertEmpty(list(timing.run(config)))


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

  def test_table_has_a_line_for_each_case(self):
    table = summary.format_table(self._rows)
    line = '| round | 8 | 2 | new | 300 (300, 450) |  | 3 (3, 3) |'
    self.assertIn(line, table)

  def test_figure_has_a_panel_for_each_group(self):
    rows = self._rows + [
      _row(case, 0, 1.0, group='encode') for case in (summary.COPY, 'new')
    ]
    figure = figure.figure(rows)
    titles = [axes.get_title() for axes in figure.axes]
    self.assertEqual(titles, ["a client's encoding", 'a whole round'])


if __name__ == '__main__':
  absltest.main()

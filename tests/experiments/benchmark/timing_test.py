# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest

from experiments.benchmark import summary
from experiments.benchmark import timing


class RunTest(absltest.TestCase):
  def test_times_every_case_of_the_local_groups(self):
    config = timing.Config(
      groups=tuple(g for g in timing.GROUPS if 'round' not in g),
      dims=(1030,),
      repeats=2,
    )
    rows = list(timing.run(config))
    for group in config.groups:
      cases = [row['case'] for row in rows if row['group'] == group]
      self.assertIn(summary.COPY, cases)
      self.assertTrue(any(c.startswith('tff_autotune_secagg') for c in cases))
      for case in set(cases):
        self.assertEqual(cases.count(case), 2)
    self.assertGreater(min(row['seconds'] for row in rows), 0.0)
    self.assertRegex(summary.format_table(rows), r'\| encode +\| 1,030 +\|')

  def test_leaves_out_rounds_with_too_many_values(self):
    config = timing.Config(
      groups=('round',),
      round_dims=(10,),
      num_clients=(11,),
      max_round_values=100,
    )
    self.assertEmpty(list(timing.run(config)))


if __name__ == '__main__':
  absltest.main()

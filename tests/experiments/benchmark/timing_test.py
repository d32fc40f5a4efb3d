# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
import numpy as np
import tensorflow_federated as tff

from experiments.benchmark import cases
from experiments.benchmark import summary
from experiments.benchmark import timing


def _limits(process):
  """Names of what zeroing and clipping measure in a process."""
  measured = process.next.type_signature.result.measurements.member
  found = set()
  while isinstance(measured, tff.StructType):
    names = tff.structure.name_list(measured)
    found |= {n for n in names if n.startswith(('zero', 'clip'))}
    inside = [n for n in names if n in ('zeroing', 'clipping')]
    measured = measured[inside[0]] if inside else None
  return found - {'zeroing', 'clipping', 'zero_sum'}


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

  def test_every_pair_is_of_cases_that_there_are(self):
    known = {
      *cases.local_calls('decode', 1030, 256),
      *cases._aggregators(10, 256),
    }
    self.assertContainsSubset(sum(summary.PAIRS, ()), known)

  def test_limits_are_the_same_in_both_libraries(self):
    made = cases._aggregators(10, 256)
    value_type = tff.TensorType(np.float32, [3])
    for ours, theirs in (
      (summary.OUR_BARE_MEAN, summary.THEIR_BARE_MEAN),
      (summary.OUR_MEAN, summary.THEIR_MEAN),
    ):
      limits = [
        _limits(made[name].create(value_type)) for name in (ours, theirs)
      ]
      self.assertEqual(*limits)
      self.assertLen(limits[0], 4 if ours == summary.OUR_MEAN else 0)

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

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import math

from absl.testing import absltest
from absl.testing import parameterized

from experiments.planner import private
import tff_autotune_secagg as autotune

_PLAN = dict(
  num_values=10**6,
  num_clients=100,
  min_clients=70,
  noise_multipliers=[1.0, 4.0],
  num_rounds=[1, 10],
  delta=1e-6,
  alignment=0.3,
)


class RowsTest(parameterized.TestCase):
  def test_rows_hold_what_the_package_says(self):
    first, second = private.rows(**_PLAN)
    self.assertEqual((first['modulus'], first['bits']), (128, 7))
    # Padding is at most 6 %.
    self.assertBetween(first['bytes_per_client'], 875_000, 927_500)
    expected = autotune.distributed_dp_epsilon(
      noise_multiplier=4.0,
      min_clients=70,
      num_rounds=10,
      dim=10**6,
      delta=1e-6,
    )
    self.assertEqual(second['epsilons'][1], expected)
    self.assertAlmostEqual(
      second['noise_to_signal'], 16 * 10**6 * 100 / 70 / 900
    )

  def test_nothing_to_see_is_infinite_noise(self):
    (row,) = private.rows(**dict(_PLAN, alignment=0.0, noise_multipliers=[1.0]))
    self.assertEqual(row['noise_to_signal'], math.inf)

  def test_table_has_a_line_for_each_multiplier(self):
    found = private.rows(**_PLAN)
    lines = private.format_table(found, [1, 10]).splitlines()
    self.assertLen(lines, 4)
    self.assertIn('T=10', lines[0])
    self.assertStartsWith(lines[2], '1 ')


if __name__ == '__main__':
  absltest.main()

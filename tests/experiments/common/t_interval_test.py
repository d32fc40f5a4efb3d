# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
import numpy as np

from experiments.common import t_interval


class IntervalTest(absltest.TestCase):
  def test_is_the_t_interval(self):
    # The 0.975 quantile of Student's t with 2 degrees of freedom is 4.302653.
    self.assertAlmostEqual(
      t_interval.half_width([1.0, 2.0, 3.0]),
      4.302653 / np.sqrt(3),
      places=5,
    )
    self.assertEqual(t_interval.half_width([1.0]), 0.0)


if __name__ == '__main__':
  absltest.main()

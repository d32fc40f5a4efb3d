# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest

from experiments.mean_estimation import figure


class LatticeLimitTest(absltest.TestCase):
  def test_lattice_limit_doubles_with_clients_and_quarters_with_bits(self):
    self.assertAlmostEqual(figure.lattice_limit(8, 10), 10 / 4**8)
    self.assertEqual(figure.lattice_limit(1, 100), 1.0)


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest

from experiments.training import figures


class TunedBinSizeTest(absltest.TestCase):
  def test_the_bin_size_of_a_calibration_is_left_out(self):
    def row(calibrating):
      return dict(
        aggregator={'value/bin_size': 0.5, 'value/calibrating': calibrating}
      )

    self.assertIsNone(figures.tuned_bin_size(row(True)))
    self.assertEqual(figures.tuned_bin_size(row(False)), 0.5)
    self.assertIsNone(figures.tuned_bin_size({'aggregator': {}}))


if __name__ == '__main__':
  absltest.main()

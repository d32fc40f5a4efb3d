# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `arms`."""

from absl.testing import absltest

from experiments.common import arms


class ArmsTest(absltest.TestCase):
  def test_the_download_is_named_where_it_is_coded(self):
    arm = arms.of(dict(aggregator='kashin', model_download_bits=8))
    self.assertEqual(arm, 'kashin down=8')
    self.assertEqual(arms.aggregator(arm), 'kashin')
    self.assertTrue(arms.is_coded(arm))
    for config in (
      dict(aggregator='kashin'),
      dict(aggregator='kashin', model_download_bits=32),
    ):
      self.assertEqual(arms.of(config), 'kashin')
    self.assertFalse(arms.is_coded('kashin'))

  def test_runs_of_an_arm_are_grouped_in_the_order_of_appearance(self):
    runs = [
      [dict(config=dict(aggregator=name, seed=seed), round=1)]
      for name, seed in [('kashin', 2), ('plain_mean', 1), ('kashin', 1)]
    ]
    self.assertEqual(
      list(arms.grouped(runs).items()),
      [('kashin', [runs[0], runs[2]]), ('plain_mean', [runs[1]])],
    )


if __name__ == '__main__':
  absltest.main()

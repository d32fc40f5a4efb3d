# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest

from tff_autotune_secagg.numerics.rounding import modes


class ModesTest(absltest.TestCase):
  def test_values_are_the_names_that_flag_files_and_results_use(self):
    for kind, names in (
      (modes.Rounding, {'stochastic', 'dither'}),
      (modes.Decoding, {'unbiased', 'posterior_mean', 'centred'}),
    ):
      self.assertEqual({mode.value for mode in kind}, names)
      for name in names:
        self.assertEqual(kind(name).name, name.upper())


if __name__ == '__main__':
  absltest.main()

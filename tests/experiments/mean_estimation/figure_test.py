# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
import numpy as np

from experiments.mean_estimation import figure


class LatticeLimitTest(absltest.TestCase):
  def test_lattice_limit_doubles_with_clients_and_quarters_with_bits(self):
    self.assertAlmostEqual(figure.lattice_limit(8, 10), 10 / 4**8)
    self.assertEqual(figure.lattice_limit(1, 100), 1.0)


class CurvesTest(absltest.TestCase):
  def test_rotated_ranges_are_curves_of_their_own(self):
    texts = [
      'fixed_range:bits={bits},clip_range={max}',
      'fixed_range:bits={bits},clip_range={3*rms},rotate=true',
      'fixed_range:bits={bits},clip_range={4*rms},rotate=true',
      'fixed_range:bits={bits},clip_range=auto,rotate=true',
      'autotuned:modulus={modulus},rounding=dither',
    ]
    self.assertEqual(
      [figure.curve(text) for text in texts],
      [
        'fixed_range',
        'fixed_range, rotated, best known range',
        'fixed_range, rotated, best known range',
        'fixed_range, rotated, adaptive range',
        'autotuned:rounding=dither',
      ],
    )

  def _row(self, text, nmse):
    config = dict(aggregator=text)
    return dict(config=config, bytes_per_client=100, nmse=nmse)

  def test_the_best_range_by_its_median_is_shown(self):
    texts = [
      f'fixed_range:bits=8,clip_range={c},rotate=true' for c in (1, 2, 3)
    ]
    # The second has the least single error, the third the least median.
    errors = {texts[0]: [5, 6, 7], texts[1]: [0.1, 4, 9], texts[2]: [2, 3, 9]}
    rows = [self._row(text, e) for text in texts for e in errors[text]]
    found = figure.errors_by_bits(rows, length=100.0)
    self.assertEqual(
      found, {'fixed_range, rotated, best known range': {8.0: 3}}
    )

  def test_a_sum_without_error_is_drawn(self):
    found = figure.errors_by_bits([self._row('plain_mean', 0.0)], length=100.0)
    np.testing.assert_allclose(found['plain_mean'][8.0], 1e-14)


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
from scipy import integrate
from scipy import stats

from tff_autotune_secagg.numerics.download import normal_levels

# Distortions of Lloyd's and Max's quantizer in the tables of textbooks, to the
# digits printed there; Gersho and Gray (1992), Vector Quantization, table 6.3.
_PUBLISHED = {2: 0.1175, 3: 0.03454, 4: 0.009501}


def _distortion(levels):
  """The mean square error of nearest levels, by quadrature."""
  ends = np.concatenate([[-12.0], (levels[1:] + levels[:-1]) / 2, [12.0]])
  return sum(
    integrate.quad(
      lambda x, q=q: (x - q) ** 2 * stats.norm.pdf(x), low, high, epsabs=1e-14
    )[0]
    for q, low, high in zip(levels, ends[:-1], ends[1:])
  )


class BestLevelsTest(parameterized.TestCase):
  @parameterized.parameters(2, 3, 5, 8)
  def test_distortion_is_that_of_its_levels_and_the_least(self, bits):
    found = normal_levels.best_levels(bits)
    self.assertLen(found.levels, 2**bits)
    least = _distortion(found.levels)
    np.testing.assert_allclose(found.distortion, least, rtol=1e-7)
    # Near a minimum the error grows with the square of any change.
    rng = np.random.default_rng(bits)
    spacing = np.min(np.diff(found.levels))
    for _ in range(3):
      other = found.levels + 0.1 * spacing * rng.standard_normal(2**bits)
      self.assertGreater(_distortion(other), least)

  @parameterized.parameters(*_PUBLISHED.items())
  def test_is_the_published_one(self, bits, published):
    found = normal_levels.best_levels(bits).distortion
    np.testing.assert_allclose(found, published, rtol=6e-4)

  @parameterized.parameters(range(2, 9))
  def test_levels_ascend_and_mirror_each_other(self, bits):
    found = normal_levels.best_levels(bits)
    self.assertTrue(np.all(np.diff(found.levels) > 0))
    np.testing.assert_array_equal(found.levels, -found.levels[::-1])
    np.testing.assert_array_equal(
      found.borders, (found.levels[1:] + found.levels[:-1]) / 2
    )


if __name__ == '__main__':
  absltest.main()

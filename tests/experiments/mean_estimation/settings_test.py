# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
import numpy as np

from experiments.mean_estimation import settings


class VectorsTest(absltest.TestCase):
  def test_synthetic_vectors_are_what_their_names_say(self):
    def draw(kind):
      config = settings.Config(
        'plain_mean', vectors=kind, num_rounds=1, num_clients=4, dim=20000
      )
      return settings.synthetic_vectors(config)[0]

    for kind in ('dense', 'sparse', 'heavy_tailed', 'aligned', 'orthogonal'):
      self.assertAlmostEqual(
        np.sqrt(np.mean(draw(kind) ** 2)), 0.01, delta=1e-6
      )
    self.assertAlmostEqual(np.mean(draw('sparse') != 0), 0.01, delta=0.002)
    aligned = draw('aligned')
    self.assertGreater(np.corrcoef(aligned)[0, 1], 0.98)
    orthogonal = draw('orthogonal')
    np.testing.assert_array_equal(
      np.count_nonzero(orthogonal, axis=0) <= 1, True
    )
    heavy = draw('heavy_tailed')
    self.assertGreater(np.mean(heavy**4) / np.mean(heavy**2) ** 2, 6)


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
import numpy as np
import tensorflow as tf

from experiments.mean_estimation import estimation
from tff_autotune_secagg.numerics.rotation import randomized_hadamard


def _measured_deviation(vectors):
  rotated = [
    randomized_hadamard.rotate(tf.constant(vector), seed=tf.constant([1, 2]))
    for vector in vectors.reshape(-1, vectors.shape[-1])
  ]
  return np.sqrt(np.mean(np.square(rotated)))


class RotatedDeviationTest(absltest.TestCase):
  def test_is_that_of_coordinates_that_the_package_rotates(self):
    rng = np.random.default_rng(1)
    # A rotation pads 1,100 coordinates. The clients differ in length.
    scales = rng.uniform(0.1, 3.0, [2, 3, 1])
    vectors = np.float32(scales * rng.normal(size=(2, 3, 1100)))
    measured = _measured_deviation(vectors)
    # A rotation keeps norms, up to rounding in float32.
    np.testing.assert_allclose(
      estimation.rotated_deviation(vectors), measured, rtol=1e-5
    )
    # Negative control: the deviation before the padding.
    self.assertGreater(np.sqrt(np.mean(vectors**2)), measured * (1 + 1e-3))


if __name__ == '__main__':
  absltest.main()

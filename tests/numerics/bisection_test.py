# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
import numpy as np
import tensorflow as tf

from tff_autotune_secagg.numerics import bisection


class BisectTest(absltest.TestCase):
  def test_finds_each_element_to_the_stated_width(self):
    points = np.array([-0.9, 0.0, 1e-9, 0.7])
    low, high = tf.fill([4], -1.0), tf.fill([4], 1.0)
    found = bisection.bisect(
      lambda x: x < points,
      tf.cast(low, tf.float64),
      tf.cast(high, tf.float64),
    ).numpy()
    self.assertTrue(np.all(found >= points))
    # The stated width and the rounding of the midpoints themselves.
    self.assertTrue(np.all(found - points <= 2 * 2.0**-45 + 2.0**-52))

  def test_returns_an_end_where_the_condition_is_constant(self):
    low = tf.constant([2.0, 2.0], tf.float64)
    high = tf.constant([3.0, 3.0], tf.float64)
    found = bisection.bisect(
      lambda x: tf.tile([[True, False]], [3, 1]), low, high
    ).numpy()
    self.assertEqual(found[0], 3.0)
    self.assertLessEqual(found[1] - 2.0, 2.0**-45)

  def test_works_in_a_graph_on_scalars(self):
    @tf.function
    def root(square):
      return bisection.bisect(
        lambda x: x * x < square,
        tf.constant(0.0, tf.float64),
        tf.constant(10.0, tf.float64),
      )

    found = root(tf.constant(2.0, tf.float64)).numpy()
    np.testing.assert_allclose(found, np.sqrt(2.0), rtol=1e-12)


if __name__ == '__main__':
  absltest.main()

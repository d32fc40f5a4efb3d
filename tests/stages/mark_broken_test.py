# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tff_autotune_secagg.stages import mark_broken


class MarkBrokenStageTest(parameterized.TestCase):
  @parameterized.parameters(tf.float32, tf.float64)
  def test_what_is_not_finite_is_nan_and_the_rest_stays(self, dtype):
    stage = mark_broken.MarkBrokenStage([tf.TensorSpec([5], dtype)])
    largest = dtype.max  # Its square is infinite, and it is not broken.
    values = np.array([1.0, np.inf, -np.inf, np.nan, largest])
    ((found,), signals) = stage.encode(
      [tf.constant(values, dtype)], stage.parameters(None)
    )
    np.testing.assert_array_equal(found, [1.0, np.nan, np.nan, np.nan, largest])
    self.assertEmpty(signals)

  @parameterized.parameters([[0.0, -1.0]], [[1e30, 3e38]])
  def test_finite_values_pass_bit_for_bit(self, values):
    stage = mark_broken.MarkBrokenStage([tf.TensorSpec([2], tf.float32)])
    ((found,), _) = stage.encode(
      [tf.constant(values, tf.float32)], stage.parameters(None)
    )
    np.testing.assert_array_equal(found, np.float32(values))


if __name__ == '__main__':
  absltest.main()

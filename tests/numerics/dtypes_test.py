# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
import tensorflow as tf

from tff_autotune_secagg.numerics import dtypes


class DtypesTest(absltest.TestCase):
  def test_working_dtype(self):
    for dtype in (tf.float16, tf.bfloat16, tf.float32):
      self.assertEqual(dtypes.working_dtype(dtype), tf.float32)
    self.assertEqual(dtypes.working_dtype(tf.float64), tf.float64)


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tff_autotune_secagg.numerics.download import packing


class PackingTest(parameterized.TestCase):
  @parameterized.parameters(range(1, 9))
  def test_bytes_spell_the_numbers_and_give_them_back(self, bits):
    numbers = np.random.default_rng(bits).integers(0, 2**bits, 8 * 13)
    numbers[:2] = 0, 2**bits - 1
    packed = packing.pack(tf.constant(numbers, tf.int32), bits)
    self.assertEqual(packed.dtype, tf.uint8)
    # One long number in Python, whose lowest digits are the first.
    whole = sum(int(n) << (bits * i) for i, n in enumerate(numbers))
    expected = whole.to_bytes(13 * bits, 'little')
    self.assertEqual(packed.numpy().tobytes(), expected)
    unpacked = packing.unpack(packed, bits)
    self.assertEqual(unpacked.dtype, tf.int32)
    np.testing.assert_array_equal(unpacked, numbers)


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tff_autotune_secagg.stages import wire

_SPECS = [tf.TensorSpec([4], tf.int64), tf.TensorSpec([4], tf.int32)]
_VALUES = [0, -1, 70, 2**31 - 1]


class WireStageTest(parameterized.TestCase):
  def _encode(self, modulus, in_modulus):
    made = wire.WireStage(_SPECS, modulus=modulus, in_modulus=in_modulus)
    leaves = [tf.constant(_VALUES, spec.dtype) for spec in _SPECS]
    encoded, signals = made.encode(leaves, made.parameters({}))
    self.assertEmpty(signals)
    return encoded

  @parameterized.parameters(64, 1000)
  def test_reduces_what_is_not_known_to_be_reduced(self, modulus):
    # Sums of int64 are exact for every modulus, those of int32 for powers of 2.
    dtype = tf.int32 if modulus == 64 else tf.int64
    for leaf in self._encode(modulus, None):
      self.assertEqual(leaf.dtype, dtype)
      np.testing.assert_array_equal(leaf, np.array(_VALUES) % modulus)

  def test_passes_residues_of_its_own_modulus_on_as_they_are(self):
    for leaf in self._encode(1000, 1000):
      self.assertEqual(leaf.dtype, tf.int64)
      np.testing.assert_array_equal(leaf, _VALUES)

  @parameterized.parameters(2**30, 32)
  def test_refuses_residues_of_another_modulus(self, in_modulus):
    with self.assertRaisesRegex(
      ValueError, f'^`modulus` must be {in_modulus}, that of the .* found 64: '
    ):
      self._encode(64, in_modulus)


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `rotate`, on plain tensors; the transform is `rotation_test`'s."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
from scipy import linalg
import tensorflow as tf

from tff_autotune_secagg.stages import rotate
from tff_autotune_secagg.stages import stage


def _stage(*shapes, num_rotations=1, min_dim=1, dtype=tf.float32, seed=7):
  return rotate.RotateStage(
    [tf.TensorSpec(shape, dtype) for shape in shapes],
    num_rotations=num_rotations,
    min_dim=min_dim,
    seed=seed,
  )


def _matrix(made, dim):
  """The linear map of the first leaf's first round, from its columns."""
  parameters = made.parameters(made.initial_state())
  columns = [
    made.encode([tf.constant(row, tf.float32)], parameters)[0][0]
    for row in np.eye(dim)
  ]
  return np.stack(columns, axis=1).astype(np.float64)


class EncodeTest(parameterized.TestCase):
  def test_is_a_hadamard_matrix_of_columns_with_signs(self):
    found = _matrix(_stage([8]), 8) * 8**0.5
    signs = found[0]  # The first row of Sylvester's matrix is all 1.
    np.testing.assert_allclose(abs(signs), 1.0, rtol=1e-6)
    np.testing.assert_allclose(found, linalg.hadamard(8) * signs, atol=1e-5)
    self.assertLen(set(np.sign(signs)), 2)

  @parameterized.parameters(1, 3)
  def test_keeps_lengths_and_angles(self, num_rotations):
    found = _matrix(_stage([8], num_rotations=num_rotations), 8)
    np.testing.assert_allclose(found.T @ found, np.eye(8), atol=1e-5)

  def test_equal_leaves_rotate_apart_and_empty_ones_stay(self):
    made = _stage([20], [20], [0], [])
    leaves = [tf.ones([20]), tf.ones([20]), tf.zeros([0]), tf.constant(3.0)]
    encoded, signals = made.encode(
      leaves, made.parameters(made.initial_state())
    )
    self.assertEmpty(signals)
    self.assertEqual([leaf.shape[0] for leaf in encoded], [20, 20, 0, 1])
    self.assertTrue(np.any(encoded[0] != encoded[1]))
    self.assertEqual(abs(float(encoded[3][0])), 3.0)

  def test_short_leaves_are_padded_and_cropped_again(self):
    made = _stage([5], min_dim=100)
    state = made.initial_state()
    value = tf.constant([1.0, -2.0, 0.5, 3.0, 0.0])
    ((vector,), _) = made.encode([value], made.parameters(state))
    self.assertEqual(vector.shape, made.out_specs[0].shape)
    self.assertGreaterEqual(vector.shape[0], 100)
    # The norm has spread over all of them.
    self.assertLess(np.abs(vector).max(), 2.0)
    ((back,), _, _) = made.decode([vector], (), state)
    np.testing.assert_allclose(back, value, atol=1e-5)


class StateTest(parameterized.TestCase):
  def test_rounds_rotate_apart_and_are_undone_with_their_own(self):
    made = _stage([16])
    state, value = made.initial_state(), tf.range(16, dtype=tf.float32)
    ((first,), _) = made.encode([value], made.parameters(state))
    _, later, _ = made.decode([first], (), state)
    self.assertEqual(int(later['round']), 1)
    ((second,), _) = made.encode([value], made.parameters(later))
    self.assertTrue(np.any(first != second))
    np.testing.assert_allclose(
      made.decode([second], (), later)[0][0], value, atol=1e-4
    )
    # Control: with the other round's signs nothing comes back.
    wrong = made.decode([second], (), state)[0][0]
    self.assertGreater(np.abs(wrong - value).max(), 1.0)

  @parameterized.named_parameters(
    ('size', _stage([9]), '`dim` 9, but'),
    ('rotations', _stage([8], num_rotations=2), '`num_rotations` 2, but'),
  )
  def test_a_state_of_other_settings_is_refused(self, other, message):
    with self.assertRaisesRegex(
      tf.errors.InvalidArgumentError,
      f'The state was written with {message} this HadamardRotationFactory has',
    ):
      stage.unnest_state(_stage([8]), stage.initial_state(other, ()))


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from experiments.common import models


class ModelsTest(parameterized.TestCase):
  def test_all_cnn_c_has_the_parameters_of_the_paper(self):
    model = models.build('all_cnn_c', image_shape=(32, 32, 3), num_classes=10)
    self.assertEqual(model.count_params(), 1_369_738)

  @parameterized.parameters(*models.NAMES)
  def test_logits_have_one_entry_for_each_class(self, name):
    model = models.build(
      name, image_shape=(32, 32, 3), num_classes=10, width=0.1
    )
    images = np.zeros((2, 32, 32, 3), np.uint8)
    self.assertEqual(model(images).shape, (2, 10))

  def test_tff_takes_the_layers_of_all_cnn_c(self):
    # No test trains it, which takes long to compile.
    model = models.build(
      'all_cnn_c', image_shape=(32, 32, 3), num_classes=10, width=0.1
    )
    spec = (
      tf.TensorSpec([None, 32, 32, 3], tf.uint8),
      tf.TensorSpec([None], tf.int32),
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    functional = tff.learning.models.functional_model_from_keras(
      model, loss, spec
    )
    self.assertLen(functional.initial_weights[0], 18)

  def test_initial_weights_follow_the_seed(self):
    def weights(seed):
      return models.build(
        'digits_cnn', image_shape=(8, 8, 1), num_classes=10, seed=seed
      ).get_weights()

    for a, b in zip(weights(1), weights(1)):
      np.testing.assert_array_equal(a, b)
    self.assertFalse(np.array_equal(weights(1)[0], weights(2)[0]))

  def test_initial_weights_have_the_spread_of_he(self):
    # Layer 2 has 3 * 3 * 16 inputs: variance 2 / 144. The standard error of a
    # standard deviation from 4,608 draws is below 1 / sqrt(2 * 4608) of it for
    # a truncated normal.
    kernel = models.build(
      'digits_cnn', image_shape=(8, 8, 1), num_classes=10, seed=3
    ).get_weights()[2]
    self.assertEqual(kernel.size, 4608)
    wanted = np.sqrt(2 / 144)
    self.assertAlmostEqual(
      kernel.std(), wanted, delta=5 * wanted / np.sqrt(2 * kernel.size)
    )

  def test_unknown_model_lists_the_right_ones(self):
    with self.assertRaisesRegex(
      ValueError,
      '^`model` must be one of logistic, digits_cnn, small_cnn, deep_cnn, '
      "all_cnn_c, found 'resnet'[.]$",
    ):
      models.build('resnet', image_shape=(8, 8, 1), num_classes=10)


if __name__ == '__main__':
  absltest.main()

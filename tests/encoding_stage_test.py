# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `encoding_stage`, TFMOT's own conformance tests among them.

Rounding draws from the system's entropy, so that the statistical test is a new
draw in every run; its false alarm rate is 6e-7.
"""

import inspect

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf
from tensorflow_model_optimization.python.core.internal import tensor_encoding

from tests import stat_checks
from tff_autotune_secagg import encoding_stage

_BIN_SIZE = 0.25
_KEY = encoding_stage.QuantizeModEncodingStage.ENCODED_VALUES_KEY


def _stage(modulus=1000, bin_size=_BIN_SIZE):
  return encoding_stage.QuantizeModEncodingStage(
    modulus=modulus, bin_size=bin_size
  )


class QuantizeModEncodingStageTest(
  tensor_encoding.testing.BaseEncodingStageTest
):
  """TFMOT's conformance tests, for a modulus that is no power of two."""

  test_session = None  # TensorFlow's own, which only skips itself.

  @property
  def is_lossless(self):
    return False

  def default_encoding_stage(self):
    return _stage()

  def default_input(self):
    # TFMOT's base class compares arrays with `()`, which NumPy since 1.25 only
    # allows where the last dimension is 1.
    return tf.random.normal([21, 1])

  def common_asserts_for_test_data(self, data):
    residues = data.encoded_x[_KEY]
    self.assertEqual(residues.dtype, np.int64)
    self.assertAllInRange(residues, 0, 999)
    self.assertAllInRange(data.decoded_x - data.x, -_BIN_SIZE, _BIN_SIZE)
    self.assertAllEqual(data.decoded_x % _BIN_SIZE, np.zeros_like(data.x))


class QuantizeModEncodingStagePowerOfTwoTest(QuantizeModEncodingStageTest):
  """The same for a power of two, where residues are int32."""

  def default_encoding_stage(self):
    return _stage(modulus=2**20)

  def common_asserts_for_test_data(self, data):
    residues = data.encoded_x[_KEY]
    self.assertEqual(residues.dtype, np.int32)
    self.assertAllInRange(residues, 0, 2**20 - 1)
    self.assertAllInRange(data.decoded_x - data.x, -_BIN_SIZE, _BIN_SIZE)


def _decoded_sum(stage, values, reduced=False):
  encode_params, decode_params = stage.get_params()
  residues = [stage.encode(x, encode_params)[_KEY] for x in values]
  total = tf.add_n(residues)
  if reduced:
    total = tf.math.floormod(total, tf.constant(1000, total.dtype))
  return stage.decode(
    {_KEY: total}, decode_params, num_summands=len(values)
  ).numpy()


class ArithmeticTest(parameterized.TestCase):
  @parameterized.parameters(1000, 2**20)
  def test_grid_points_decode_exactly(self, modulus):
    values = [np.array([[0.0, 0.25, -0.25], [-3.5, 100.0, -100.0]], np.float32)]
    np.testing.assert_array_equal(
      _decoded_sum(_stage(modulus), values), values[0]
    )

  @parameterized.parameters(True, False)
  def test_sums_decode_whether_reduced_or_not(self, reduced):
    values = [
      np.array([40.0, -25.0], np.float32),
      np.array([50.0, -0.5], np.float32),
      np.array([-60.0, 20.25], np.float32),
    ]
    np.testing.assert_array_equal(
      _decoded_sum(_stage(), values, reduced), [30.0, -5.25]
    )

  def test_overflow_of_int32_sums_is_harmless_for_powers_of_two(self):
    """Three residues of 2**30 - 1 are more than int32 holds."""
    values = [np.array([-_BIN_SIZE], np.float32)] * 3
    np.testing.assert_array_equal(
      _decoded_sum(_stage(2**30), values), [-3 * _BIN_SIZE]
    )

  def test_decoded_sum_has_the_mean_and_at_most_the_stated_variance(self):
    """Entries halfway between bins, where the bound is attained."""
    num_clients, dim = 4, 20000
    values = [np.full([dim], 2.5 * _BIN_SIZE, np.float32)] * num_clients
    error = _decoded_sum(_stage(), values) - np.sum(values, axis=0)
    bound = num_clients * _BIN_SIZE**2 / 4
    self.assertLessEqual(
      abs(np.mean(error)),
      stat_checks.Z * stat_checks.mean_error(np.sqrt(bound), dim),
    )
    self.assertTrue(
      stat_checks.is_near(
        np.var(error, ddof=1), bound, stat_checks.variance_error(bound, dim)
      )
    )

  def test_composes_with_tfmot(self):
    encoder = tensor_encoding.encoders.as_gather_encoder(
      tensor_encoding.core.EncoderComposer(_stage()).make(),
      tf.TensorSpec([4], tf.float32),
    )
    encode_params, decode_before, decode_after = encoder.get_params()
    x = np.array([1.0, -2.0, 0.25, 0.0], np.float32)
    encoded = [encoder.encode(x, encode_params) for _ in range(2)]
    partly = [
      encoder.decode_before_sum(part, decode_before) for part, _ in encoded
    ]
    total = tf.nest.map_structure(lambda a, b: a + b, *partly)
    np.testing.assert_array_equal(
      encoder.decode_after_sum(total, decode_after, 2), 2 * x
    )


class ErrorTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('zero', 0.0, ValueError, '0.0 (float)'),
    ('negative', -1.0, ValueError, '-1.0 (float)'),
    ('nan', float('nan'), ValueError, 'nan (float)'),
    ('infinite', float('inf'), ValueError, 'inf (float)'),
    ('bool', True, TypeError, 'True (bool)'),
    ('text', '1', TypeError, "'1' (str)"),
  )
  def test_rejects_bin_size(self, bin_size, error, found):
    with self.assertRaisesWithLiteralMatch(
      error,
      '`bin_size` must be a finite number of at least 1e-30 and at most 1e+30,'
      f' found {found}.',
    ):
      _stage(bin_size=bin_size)

  def test_rejects_modulus_one(self):
    with self.assertRaisesWithLiteralMatch(
      ValueError,
      '`modulus` must be an int of at least 2 and at most 1073741824, found 1'
      ' (int).',
    ):
      _stage(modulus=1)

  def test_rejects_float64(self):
    stage = _stage()
    with self.assertRaisesWithLiteralMatch(
      TypeError, '`x` must be a float32 tensor, found float64.'
    ):
      stage.encode(np.zeros([2]), stage.get_params()[0])

  def test_rejects_unknown_shape(self):
    stage = _stage()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def encode(x):
      return stage.encode(x, stage.get_params()[0])

    with self.assertRaisesRegex(
      ValueError,
      r'`x` must have a fully defined shape, found \(None,\)\.',
    ):
      encode.get_concrete_function()


class DocumentationTest(absltest.TestCase):
  def test_decorator_keeps_name_docstring_and_signature(self):
    cls = encoding_stage.QuantizeModEncodingStage
    self.assertEqual(cls.__name__, 'QuantizeModEncodingStage')
    self.assertStartsWith(cls.__doc__, 'Encodes a tensor as residues')
    self.assertSameElements(
      inspect.signature(cls).parameters, ['modulus', 'bin_size']
    )


if __name__ == '__main__':
  tf.test.main()

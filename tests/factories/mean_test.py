# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `mean`."""

import collections

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow_federated as tff

from tests import doubles
from tests import factory_conformance
from tff_autotune_secagg.factories import mean

setUpModule = factory_conformance.set_up_context

_NAN, _INF = np.nan, np.inf


class SecureMeanConformanceTest(factory_conformance.FactoryConformanceTest):
  weights = [0.5, 2.0, 1.5]
  atol = 0.02  # bfloat16 keeps 8 bits.

  def factory(self):
    return mean.SecureMeanFactory(doubles.SumPlusOneFactory())

  def secure_factory(self):
    return mean.SecureMeanFactory(tff.aggregators.SecureSumFactory(100.0))

  def expected(self, values):
    weights = np.array(self.weights)
    return (weights @ values + 1.0) / np.sum(weights)

  def inner_state(self, state):
    return state['value']


class SecureUnweightedMeanConformanceTest(
  factory_conformance.FactoryConformanceTest
):
  atol = 0.02  # bfloat16 keeps 8 bits.

  def factory(self):
    return mean.SecureUnweightedMeanFactory(doubles.SumPlusOneFactory())

  def secure_factory(self):
    return mean.SecureUnweightedMeanFactory(
      tff.aggregators.SecureSumFactory(100.0)
    )

  def expected(self, values):
    return (np.sum(values, axis=0) + 1.0) / len(values)

  def inner_state(self, state):
    return state['value']


class WeightsTest(parameterized.TestCase):
  """Means of [1, 2] and [3, -4], mostly, by one process."""

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls._process = mean.SecureMeanFactory(tff.aggregators.SumFactory()).create(
      tff.TensorType(np.float32, [2]), tff.TensorType(np.float32)
    )

  def _next(self, values, weights):
    values = [np.array(value, np.float32) for value in values]
    weights = [np.float32(weight) for weight in weights]
    return self._process.next(self._process.initialize(), values, weights)

  @parameterized.named_parameters(
    ('equal', 1.0, 1.0, [2.0, -1.0], 0),
    ('fractional', 0.25, 0.75, [2.5, -2.5], 0),
    ('smallest', 2.0**-40, 2.0**-40, [2.0, -1.0], 0),
    ('large', 2.0**39, 2.0**39, [2.0, -1.0], 0),
    ('largest', 2.0**40, 0.0, [1.0, 2.0], 0),
    ('one_zero', 0.0, 5.0, [3.0, -4.0], 0),
    ('all_zero', 0.0, 0.0, [0.0, 0.0], 0),
    ('negative', -1.0, 5.0, [3.0, -4.0], 1),
    ('nan', _NAN, 5.0, [3.0, -4.0], 1),
    ('infinite', 5.0, _INF, [1.0, 2.0], 1),
    ('too_large', 2.0**41, 5.0, [3.0, -4.0], 1),
    ('all_rejected', -1.0, _NAN, [0.0, 0.0], 2),
  )
  def test_weights(self, first, second, expected, rejected):
    output = self._next([[1, 2], [3, -4]], [first, second])
    np.testing.assert_allclose(output.result, expected, rtol=1e-6)
    self.assertEqual(output.measurements['rejected_clients'], rejected)
    good = [w for w in (first, second) if 0 <= w <= 2.0**40]
    self.assertEqual(output.measurements['weight_sum'], sum(good))

  @parameterized.named_parameters(
    ('nan', [_NAN, 0.0], 1.0),
    ('infinite', [0.0, -_INF], 1.0),
    ('infinite_of_weight_zero', [_INF, 0.0], 0.0),
    ('overflowing_product', [1e30, 0.0], 1e10),
    ('norm_that_a_rotation_may_overflow', [3e19, 0.0], 1.0),
  )
  def test_client_with_a_bad_value_is_rejected_and_counted(self, bad, weight):
    output = self._next([[1, 2], bad, [3, -4]], [1.0, weight, 3.0])
    np.testing.assert_allclose(output.result, [2.5, -2.5], rtol=1e-6)
    self.assertEqual(output.measurements['rejected_clients'], 1)
    self.assertEqual(output.measurements['weight_sum'], 4.0)

  def test_without_clients_the_mean_is_zero(self):
    output = self._next([], [])
    np.testing.assert_array_equal(output.result, [0.0, 0.0])
    self.assertEqual(output.measurements['weight_sum'], 0.0)

  def test_signature(self):
    signature = self._process.next.type_signature
    self.assertEqual(
      signature.result.measurements,
      tff.FederatedType(
        collections.OrderedDict(
          value=(), weight_sum=np.float32, rejected_clients=np.int32
        ),
        tff.SERVER,
      ),
    )
    self.assertEqual(
      signature.parameter[0],
      tff.FederatedType(collections.OrderedDict(value=()), tff.SERVER),
    )


class HalfPrecisionTest(absltest.TestCase):
  def test_weighted_float16_values_beyond_its_range_have_a_mean(self):
    """200 * 400 is above 65,504. Integer weights, too."""
    process = mean.SecureMeanFactory(tff.aggregators.SumFactory()).create(
      tff.TensorType(np.float16, [2]), tff.TensorType(np.int64)
    )
    values = [np.array([200, 1], np.float16), np.array([100, 2], np.float16)]
    output = process.next(process.initialize(), values, [400, 400])
    np.testing.assert_array_equal(
      output.result, np.array([150, 1.5], np.float16)
    )
    self.assertEqual(output.result.dtype, np.float16)
    self.assertEqual(output.measurements['weight_sum'], 800.0)
    output = process.next(process.initialize(), values, [400, -(2**62)])
    np.testing.assert_array_equal(output.result, np.array([200, 1], np.float16))
    self.assertEqual(output.measurements['rejected_clients'], 1)


class UnweightedTest(absltest.TestCase):
  def test_rejected_clients_do_not_count_in_the_denominator(self):
    process = mean.SecureUnweightedMeanFactory(
      tff.aggregators.SumFactory()
    ).create(tff.TensorType(np.float64))
    output = process.next(process.initialize(), [1.0, _NAN, 4.0, -_INF])
    self.assertEqual(output.result, 2.5)
    self.assertEqual(output.measurements['weight_sum'], 2.0)
    self.assertEqual(output.measurements['rejected_clients'], 2)


class MeanErrorTest(parameterized.TestCase):
  @parameterized.parameters(
    mean.SecureMeanFactory, mean.SecureUnweightedMeanFactory
  )
  def test_rejects_value_sum_factory(self, factory_class):
    with self.assertRaisesRegex(
      TypeError,
      r'^`value_sum_factory` must be an unweighted aggregation factory, found'
      r' <.* \(MeanFactory\)\.$',
    ):
      factory_class(tff.aggregators.MeanFactory())

  @parameterized.named_parameters(
    ('vector', tff.TensorType(np.float32, [1])),
    ('unknown_shape', tff.TensorType(np.float32, None)),
    ('bool', tff.TensorType(np.bool_)),
    ('text', tff.TensorType(np.str_)),
    ('structure', tff.to_type([np.float32])),
  )
  def test_rejects_weight_type(self, weight_type):
    with self.assertRaisesWithLiteralMatch(
      TypeError,
      f'`weight_type` must be a float or integer scalar, found {weight_type}.',
    ):
      mean.SecureMeanFactory(tff.aggregators.SumFactory()).create(
        tff.TensorType(np.float32), weight_type
      )


if __name__ == '__main__':
  absltest.main()

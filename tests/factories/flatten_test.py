# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `flatten`."""

import collections

from absl.testing import absltest
import numpy as np
import tensorflow_federated as tff

from tests import doubles
from tests import factory_conformance
from tff_autotune_secagg.factories import flatten

setUpModule = factory_conformance.set_up_context


class FlattenConformanceTest(factory_conformance.FactoryConformanceTest):
  def factory(self):
    return flatten.FlattenFactory(doubles.SumPlusOneFactory())

  def secure_factory(self):
    return flatten.FlattenFactory(tff.aggregators.SecureSumFactory(100.0))


class FlattenExecutionTest(absltest.TestCase):
  def test_is_one_vector_in_float32_or_float64(self):
    factory = flatten.FlattenFactory(doubles.SumPlusOneFactory())
    halves = tff.TensorType(np.float16, [2])
    process = factory.create(halves)
    output = process.next(process.initialize(), [np.ones(2, np.float16)] * 2)
    np.testing.assert_array_equal(output.measurements, [2, 2])
    self.assertEqual(output.measurements.dtype, np.float32)
    np.testing.assert_array_equal(output.result, [3, 3])

    mixed = tff.to_type(
      collections.OrderedDict(a=halves, b=tff.TensorType(np.float64, [5]))
    )
    vector = factory.create(mixed).next.type_signature.result.measurements
    self.assertEqual(
      vector, tff.FederatedType(tff.TensorType(np.float64, [7]), tff.SERVER)
    )

  def test_sum_of_float16_above_its_range_is_infinite(self):
    process = flatten.FlattenFactory(tff.aggregators.SumFactory()).create(
      tff.TensorType(np.float16)
    )
    values = [np.float16(40000.0)] * 2
    output = process.next(process.initialize(), values)
    self.assertEqual(output.result, np.inf)

  def test_takes_structures_without_python_container_and_without_leaves(self):
    value_type = tff.StructType([(None, np.float32), (None, np.float64)])
    process = flatten.FlattenFactory(tff.aggregators.SumFactory()).create(
      value_type
    )
    value = tff.structure.Struct.unnamed(np.float32(1.5), 2.5)
    output = process.next(process.initialize(), [value] * 2)
    self.assertSequenceEqual(list(output.result), [3.0, 5.0])
    empty = flatten.FlattenFactory(tff.aggregators.SumFactory()).create(
      tff.to_type(collections.OrderedDict())
    )
    output = empty.next(empty.initialize(), [collections.OrderedDict()])
    self.assertEqual(output.result, collections.OrderedDict())


class FlattenErrorTest(absltest.TestCase):
  def test_rejects_inner_factory(self):
    with self.assertRaisesWithLiteralMatch(
      TypeError,
      '`inner_factory` must be an unweighted aggregation factory, found'
      " 'sum' (str).",
    ):
      flatten.FlattenFactory('sum')


if __name__ == '__main__':
  absltest.main()

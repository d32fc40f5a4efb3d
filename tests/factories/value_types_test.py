# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `_value_types`. What it refuses is in `factory_conformance`."""

import collections

from absl.testing import absltest
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests import factory_conformance
from tff_autotune_secagg.factories import value_types

_NESTED = factory_conformance.NESTED_FLOATS


class ValueTypesTest(absltest.TestCase):
  def test_leaf_specs_in_order(self):
    specs = value_types.leaf_specs(_NESTED)
    self.assertSequenceEqual(
      [(s.dtype, s.shape.as_list()) for s in specs],
      [
        (tf.float32, []),
        (tf.float32, [2, 3]),
        (tf.float32, [0]),
        (tf.float64, [5]),
        (tf.float16, [3]),
        (tf.bfloat16, [2]),
      ],
    )

  def test_single_tensor_is_one_leaf(self):
    tensor = tff.TensorType(np.float64, [2, 2])
    self.assertEqual(
      value_types.leaf_specs(tensor), [tf.TensorSpec([2, 2], tf.float64)]
    )
    leaf = tf.zeros([2, 2])
    self.assertIs(value_types.flatten(leaf)[0], leaf)
    self.assertIs(value_types.pack([leaf], tensor), leaf)

  def test_empty_structure_has_no_leaves(self):
    empty = tff.to_type(collections.OrderedDict())
    self.assertEmpty(value_types.leaf_specs(empty))
    self.assertEqual(value_types.pack([], empty), collections.OrderedDict())

  def test_pack_undoes_flatten_and_keeps_containers(self):
    value = factory_conformance.nested_client_value(_NESTED, 2)
    leaves = value_types.flatten(value)
    packed = value_types.pack(leaves, _NESTED)
    self.assertIsInstance(packed, collections.OrderedDict)
    self.assertIsInstance(packed['pair'], factory_conformance.Pair)
    self.assertIsInstance(packed['point'], factory_conformance.Point)
    self.assertIsInstance(packed['point'].y, tuple)
    self.assertIsInstance(packed['point'].y[1], list)
    for leaf, again in zip(leaves, value_types.flatten(packed)):
      self.assertIs(leaf, again)

  def test_unnamed_structure_packs_without_container(self):
    value_type = tff.StructType([(None, np.float32), (None, np.float32)])
    packed = value_types.pack([1.0, 2.0], value_type)
    self.assertEqual(packed, tff.structure.Struct.unnamed(1.0, 2.0))

  def test_with_leaves_keeps_containers_and_changes_leaves(self):
    specs = [tf.TensorSpec([i], tf.int32) for i in range(6)]
    found = value_types.with_leaves(_NESTED, specs)
    leaves = [tff.TensorType(np.int32, [i]) for i in range(6)]
    expected = tff.to_type(factory_conformance.nested_value(*leaves))
    tff.test.assert_types_identical(found, expected)
    unnamed = tff.StructType([(None, np.float32), ('x', np.float32)])
    found = value_types.with_leaves(unnamed, specs[:2])
    expected = tff.StructType([(None, leaves[0]), ('x', leaves[1])])
    tff.test.assert_types_identical(found, expected)

  def test_with_leaves_makes_one_tensor_of_a_flattened_structure(self):
    spec = tf.TensorSpec([7], tf.bfloat16)
    for like in (None, tff.TensorType(np.float32, [3])):
      self.assertEqual(
        value_types.with_leaves(like, [spec]),
        tff.TensorType(factory_conformance.BFLOAT16, [7]),
      )

  def test_a_type_of_tensorflow_or_numpy_is_told_from_one_of_tff(self):
    for given, found in (
      (
        tf.TensorSpec([3]),
        'TensorSpec(shape=(3,), dtype=tf.float32, name=None)',
      ),
      (np.float32, "<class 'numpy.float32'>"),
      (None, 'None'),
    ):
      with self.assertRaisesWithLiteralMatch(
        TypeError,
        '`value_type` must be a type of TFF, as'
        ' `tff.TensorType(np.float32, [3])` or `tff.to_type` makes one, found'
        f' {found} ({type(given).__name__}).',
      ):
        value_types.check_floats(given)

  def test_checks_accept_what_they_should(self):
    value_types.check_floats(_NESTED)
    value_types.check_integers(factory_conformance.NESTED_INTEGERS)


if __name__ == '__main__':
  absltest.main()

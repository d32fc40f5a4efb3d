# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `leaves`."""

import collections

from absl.testing import absltest
import numpy as np
import tensorflow_federated as tff

from experiments.deployment import leaves

_TYPE = tff.to_type(
  collections.OrderedDict(
    b=(np.float32, [2, 3]), a=[np.int64, collections.OrderedDict(c=np.bool_)]
  )
)


class LeavesTest(absltest.TestCase):
  def test_are_named_in_the_order_of_the_type(self):
    found = leaves.of(_TYPE)
    self.assertEqual([leaf.name for leaf in found], ['b', 'a/0', 'a/1/c'])
    self.assertEqual(
      [leaf.dtype for leaf in found], ['float32', 'int64', 'bool']
    )
    self.assertEqual([leaf.length for leaf in found], [6, 1, 1])
    self.assertEqual([leaf.num_bytes for leaf in found], [24, 8, 1])

  def test_a_data_set_is_one(self):
    (leaf,) = leaves.of(tff.SequenceType(np.float32))
    self.assertEqual(leaf.dtype, 'sequence')

  def test_values_are_nested_as_the_type_is(self):
    packed = leaves.pack(_TYPE, [1, 2, 3])
    self.assertEqual(packed, {'b': 1, 'a': [2, {'c': 3}]})
    self.assertEqual(list(packed), ['b', 'a'])

  def test_refuses_too_many_values(self):
    with self.assertRaisesWithLiteralMatch(
      ValueError, '`values` must be one for each leaf, found 4 for 3.'
    ):
      leaves.pack(_TYPE, [1, 2, 3, 4])


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the split of clients over workers."""

import collections

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow_federated as tff

from tff_autotune_secagg.simulation.remote import partition

_AT_CLIENTS = tff.types.FederatedType(np.int32, tff.CLIENTS)
_AT_SERVER = tff.types.FederatedType(np.int32, tff.SERVER)
_EQUAL_AT_CLIENTS = tff.types.FederatedType(np.int32, tff.CLIENTS, True)
_Pair = collections.namedtuple('_Pair', ['a', 'b'])


class SplitTest(parameterized.TestCase):
  @parameterized.product(
    num_clients=(0, 1, 2, 7, 100),
    min_parts=(1, 2, 3, 8),
    max_clients=(None, 1, 3, 1000),
  )
  def test_parts_are_even_small_and_in_order(
    self, num_clients, min_parts, max_clients
  ):
    clients = list(range(num_clients))
    parts = partition.split(
      clients, _AT_CLIENTS, min_parts=min_parts, max_clients=max_clients
    )
    self.assertEqual(sum(parts, []), clients)
    sizes = [len(part) for part in parts]
    self.assertLessEqual(max(sizes) - min(sizes), 1)
    self.assertLessEqual(max(sizes), max_clients or num_clients)
    self.assertGreaterEqual(len(parts), min(min_parts, max(num_clients, 1)))
    if num_clients:
      self.assertGreater(min(sizes), 0)

  def test_what_is_not_per_client_goes_to_all_parts(self):
    type_spec = tff.types.StructType(
      [
        ('server', _AT_SERVER),
        ('nested', tff.types.StructType([_AT_CLIENTS, _EQUAL_AT_CLIENTS])),
      ]
    )
    value = {'server': 5, 'nested': ([1, 2, 3], 6)}
    parts = partition.split(value, type_spec, min_parts=2)
    self.assertEqual(
      [(part.server, *part.nested) for part in parts],
      [(5, [1], 6), (5, [2, 3], 6)],
    )
    empty = partition.without_clients(value, type_spec)
    self.assertEqual((empty.server, *empty.nested), (5, [], 6))

  def test_value_without_clients_is_one_part(self):
    self.assertEqual(partition.split(5, _AT_SERVER, min_parts=3), [5])
    self.assertEqual(partition.split(None, None, min_parts=3), [None])

  def test_rejects_different_numbers_of_clients(self):
    with self.assertRaisesWithLiteralMatch(
      ValueError,
      'All values at clients must have the same number of clients, found '
      '[2, 3].',
    ):
      partition.split(
        [[1, 2], [1, 2, 3]],
        tff.types.StructType([_AT_CLIENTS, _AT_CLIENTS]),
        min_parts=2,
      )

  def test_rejects_client_values_that_are_not_listed(self):
    with self.assertRaisesWithLiteralMatch(
      TypeError,
      'A value at clients must be a list with one element per client, found a '
      'generator.',
    ):
      partition.split((i for i in range(2)), _AT_CLIENTS, min_parts=2)


class JoinTest(parameterized.TestCase):
  def test_clients_are_listed_in_the_order_of_parts(self):
    self.assertEqual(partition.join([[1, 2], [3]], _AT_CLIENTS), [1, 2, 3])

  @parameterized.named_parameters(
    ('dict', collections.OrderedDict, ['a', 'b']),
    ('namedtuple', lambda pairs: _Pair(**dict(pairs)), ['a', 'b']),
    ('list', lambda pairs: [value for _, value in pairs], [None, None]),
  )
  def test_containers_stay(self, make, names):
    type_spec = tff.types.StructType(
      [(names[0], _AT_SERVER), (names[1], _AT_CLIENTS)]
    )
    results = [make([('a', 5), ('b', [1, 2])]), make([('a', 5), ('b', [3])])]
    expected = make([('a', 5), ('b', [1, 2, 3])])
    joined = partition.join(results, type_spec)
    self.assertEqual(joined, expected)
    self.assertIs(type(joined), type(expected))

  def test_result_at_server_is_that_of_one_part(self):
    self.assertEqual(partition.join([5, 5], _AT_SERVER), 5)


if __name__ == '__main__':
  absltest.main()

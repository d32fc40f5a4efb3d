# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import collections

from absl.testing import absltest
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_autotune_secagg import programs

_CLIENTS = tff.FederatedType(
  tff.SequenceType(tff.TensorType(np.float32)), tff.CLIENTS
)


class CohortSourceTest(absltest.TestCase):
  def test_iterator_that_was_saved_goes_on_with_the_next_round(self):
    source = programs.CohortSource(lambda number: [number], _CLIENTS)
    iterator = source.iterator()
    self.assertEqual([iterator.select(2), iterator.select()], [[1], [2]])
    restored = type(iterator).from_bytes(iterator.to_bytes())
    self.assertEqual(restored.select(2), [3])
    self.assertEqual(restored.federated_type, _CLIENTS)
    self.assertEqual(source.federated_type, _CLIENTS)
    self.assertEqual(source.iterator().select(2), [1])

  def test_takes_any_sequence_of_clients(self):
    for clients in ((1, 2), [1, 2], range(1, 3), collections.deque([1, 2])):
      source = programs.CohortSource(lambda _, found=clients: found, _CLIENTS)
      self.assertEqual(source.iterator().select(), [1, 2])

  def test_refuses_what_is_no_sequence_of_clients(self):
    for found in (None, {'a': 1}, 'ab', tf.data.Dataset.range(2), iter([1])):
      source = programs.CohortSource(lambda _, found=found: found, _CLIENTS)
      with self.assertRaisesRegex(
        TypeError,
        r"^`client_data\(1\)` must be a list of each client's data, f",
      ):
        source.iterator().select()

  def test_rejects_arguments(self):
    with self.assertRaisesRegex(TypeError, '^`client_data` must be a function'):
      programs.CohortSource([1], _CLIENTS)
    with self.assertRaisesRegex(
      TypeError, '^`federated_type` must be a `tff.FederatedType`, found'
    ):
      programs.CohortSource(len, _CLIENTS.member)


if __name__ == '__main__':
  absltest.main()

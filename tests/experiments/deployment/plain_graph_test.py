# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `plain_graph`."""

import collections

from absl.testing import absltest
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from experiments.deployment import plain_graph


class PlainGraphTest(absltest.TestCase):
  def test_runs_a_computation_on_flat_values(self):
    @tff.tensorflow.computation(
      np.float32, collections.OrderedDict(y=np.int32, z=(np.float32, [2]))
    )
    def compute(x, rest):
      return collections.OrderedDict(sum=rest['z'] + x, same=rest['y']), x

    graph = plain_graph.PlainGraph(compute)
    for x in (1.0, 5.0):
      total, same, again = graph([x, 7, [1.0, 2.0]])
      np.testing.assert_array_equal(total, [1 + x, 2 + x])
      self.assertEqual((same, again), (7, x))
    self.assertGreater(graph.num_bytes, 50)
    with self.assertRaisesWithLiteralMatch(
      ValueError, '`values` must be 3, found 1.'
    ):
      graph([1.0])

  def test_reads_a_data_set_with_variables_that_begin_anew(self):
    @tff.tensorflow.computation(tff.SequenceType((np.int32, [None])), np.int32)
    def count(batches, start):
      total = tf.Variable(0)
      with tf.control_dependencies([total.assign_add(start)]):
        sums = batches.reduce(0, lambda s, x: s + tf.reduce_sum(x))
        return total.read_value() + sums

    graph = plain_graph.PlainGraph(count)
    for numbers in ([1, 2, 3], [10]):
      data = tf.data.Dataset.from_tensor_slices(np.int32(numbers)).batch(2)
      (found,) = graph([plain_graph.serialize_dataset(data), 100])
      self.assertEqual(found, 100 + sum(numbers))


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of parts of graphs that are traced once."""

import collections
from typing import NamedTuple
from unittest import mock

from absl.testing import absltest
import numpy as np
import tensorflow as tf

from tff_autotune_secagg.numerics import subgraphs


class _Pair(NamedTuple):
  low: tf.Tensor
  high: tf.Tensor


def _counted():
  """Returns a function that is traced once, and the list of its traces."""
  traces = []

  @subgraphs.traced_once
  def scaled(state, x, *, factor):
    traces.append(factor)
    # Twice the same, and something that nobody needs.
    tf.exp(x)
    double = tf.square(x + 1.0) + tf.square(x + 1.0)
    total = tf.while_loop(
      lambda y: tf.reduce_all(y < 100.0), lambda y: (2.0 * y,), (double,)
    )[0]
    pair = _Pair(state['offset'], state['offset'] + factor * total)
    return collections.OrderedDict(pair=pair, input=x)

  return scaled, traces


def _run(function, **arguments):
  """Returns what a function finds in a new graph, and the graph's nodes."""
  graph = tf.Graph()
  with graph.as_default():
    found = tf.nest.map_structure(tf.identity, function(**arguments))
    with tf.compat.v1.Session() as session:
      return session.run(found), graph.as_graph_def().node


class TracedOnceTest(absltest.TestCase):
  def test_a_second_graph_gets_a_copy_with_its_own_tensors(self):
    function, traces = _counted()
    for x in ([1.0, 2.0], [0.5, 3.0], [7.0, 8.0]):

      def in_graph(x=x):
        state = collections.OrderedDict(offset=tf.constant(3.0))
        return function(state, tf.constant(x), factor=2.0)

      found, _ = _run(in_graph)
      state = collections.OrderedDict(offset=tf.constant(3.0))
      wanted = function(state, tf.constant(x), factor=2.0)
      tf.nest.assert_same_structure(found, wanted)
      for one, other in zip(tf.nest.flatten(found), tf.nest.flatten(wanted)):
        np.testing.assert_array_equal(one, other)
    # Once for the graphs, and each time outside of graphs.
    self.assertLen(traces, 1 + 3)

  def test_other_settings_shapes_and_structures_are_other_graphs(self):
    function, traces = _counted()

    def call(size=2, factor=2.0, names=('offset',)):
      def in_graph():
        state = {name: tf.constant(1.0) for name in names}
        return function(state, tf.ones([size]), factor=factor)

      found, _ = _run(in_graph)
      return found['pair'].high

    for _ in range(2):
      np.testing.assert_array_equal(call(), 257.0 * np.ones(2))
      np.testing.assert_array_equal(call(size=3), 257.0 * np.ones(3))
      np.testing.assert_array_equal(call(factor=1.0), 129.0 * np.ones(2))
      np.testing.assert_array_equal(
        call(names=('offset', 'other')), 257.0 * np.ones(2)
      )
    self.assertEqual(traces, [2.0, 2.0, 1.0, 2.0])

  def test_what_is_there_twice_or_for_nobody_is_left_out(self):
    function, _ = _counted()

    def in_graph():
      state = collections.OrderedDict(offset=tf.constant(1.0))
      return function(state, tf.ones([2]), factor=2.0)

    _, nodes = _run(in_graph)
    operations = collections.Counter(node.op for node in nodes)
    self.assertEqual(operations['Square'], 1)
    self.assertEqual(operations['Exp'], 0)

  def test_old_traces_are_forgotten(self):
    function, traces = _counted()

    def call(factor):
      with tf.Graph().as_default():
        state = collections.OrderedDict(offset=tf.constant(1.0))
        function(state, tf.ones([2]), factor=factor)

    factors = [1.0, 2.0, 3.0]
    with mock.patch.object(subgraphs, '_MOST_TRACED', 2):
      for factor in factors + factors[-1:] + factors[:1]:
        call(factor)
    self.assertEqual(traces, factors + factors[:1])


if __name__ == '__main__':
  absltest.main()

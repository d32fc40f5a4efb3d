# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `weigh`, on plain tensors; the arithmetic is `weights_test`'s."""

import collections

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tff_autotune_secagg.stages import weigh

_SPECS = [tf.TensorSpec([2], tf.float16), tf.TensorSpec([], tf.float64)]


def _mean(made, clients):
  """Mean and measurements of a round."""
  encoded = [made.encode(leaves, made.parameters({})) for leaves in clients]
  sums = [sum(leaves) for leaves in zip(*(leaves for leaves, _ in encoded))]
  signals = collections.OrderedDict(
    (name, sum(found[name] for _, found in encoded))
    for name in made.signal_limits
  )
  mean, state, measured = made.decode(sums, signals, collections.OrderedDict())
  return mean, state, measured


def _client(first, second):
  return [tf.constant(first, tf.float16), tf.constant(second, tf.float64)]


class WeighStageTest(parameterized.TestCase):
  def test_the_last_leaf_is_the_weight(self):
    made = weigh.WeighStage(_SPECS, is_weighted=True)
    mean, state, measured = _mean(
      made,
      [
        [*_client([200.0, 1.0], 3.0), tf.constant(400)],
        [*_client([100.0, 2.0], -1.0), tf.constant(100)],
        [*_client([np.nan, 9.0], 9.0), tf.constant(500)],
      ],
    )
    # 200 * 400 is more than float16 holds.
    np.testing.assert_array_equal(mean[0], np.float16([180.0, 1.2]))
    self.assertAlmostEqual(float(mean[1]), 2.2)
    self.assertEqual([leaf.dtype for leaf in mean], [tf.float16, tf.float64])
    self.assertEmpty(state)
    self.assertEqual(
      {name: float(value) for name, value in measured.items()},
      dict(weight_sum=500.0, rejected_clients=1.0),
    )

  def test_without_weights_each_client_is_one(self):
    made = weigh.WeighStage(_SPECS, is_weighted=False)
    mean, _, measured = _mean(
      made, [_client([1.0, 2.0], 3.0), _client([3.0, -2.0], np.inf)]
    )
    np.testing.assert_array_equal(mean[0], [1.0, 2.0])
    self.assertEqual(float(mean[1]), 3.0)
    self.assertEqual(float(measured['weight_sum']), 1.0)
    self.assertEqual(int(measured['rejected_clients']), 1)

  def test_passes_on_what_has_room_for_products(self):
    for is_weighted in (False, True):
      made = weigh.WeighStage(_SPECS, is_weighted=is_weighted)
      self.assertEqual(
        made.out_specs,
        [tf.TensorSpec([2], tf.float32), tf.TensorSpec([], tf.float64)],
      )

  def test_the_sum_inside_is_called_value(self):
    made, inner = weigh.WeighStage(_SPECS, is_weighted=True), object()
    state = made.nest_state(made.initial_state(), inner)
    self.assertEqual(list(state), ['value'])
    own, found = made.unnest_state(state)
    self.assertEmpty(own)
    self.assertIs(found, inner)
    measured = made.nest_measurements(collections.OrderedDict(a=1), inner)
    self.assertEqual(list(measured.items()), [('value', inner), ('a', 1)])


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `weigh`, on plain tensors."""

import collections
import fractions

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tff_autotune_secagg.stages import weigh

_SPECS = [tf.TensorSpec([2], tf.float16), tf.TensorSpec([], tf.float64)]
_NAN, _INF = np.nan, np.inf
_LEAF = tf.constant([1.0, -2.0])


def _encode(leaves, weight):
  """What a client of a weighted mean sends."""
  specs = [tf.TensorSpec(leaf.shape, leaf.dtype) for leaf in leaves]
  made = weigh.WeighStage(specs, is_weighted=True)
  return made.encode([*leaves, weight], made.parameters({}))


def _sum(signals):
  """The clients' signals, added as Python integers."""
  return collections.OrderedDict(
    (name, tf.constant(sum(int(s[name]) for s in signals), tf.int64))
    for name in weigh.WeighStage.signal_limits
  )


def _mean(made, clients):
  """Mean and measurements of a round."""
  encoded = [made.encode(leaves, made.parameters({})) for leaves in clients]
  sums = [sum(leaves) for leaves in zip(*(leaves for leaves, _ in encoded))]
  signals = _sum([found for _, found in encoded])
  mean, state, measured = made.decode(sums, signals, collections.OrderedDict())
  assert not state
  return mean, {name: float(value) for name, value in measured.items()}


def _client(first, second):
  return [tf.constant(first, tf.float16), tf.constant(second, tf.float64)]


class EncodeTest(parameterized.TestCase):
  def _assert_rejected(self, leaves, signals):
    for leaf in leaves:
      np.testing.assert_array_equal(leaf, np.zeros_like(leaf))
    self.assertEqual([int(s) for s in signals.values()], [0, 0, 1])

  @parameterized.parameters(
    tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int32, tf.int64
  )
  def test_takes_weights_of_every_dtype(self, dtype):
    leaves, signals = _encode([_LEAF], tf.constant(3, dtype))
    np.testing.assert_array_equal(leaves[0], 3 * _LEAF)
    self.assertEqual([int(s) for s in signals.values()], [3, 0, 0])

  def test_products_are_in_the_working_dtype(self):
    for dtype, expected in (
      (tf.float16, tf.float32),
      (tf.bfloat16, tf.float32),
      (tf.float32, tf.float32),
      (tf.float64, tf.float64),
    ):
      # 400 * 400 is above what float16 holds.
      leaves, _ = _encode([tf.constant([400.0], dtype)], 400)
      self.assertEqual(leaves[0].dtype, expected)
      np.testing.assert_allclose(leaves[0], [160_000.0])

  @parameterized.parameters(0.0, 2.0**-40, 1 / 3, 1e6, 2.0**40)
  def test_signals_hold_the_weight_exactly(self, weight):
    _, signals = _encode([], tf.constant(weight, tf.float64))
    whole, fraction = int(signals['whole']), int(signals['fraction'])
    exact = fractions.Fraction(weight)
    found = whole + fractions.Fraction(fraction, 2**40)
    self.assertLessEqual(abs(found - exact), fractions.Fraction(1, 2**41))
    for name, limit in weigh.WeighStage.signal_limits.items():
      self.assertBetween(int(signals[name]), 0, limit)

  @parameterized.parameters(-1.0, -1e-300, _NAN, _INF, -_INF, 2.0**40 + 1)
  def test_rejects_weights(self, weight):
    self._assert_rejected(*_encode([_LEAF], tf.constant(weight, tf.float64)))

  @parameterized.parameters(
    (_NAN, 1.0), (_INF, 1.0), (_INF, 0.0), (1e30, 1e10), (3e19, 1.0)
  )
  def test_rejects_values(self, bad, weight):
    # Any leaf spoils the client, and all of it.
    for leaves in ([_LEAF, [0.0, bad]], [[bad, 0.0], _LEAF]):
      leaves = [tf.constant(leaf, tf.float32) for leaf in leaves]
      self._assert_rejected(*_encode(leaves, weight))


class MeanTest(parameterized.TestCase):
  def test_the_last_leaf_is_the_weight(self):
    mean, measured = _mean(
      weigh.WeighStage(_SPECS, is_weighted=True),
      [
        [*_client([200.0, 1.0], 3.0), tf.constant(400)],
        [*_client([100.0, 2.0], -1.0), tf.constant(100)],
        [*_client([_NAN, 9.0], 9.0), tf.constant(500)],
      ],
    )
    # 200 * 400 is more than float16 holds.
    np.testing.assert_array_equal(mean[0], np.float16([180.0, 1.2]))
    self.assertAlmostEqual(float(mean[1]), 2.2)
    self.assertEqual([leaf.dtype for leaf in mean], [tf.float16, tf.float64])
    self.assertEqual(measured, dict(weight_sum=500.0, rejected_clients=1.0))

  def test_without_weights_each_client_is_one(self):
    mean, measured = _mean(
      weigh.WeighStage(_SPECS, is_weighted=False),
      [_client([1.0, 2.0], 3.0), _client([3.0, -2.0], _INF)],
    )
    np.testing.assert_array_equal(mean[0], [1.0, 2.0])
    self.assertEqual(float(mean[1]), 3.0)
    self.assertEqual(measured, dict(weight_sum=1.0, rejected_clients=1.0))

  @parameterized.parameters(1, 2, 3)
  def test_sum_of_weights_is_exact_to_a_unit_per_client(self, seed):
    given = np.random.default_rng(seed).uniform(0, 1e3, 1000)
    signals = [
      _encode([], tf.constant(weight, tf.float64))[1] for weight in given
    ]
    sums = _sum(signals)
    found = int(sums['whole']) + fractions.Fraction(
      int(sums['fraction']), 2**40
    )
    exact = sum(fractions.Fraction(weight) for weight in given)
    self.assertLessEqual(abs(found - exact), fractions.Fraction(1000, 2**41))
    # Negative control: float32 sums are off by more.
    single = fractions.Fraction(float(np.sum(given.astype(np.float32))))
    self.assertGreater(abs(single - exact), fractions.Fraction(1000, 2**41))

  @parameterized.parameters(tf.float16, tf.bfloat16, tf.float32, tf.float64)
  def test_is_the_weighted_mean_in_the_dtype_of_the_value(self, dtype):
    mean, measured = _mean(
      weigh.WeighStage([tf.TensorSpec([2], dtype)], is_weighted=True),
      [
        [tf.constant([1.0, 2.0], dtype), 0.25],
        [tf.constant([3.0, -4.0], dtype), 0.75],
      ],
    )
    self.assertEqual(mean[0].dtype, dtype)
    np.testing.assert_array_equal(tf.cast(mean[0], tf.float64), [2.5, -2.5])
    self.assertEqual(measured['weight_sum'], 1.0)

  def test_is_zero_without_weight(self):
    made = weigh.WeighStage([tf.TensorSpec([1], tf.float32)], is_weighted=True)
    means, _, measured = made.decode([tf.constant([7.0])], _sum([]), {})
    np.testing.assert_array_equal(means[0], [0.0])
    self.assertEqual(float(measured['weight_sum']), 0.0)
    self.assertEqual(measured['weight_sum'].dtype, tf.float32)


if __name__ == '__main__':
  absltest.main()

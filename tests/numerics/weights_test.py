# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import fractions

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tff_autotune_secagg.numerics import weights

_NAN, _INF = np.nan, np.inf
_LEAF = np.float32([1.0, -2.0])


def _sum(signals):
  """The clients' signals, added as Python integers."""
  return {
    name: tf.constant(sum(int(s[name]) for s in signals), tf.int64)
    for name in weights.SIGNAL_LIMITS
  }


class WeighTest(parameterized.TestCase):
  def _assert_rejected(self, leaves, signals):
    for leaf in leaves:
      np.testing.assert_array_equal(leaf, np.zeros_like(leaf))
    self.assertEqual([int(s) for s in signals.values()], [0, 0, 1])

  @parameterized.parameters(
    tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int32, tf.int64
  )
  def test_takes_weights_of_every_dtype(self, dtype):
    leaves, signals = weights.weigh([_LEAF], tf.constant(3, dtype))
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
      leaves, _ = weights.weigh([tf.constant([400.0], dtype)], 400)
      self.assertEqual(leaves[0].dtype, expected)
      np.testing.assert_allclose(leaves[0], [160_000.0])

  @parameterized.parameters(0.0, 2.0**-40, 1 / 3, 1e6, 2.0**40)
  def test_signals_hold_the_weight_exactly(self, weight):
    _, signals = weights.weigh([], tf.constant(weight, tf.float64))
    whole, fraction = int(signals['whole']), int(signals['fraction'])
    exact = fractions.Fraction(weight)
    found = whole + fractions.Fraction(fraction, 2**40)
    self.assertLessEqual(abs(found - exact), fractions.Fraction(1, 2**41))
    for name, limit in weights.SIGNAL_LIMITS.items():
      self.assertBetween(int(signals[name]), 0, limit)

  @parameterized.parameters(-1.0, -1e-300, _NAN, _INF, -_INF, 2.0**40 + 1)
  def test_rejects_weights(self, weight):
    self._assert_rejected(
      *weights.weigh([_LEAF], tf.constant(weight, tf.float64))
    )

  @parameterized.parameters(
    (_NAN, 1.0), (_INF, 1.0), (_INF, 0.0), (1e30, 1e10), (3e19, 1.0)
  )
  def test_rejects_values(self, bad, weight):
    # Any leaf spoils the client, and all of it.
    for leaves in ([_LEAF, [0.0, bad]], [[bad, 0.0], _LEAF]):
      leaves = [tf.constant(leaf, tf.float32) for leaf in leaves]
      self._assert_rejected(*weights.weigh(leaves, weight))


class DivideTest(parameterized.TestCase):
  @parameterized.parameters(1, 2, 3)
  def test_sum_of_weights_is_exact_to_a_unit_per_client(self, seed):
    given = np.random.default_rng(seed).uniform(0, 1e3, 1000)
    signals = [
      weights.weigh([], tf.constant(weight, tf.float64))[1] for weight in given
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

  def test_is_the_weighted_mean_in_the_dtypes_of_the_specs(self):
    values = np.array([[1.0, 2.0], [3.0, -4.0]])
    for dtype in (tf.float16, tf.bfloat16, tf.float32, tf.float64):
      weighed = [
        weights.weigh([tf.constant(v, dtype)], w)
        for v, w in zip(values, (0.25, 0.75))
      ]
      total = tf.add_n([leaves[0] for leaves, _ in weighed])
      means, weight_sum = weights.divide(
        [total],
        _sum([signals for _, signals in weighed]),
        [tf.TensorSpec([2], dtype)],
      )
      self.assertEqual(means[0].dtype, dtype)
      np.testing.assert_array_equal(tf.cast(means[0], tf.float64), [2.5, -2.5])
      self.assertEqual(weight_sum.dtype, tf.float32)
      self.assertEqual(float(weight_sum), 1.0)

  def test_is_zero_without_weight(self):
    means, weight_sum = weights.divide(
      [tf.constant([7.0])], _sum([]), [tf.TensorSpec([1], tf.float32)]
    )
    np.testing.assert_array_equal(means[0], [0.0])
    self.assertEqual(float(weight_sum), 0.0)


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `clip`, on plain tensors."""

import collections

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tff_autotune_secagg.stages import clip
from tff_autotune_secagg.stages import stage

_DIM = 50


def _stage(l2_norm_clip, dtype=tf.float32):
  return clip.ClipStage(
    [tf.TensorSpec([_DIM], dtype)],
    l2_norm_clip=l2_norm_clip,
    noise_multiplier=1.0,
    count_stddev=2.0,
  )


def _vector(length):
  vector = np.random.default_rng(1).normal(size=_DIM)
  return (vector * length / np.linalg.norm(vector)).astype(np.float32)


def _state(made, clip_norm):
  return collections.OrderedDict(
    made.initial_state(), clip_norm=tf.constant(clip_norm, tf.float32)
  )


class FixedTest(parameterized.TestCase):
  @parameterized.parameters(1e-15, 1e-3, 1.0, 1e15)
  def test_passes_on_units_of_the_clip_norm(self, clip_norm):
    made = _stage(clip_norm)
    state = made.initial_state()
    for share in (0.5, 1.0, 7.0):
      vector = _vector(share) * np.float32(clip_norm)
      (units,), signals = made.encode([vector], made.parameters(state))
      self.assertEmpty(signals)
      norm = np.linalg.norm(units.numpy().astype(np.float64))
      self.assertAlmostEqual(norm, min(share, 1.0), delta=1e-5)
      (back,), next_state, _ = made.decode([units], (), state)
      np.testing.assert_allclose(
        back, vector * min(1.0, 1.0 / share), rtol=1e-5
      )
      self.assertEqual(next_state['clip_norm'], np.float32(clip_norm))

  def test_reports_the_noise_of_the_sum(self):
    made = _stage(3.0)
    state = made.initial_state()
    _, _, measured = made.decode([tf.zeros([_DIM])], (), state)
    self.assertEqual(
      dict(measured), dict(clip_norm=np.float32(3), noise_stddev=np.float32(3))
    )

  @parameterized.product(
    clip_norm=[0.0, -1e-20, -1.0, -np.inf, np.nan], l2_norm_clip=[1.0, None]
  )
  def test_a_norm_that_is_not_positive_hands_on_zeros(
    self, clip_norm, l2_norm_clip
  ):
    """As a server may say it that is not to be trusted."""
    (units,), _ = _stage(l2_norm_clip).encode(
      [_vector(5.0)], tf.constant(clip_norm, tf.float32)
    )
    np.testing.assert_array_equal(units, np.zeros(units.shape))

  def test_keeps_the_dtype(self):
    made = _stage(3.0, tf.float64)
    (units,), _ = made.encode(
      [tf.ones([_DIM], tf.float64)], made.parameters(made.initial_state())
    )
    self.assertEqual(units.dtype, tf.float64)
    (back,), _, _ = made.decode([units], (), made.initial_state())
    self.assertEqual(back.dtype, tf.float64)


class AdaptiveTest(parameterized.TestCase):
  def test_has_a_coordinate_for_the_bit(self):
    made = _stage(None)
    self.assertEqual(made.out_specs, [tf.TensorSpec([_DIM + 1], tf.float32)])
    parameters = made.parameters(made.initial_state())
    for length, sign in ((0.05, 1.0), (0.2, -1.0)):
      (units,), _ = made.encode([_vector(length)], parameters)
      self.assertEqual(units.shape, [_DIM + 1])
      self.assertEqual(np.sign(units[-1]), sign)

  def test_an_update_of_0_is_passed_on_as_0(self):
    """It is what the guarantee's neighbour sends, the bit included."""
    made = _stage(None)
    parameters = made.parameters(made.initial_state())
    (units,), _ = made.encode([tf.zeros([_DIM])], parameters)
    np.testing.assert_array_equal(units, np.zeros([_DIM + 1]))

  @parameterized.parameters((20, -1.0), (80, 1.0))
  def test_moves_towards_the_median(self, num_within, direction):
    made = _stage(None)
    state = made.initial_state()
    parameters = made.parameters(state)
    sent = [
      made.encode([_vector(0.01 if i < num_within else 9.0)], parameters)[0][0]
      for i in range(100)
    ]
    (mean,), next_state, measured = made.decode(
      [tf.reduce_mean(tf.stack(sent), axis=0)], (), state
    )
    self.assertEqual(mean.shape, [_DIM])
    self.assertAlmostEqual(
      float(measured['share_within_clip_norm']), num_within / 100, places=5
    )
    change = np.log(next_state['clip_norm'].numpy() / 0.1)
    self.assertAlmostEqual(change, -0.2 * 0.3 * direction, places=5)

  def test_zeros_leave_it_as_it_is(self):
    made = _stage(None)
    state = _state(made, 0.7)
    _, next_state, measured = made.decode([tf.zeros([_DIM + 1])], (), state)
    self.assertEqual(next_state['clip_norm'], np.float32(0.7))
    self.assertEqual(measured['share_within_clip_norm'], 0.0)

  @parameterized.parameters((1e-15, 1.0), (1e15, -1.0))
  def test_stays_within_what_a_state_may_hold(self, clip_norm, last):
    made = _stage(None)
    state = _state(made, clip_norm)
    mean = tf.constant([1.0] * _DIM + [9.0 * last])
    for _ in range(3):
      _, state, _ = made.decode([mean], (), state)
      made.parameters(state)


class RefusalTest(parameterized.TestCase):
  @parameterized.parameters(
    0.0, -1.0, np.nan, np.inf, -np.inf, 1e-38, 1e-16, 1e16, 3e38
  )
  def test_an_unsound_clip_norm_is_refused(self, clip_norm):
    for made in (_stage(1.0), _stage(None)):
      with self.assertRaisesRegex(
        tf.errors.InvalidArgumentError,
        'The state was written with `clip_norm` .*, but this'
        ' distributed_dp_aggregator has `clip_norm` between 1e-15 and 1e15:',
      ):
        made.parameters(_state(made, clip_norm))

  def test_another_clip_is_refused(self):
    fixed, longer, adaptive = _stage(1.0), _stage(2.0), _stage(None)
    for made, other, message in (
      (fixed, longer, '`l2_norm_clip` 2, but'),
      # Of two that differ it is the one that a user has given.
      (fixed, adaptive, '`l2_norm_clip` None, but .* `l2_norm_clip` 1.0: '),
      (adaptive, fixed, '`l2_norm_clip` 1, but .* `l2_norm_clip` None: '),
    ):
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError, message):
        stage.unnest_state(made, stage.initial_state(other, ()))


if __name__ == '__main__':
  absltest.main()

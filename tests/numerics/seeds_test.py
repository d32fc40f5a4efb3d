# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tff_autotune_secagg.numerics import seeds


class PrivateSeedTest(absltest.TestCase):
  def test_differs_by_call_and_trace_even_under_a_global_seed(self):
    """Two runs of a global seed; tf.random.uniform, the control, repeats."""
    found, controls = [], []
    for _ in range(2):
      tf.random.set_seed(5)

      @tf.function
      def draw():
        control = tf.random.uniform([], maxval=2**30, dtype=tf.int32)
        return seeds.private_seed(), control

      for _ in range(3):
        seed, control = draw()
        found.append(tuple(seed.numpy().tolist()))
        controls.append(int(control))
    self.assertLen(set(found), 6)
    self.assertEqual(controls[:3], controls[3:])
    self.assertEqual(seed.dtype, tf.int64)
    self.assertEqual(seed.shape, [2])

  def test_uses_all_64_bits(self):
    """Each of 64 bits is 0 in one of 200 draws and 1 in another."""
    draws = [seeds.private_seed().numpy() for _ in range(100)]
    bits = np.concatenate(draws).view(np.uint64)
    self.assertEqual(np.bitwise_or.reduce(bits), 2**64 - 1)
    self.assertEqual(np.bitwise_and.reduce(bits), 0)


class WordsTest(parameterized.TestCase):
  @parameterized.product(
    pair=[(0, 0), (7, -3), (-(2**31), 2**31 - 1)],
    seed_dtype=[tf.int32, tf.int64],
    dtype=[tf.int32, tf.uint32, tf.int64, tf.uint64],
  )
  def test_are_those_of_philox(self, pair, seed_dtype, dtype):
    """As TensorFlow makes a stream of a seed itself, in many operations."""
    seed = tf.constant(pair, seed_dtype)
    found = seeds.words(seeds.stream(seed), [3, 5], dtype)
    wanted = tf.random.stateless_uniform(
      [3, 5], seed, None, None, dtype, alg='philox'
    )
    np.testing.assert_array_equal(found, wanted)
    self.assertEqual(found.dtype, dtype)


class SplitTest(parameterized.TestCase):
  @parameterized.parameters(tf.int32, tf.int64)
  def test_seeds_are_of_128_bits_whatever_they_come_from(self, dtype):
    draws = [
      seeds.split(tf.constant([number, 7], dtype), 3).numpy()
      for number in range(100)
    ]
    self.assertEqual((draws[0].dtype, draws[0].shape), (np.int64, (3, 2)))
    self.assertLen({tuple(pair) for draw in draws for pair in draw}, 300)
    draws = np.stack(draws).view(np.uint64)
    for found in (np.bitwise_or.reduce(draws), ~np.bitwise_and.reduce(draws)):
      self.assertTrue(np.all(found == 2**64 - 1))

  @parameterized.parameters(*range(0, 64, 7), 63)
  def test_every_bit_of_a_seed_counts(self, bit):
    changes = np.uint64(1 << bit).astype(np.int64)
    first = seeds.split(tf.constant([5, 9], tf.int64), 2)
    for pair in ([5 ^ changes, 9], [5, 9 ^ changes]):
      other = seeds.split(tf.constant(pair, tf.int64), 2)
      self.assertFalse(np.any(first == other))


class StateTest(parameterized.TestCase):
  def test_rounds_have_seeds_of_their_own_and_repeat_from_a_state(self):
    state = seeds.initial_state(7, seeds.ROTATION_STREAM)
    found = []
    for number in range(4):
      self.assertEqual(int(state['round']), number)
      seed = seeds.round_seed(state)
      np.testing.assert_array_equal(seed, seeds.round_seed(state))
      found.append(seed.numpy().tolist())
      state = seeds.next_state(state)
    # In both halves: one that stayed would tell the seeds to come.
    for half in zip(*found):
      self.assertLen(set(half), 4)
    self.assertEqual(state['seed'].dtype, tf.int64)
    self.assertEqual(state['round'].dtype, tf.int64)

  def test_equal_seeds_of_two_streams_draw_apart(self):
    """Signs and dither must not come from the same random words."""
    words = []
    for stream in (seeds.ROTATION_STREAM, seeds.DITHER_STREAM):
      seed = seeds.round_seed(seeds.initial_state(7, stream))
      words.append(
        tf.random.stateless_uniform([8], seed, None, None, tf.uint32).numpy()
      )
    self.assertFalse(np.any(words[0] == words[1]))

  @parameterized.parameters(0, 7, 2**63 - 1)
  def test_given_seed_is_kept(self, seed):
    state = seeds.initial_state(seed, seeds.DITHER_STREAM)
    self.assertEqual(int(state['seed'][0]), seed)

  def test_seed_is_drawn_if_none_is_given(self):
    first, second = (seeds.initial_state(None, 0) for _ in range(2))
    self.assertNotEqual(
      first['seed'].numpy().tolist(), second['seed'].numpy().tolist()
    )


if __name__ == '__main__':
  absltest.main()

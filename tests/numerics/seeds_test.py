# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import json
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests import fresh_python
from tff_autotune_secagg.numerics import seeds

# Children of processes that TensorFlow has run in have no threads to run more,
# so those that draw by the system come first.
_FORKED = """
import json, os
import tensorflow as tf
from tff_autotune_secagg.numerics import seeds

def drawn(draw):
  found = []
  for _ in range(3):
    reader, writer = os.pipe()
    if not os.fork():
      os.write(writer, json.dumps(draw().numpy().tolist()).encode())
      os._exit(0)
    os.close(writer)
    found.append(json.loads(os.fdopen(reader).read()))
    os.wait()
  return found

system = drawn(seeds.system_seed)
seeds.private_seed()
print(json.dumps([system, drawn(seeds.private_seed)]))
"""


class SystemSeedTest(parameterized.TestCase):
  def test_differs_in_every_run_of_one_trace_even_under_a_global_seed(self):
    found = []
    for _ in range(2):
      tf.random.set_seed(5)
      draw = tf.function(seeds.system_seed)
      found += [tuple(draw().numpy().tolist()) for _ in range(3)]
    self.assertLen({half for pair in found for half in pair}, 12)
    seed = draw()
    self.assertEqual((seed.dtype, seed.shape), (tf.int64, [2]))

  def test_all_128_bits_are_random_and_apart(self):
    draw = tf.function(seeds.system_seed)
    num = 400
    drawn = np.stack([draw().numpy() for _ in range(num)]).view(np.uint8)
    bits = np.unpackbits(drawn, axis=1).astype(np.float64)
    self.assertEqual(bits.shape, (num, 128))
    # Five standard errors, for each of 128 bits and of their 8128 pairs.
    error = 5.0 / np.sqrt(num)
    signs = 2.0 * bits - 1.0
    self.assertLess(np.max(np.abs(signs.mean(axis=0))), error)
    pairs = signs.T @ signs / num - np.eye(128)
    self.assertLess(np.max(np.abs(pairs)), 1.1 * error)
    # The control: a version digit of the UUID in a seed would be seen.
    self.assertGreater(abs(np.ones(num).mean()), error)

  def test_is_the_digits_of_two_uuids(self):
    """With Python's own reading of hexadecimal numbers."""
    lines = [
      'da8e09ab-3563-4433-9da1-baa673a9d7da',
      '00112233-4455-4677-8899-aabbccddeeff',
    ]
    with (
      _uuid_file(self, f'{lines[0]}\n'),
      mock.patch.object(tf.data, 'TextLineDataset', lambda _: _dataset(lines)),
    ):
      found = seeds.system_seed().numpy().view(np.uint64)
    for line, number in zip(lines, found):
      digits = line[9:13] + line[24:]
      # The first digit is the lowest.
      self.assertEqual(int(number), int(digits[::-1], 16))

  @parameterized.named_parameters(
    ('no_file', None, 'no such file'),
    ('a_constant', 'da8e09ab-3563-4433-9da1-baa673a9d7da\n', 'da8e09ab.*da8e'),
    ('something_else', 'hello\n', 'hello.*hello'),
    ('upper_case', 'DA8E09AB-3563-4433-9DA1-BAA673A9D7DA\n', 'DA8E'),
  )
  def test_without_entropy_it_fails_and_says_what_to_do(self, content, found):
    with _uuid_file(self, content):
      for draw in (seeds.system_seed, tf.function(seeds.system_seed)):
        with self.assertRaisesRegex(
          tf.errors.InvalidArgumentError,
          r'(?s)The noise of clients must have entropy of the operating system,'
          rf' two different UUIDs from .*, found.*{found}.*Pass'
          r' `client_seed_fn` with another source or, in a simulation,'
          r' `allow_guessable_noise=True`\.',
        ):
          draw()

  def test_forked_processes_draw_apart(self):
    output = fresh_python.run('-c', _FORKED, TF_CPP_MIN_LOG_LEVEL='3')
    self.assertEqual(output.status, 0, output.stderr)
    system, control = json.loads(output.stdout)
    self.assertLen({half for pair in system for half in pair}, 6)
    # The control: they inherit TensorFlow's generator as it is.
    self.assertEqual(control[0], control[1])
    self.assertEqual(control[0], control[2])


def _dataset(lines):
  return tf.data.Dataset.from_tensor_slices(lines)


def _uuid_file(test, content):
  """Has `system_seed` read a file of this content, or one that is not there."""
  path = test.create_tempdir().full_path + '/uuid'
  if content is not None:
    with open(path, 'w', encoding='ascii') as file:
      file.write(content)
  return mock.patch.object(seeds, '_UUID_FILE', path)


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

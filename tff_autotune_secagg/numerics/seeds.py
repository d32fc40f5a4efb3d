# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Random seeds inside TensorFlow computations.

TFF traces a computation once, so a draw in Python would be the same in every
round. And `tf.random.set_seed` before tracing would freeze the draws of
stateful ops, which then repeat between clients. This module avoids both.
"""

import collections
from typing import NamedTuple, Optional, Sequence

import tensorflow as tf

ROTATION_STREAM = 0
DITHER_STREAM = 1
DOWNLOAD_STREAM = 2
SAMPLE_STREAM = 3

# Each read of it gives another UUID of the kernel's generator (Linux, since
# 1.3). A read of /dev/urandom never ends, as TensorFlow reads whole files.
_UUID_FILE = '/proc/sys/kernel/random/uuid'
_UUID = '[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}'
_UUID_LENGTH = 36
# Where it has 16 digits that are random in all of their bits: 6 of the 128 bits
# of a UUID of version 4 are fixed.
_RANDOM_DIGITS = [*range(9, 13), *range(24, _UUID_LENGTH)]
_BITS_PER_DIGIT = 4


def system_seed() -> tf.Tensor:
  """Draws an int64 seed [2], 128 bits of the operating system's entropy.

  Read where and when the computation runs: at a client, anew in each round. No
  state of the process is involved, so processes that were forked from one
  another draw apart.

  Guarantees:
    All 128 bits are the kernel's, 64 of each of two UUIDs, and no hash is
    relied on. TensorFlow's stateless generators take no longer seeds.

  Raises:
    tf.errors.InvalidArgumentError: when run, on a system without that file
      (macOS, Windows, some sandboxes), or if what is read is not two different
      UUIDs.
  """
  is_there = tf.size(tf.io.matching_files(_UUID_FILE)) > 0
  with tf.control_dependencies([_refuse_unless(is_there, 'no such file')]):
    # Only then read: TensorFlow's own error says nothing of what to do.
    path = tf.identity(_UUID_FILE)
  dataset = tf.data.TextLineDataset([path, path]).batch(2)
  lines = tf.reshape(dataset.get_single_element(), [2])
  are_sound = tf.reduce_all(tf.strings.regex_full_match(lines, _UUID))
  are_sound &= tf.not_equal(lines[0], lines[1])
  with tf.control_dependencies([_refuse_unless(are_sound, lines)]):
    characters = tf.io.decode_raw(lines, tf.uint8, fixed_length=_UUID_LENGTH)
  characters = tf.gather(characters, _RANDOM_DIGITS, axis=1)
  codes = tf.cast(characters, tf.int64)
  are_letters = tf.cast(codes >= ord('a'), tf.int64)
  digits = codes - ord('0') - are_letters * (ord('a') - 10 - ord('0'))
  shifts = tf.range(len(_RANDOM_DIGITS), dtype=tf.int64) * _BITS_PER_DIGIT
  return tf.reduce_sum(tf.bitwise.left_shift(digits, shifts), axis=1)


def _refuse_unless(condition: tf.Tensor, found) -> tf.Operation:
  """Returns an op that fails unless clients have entropy for their noise."""
  return tf.debugging.Assert(
    condition,
    [
      'The noise of clients must have entropy of the operating system, two'
      f' different UUIDs from {_UUID_FILE}, found',
      found,
      'Pass `client_seed_fn` with another source or, in a simulation,'
      ' `allow_guessable_noise=True`.',
    ],
  )


# Of `tf.random.Algorithm`.
_PHILOX = 1


class Stream(NamedTuple):
  """Where random words come from: two tensors, uint64, of Philox."""

  key: tf.Tensor
  counter: tf.Tensor


def stream(seed: tf.Tensor) -> Stream:
  """Returns the stream that a seed, int32 or int64 [2], stands for.

  The one that `tf.random.stateless_uniform(..., alg='philox')` draws from, in
  one operation of a graph instead of thirty.
  """
  return Stream(*tf.raw_ops.StatelessRandomGetKeyCounter(seed=seed))


def words(source: Stream, shape: Sequence[int], dtype: tf.DType) -> tf.Tensor:
  """Draws integers, uniform on all that the dtype has.

  Args:
    source: of `stream`; it gives the same words each time.
    shape: Python ints.
    dtype: tf.int32, tf.uint32, tf.int64 or tf.uint64.

  Returns:
    Tensor of that shape and dtype, the same on every device.
  """
  return tf.raw_ops.StatelessRandomUniformFullIntV2(
    shape=shape,
    key=source.key,
    counter=source.counter,
    alg=_PHILOX,
    dtype=dtype,
  )


def private_seed() -> tf.Tensor:
  """Draws an int64 seed [2] that differs by client and round, to be no secret.

  The seed comes from a generator that TensorFlow seeds with 32 bits of the
  system's entropy once for each process: whoever sees what is drawn can try
  them all, and forked processes draw the same. It is good for rotations and
  rounding, on which no secret rests; `system_seed` is for noise that hides
  something. No seed of TensorFlow's touches this op. Unlike
  all other TensorFlow ops without a seed, it also runs where TensorFlow is made
  deterministic by `TF_DETERMINISTIC_OPS` or
  `tf.config.experimental.enable_op_determinism`: private draws must not repeat.
  """
  return tf.raw_ops.NonDeterministicInts(shape=[2], dtype=tf.int64)


def split(seed: tf.Tensor, num: int) -> tf.Tensor:
  """Returns seeds of 128 bits, independent of each other, from one of 128 bits.

  Use this for secrets. `tf.random.experimental.stateless_fold_in` keeps only as
  many bits of a seed as its number has: 32 for a Python int, and somebody can
  try them all.

  Args:
    seed: int32 or int64 tensor [2]. Nothing else may be drawn from it.
    num: Python int.

  Returns:
    int64 tensor [num, 2].
  """
  return words(stream(tf.cast(seed, tf.int64)), [num, 2], tf.int64)


def initial_state(seed: Optional[int], stream: int) -> collections.OrderedDict:
  """Returns the state before the first round.

  Args:
    seed: int of 63 bits, or None to draw one.
    stream: tells apart components that a user gives the same seed.

  Returns:
    `seed` (int64 [2]) and `round` (int64, 0).
  """
  if seed is None:
    pair = private_seed()
  else:
    pair = tf.constant([seed, stream], tf.int64)
  return collections.OrderedDict(seed=pair, round=tf.constant(0, tf.int64))


def round_seed(state: collections.OrderedDict) -> tf.Tensor:
  """Returns the seed of the coming round, int64 [2].

  Clients get this seed, and must not learn the seeds of other rounds from it.
  The fold puts the same word in front of every round's number, and the split
  mixes the two.
  """
  folded = tf.random.experimental.stateless_fold_in(
    state['seed'], state['round']
  )
  return split(folded, 1)[0]


def next_state(state: collections.OrderedDict) -> collections.OrderedDict:
  """Returns the state for the round after."""
  return collections.OrderedDict(
    seed=state['seed'], round=state['round'] + tf.constant(1, tf.int64)
  )

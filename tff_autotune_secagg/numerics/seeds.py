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
  """Draws an int64 seed [2] that differs by client and round.

  The seed comes from a generator that TensorFlow seeds from the system's
  entropy once for each process. No seed of TensorFlow's touches this op. Unlike
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

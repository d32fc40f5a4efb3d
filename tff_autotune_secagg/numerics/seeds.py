# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Random seeds inside TensorFlow computations.

TFF traces a computation once, so a draw in Python would be the same in every
round. And `tf.random.set_seed` before tracing would freeze the draws of
stateful ops, which then repeat between clients. This module avoids both.
"""

import collections
from typing import Optional

import tensorflow as tf

ROTATION_STREAM = 0
DITHER_STREAM = 1
DOWNLOAD_STREAM = 2
SAMPLE_STREAM = 3


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
  seed = tf.cast(seed, tf.int64)
  return tf.random.experimental.stateless_split(seed, num, alg='philox')


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

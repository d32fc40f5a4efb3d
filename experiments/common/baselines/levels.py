# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Equidistant levels: how many fit, and rounding to them."""

import tensorflow as tf


def most_levels(bits: int, num_clients: int) -> int:
  """Returns the most levels of a client whose sums fit into `bits`."""
  return (2**bits - 1) // num_clients + 1


def round_to_levels(value, lowest, step, num_levels):
  """Rounds to a neighbour in `lowest + step * {0 .. num_levels - 1}`, unbiased.

  Args:
    value: float32 tensor, clipped here to the range of the levels.
    lowest: float32 scalar, the lowest level.
    step: float32 scalar, positive.
    num_levels: Python int, at least 2.

  Returns:
    int32 tensor of level numbers. Unseeded: each client and round differs.
  """
  position = tf.clip_by_value(
    (value - lowest) / step, 0.0, float(num_levels - 1)
  )
  below = tf.floor(position)
  up = tf.random.uniform(tf.shape(value)) < position - below
  return tf.cast(below, tf.int32) + tf.cast(up, tf.int32)

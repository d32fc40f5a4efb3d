# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Bisection of a monotone condition, elementwise."""

from typing import Callable

import numpy as np
import tensorflow as tf

# Three points at once quarter an interval: for the few elements of a round,
# starting an operation takes longer than the operation.
_PARTS = 4
# Divides an interval of 30 to 1e-12, below what any caller can tell.
_STEPS = 23


def bisect(
  is_below: Callable[[tf.Tensor], tf.Tensor], low: tf.Tensor, high: tf.Tensor
) -> tf.Tensor:
  """Returns where `is_below` turns from True to False between low and high.

  Args:
    is_below: maps a float64 tensor of shape [3, ...] to a bool tensor of the
      same shape, True below the searched point and False above it.
    low: float64 tensor [...], lower ends.
    high: float64 tensor of the same shape, upper ends.

  Returns:
    float64 tensor, above the point by at most 2**-46 of the interval; `high`
    where the condition holds throughout, next to `low` where it holds nowhere.
  """
  inner = np.arange(1.0, _PARTS)

  def narrow(low, high):
    step = (high - low) / _PARTS
    points = low + step * inner.reshape([-1] + [1] * low.shape.rank)
    below = tf.cast(is_below(points), tf.float64)
    # Up to the first point that is not below, in case they are not in order.
    num_below = tf.reduce_sum(tf.math.cumprod(below), axis=0)
    is_last = tf.equal(num_below, _PARTS - 1.0)
    low += step * num_below
    return low, tf.where(is_last, high, low + step)

  # A loop keeps the graph of a computation small.
  _, high = tf.while_loop(
    lambda low, high: True, narrow, (low, high), maximum_iterations=_STEPS
  )
  return high

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Bisection of a monotone condition, elementwise."""

from typing import Callable

import tensorflow as tf

# Halves an interval of 30 to 1e-12, below what any caller can tell.
_STEPS = 45


def bisect(
  is_below: Callable[[tf.Tensor], tf.Tensor], low: tf.Tensor, high: tf.Tensor
) -> tf.Tensor:
  """Returns where `is_below` turns from True to False between low and high.

  Args:
    is_below: maps a float64 tensor to a bool tensor of the same shape, True
      below the searched point and False above it.
    low: float64 tensor, lower ends.
    high: float64 tensor of the same shape, upper ends.

  Returns:
    float64 tensor, above the point by at most 2**-45 of the interval; `high`
    where the condition holds throughout, next to `low` where it holds nowhere.
  """

  def halve(low, high):
    middle = (low + high) / 2
    below = is_below(middle)
    return tf.where(below, middle, low), tf.where(below, high, middle)

  # A loop keeps the graph of a computation small.
  _, high = tf.while_loop(
    lambda low, high: True, halve, (low, high), maximum_iterations=_STEPS
  )
  return high

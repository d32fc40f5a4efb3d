# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Turns broken values into NaN."""

import collections

import tensorflow as tf

from tff_autotune_secagg.stages import stage


class MarkBrokenStage(stage.Stage):
  """Turns coordinates that are not finite into NaN.

  TFF's zeroing takes an infinity for a large coordinate: it replaces the update
  by zeros and keeps its weight, so that the mean shrinks. It passes NaN on, and
  whoever weighs the value rejects the client, weight and all.
  """

  def encode(self, leaves, parameters):
    """Replaces what is not finite by NaN."""
    del parameters  # None.
    return [self._marked(leaf) for leaf in leaves], collections.OrderedDict()

  def decode(self, leaves, signals, state):
    """Hands the sum on."""
    del signals  # None.
    return list(leaves), state, collections.OrderedDict()

  def _marked(self, leaf):
    """Returns the leaf, or one with NaN in it."""
    # The sum of squares takes one pass. It may overflow by itself.
    is_clear = tf.math.is_finite(tf.nn.l2_loss(leaf))

    def look_at_each():
      nan = tf.constant(float('nan'), leaf.dtype)
      return tf.where(tf.math.is_finite(leaf), leaf, nan)

    return tf.cond(is_clear, lambda: tf.identity(leaf), look_at_each)

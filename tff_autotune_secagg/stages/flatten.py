# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Concatenation of all leaves into one vector."""

import collections

import tensorflow as tf

from tff_autotune_secagg.stages import stage


class FlattenStage(stage.Stage):
  """Makes a vector of all leaves, in order; float64 if any leaf is."""

  keeps_structure = False

  def __init__(self, specs):
    """Initializes the stage for leaves of these specs."""
    super().__init__(specs)
    has_float64 = any(spec.dtype == tf.float64 for spec in specs)
    self._dtype = tf.float64 if has_float64 else tf.float32
    self._sizes = [spec.shape.num_elements() for spec in specs]
    self.out_specs = [tf.TensorSpec([sum(self._sizes)], self._dtype)]

  def encode(self, leaves, parameters):
    """Concatenates."""
    del parameters  # None.
    parts = [tf.reshape(tf.cast(leaf, self._dtype), [-1]) for leaf in leaves]
    if not parts:
      parts = [tf.zeros([0], self._dtype)]
    vector = parts[0] if len(parts) == 1 else tf.concat(parts, axis=0)
    return [vector], collections.OrderedDict()

  def decode(self, leaves, signals, state):
    """Splits, and casts back."""
    del signals  # None.
    (vector,) = leaves
    parts = tf.split(vector, self._sizes) if self._sizes else []
    split = [
      tf.cast(tf.reshape(part, spec.shape), spec.dtype)
      for part, spec in zip(parts, self._specs)
    ]
    return split, state, collections.OrderedDict()

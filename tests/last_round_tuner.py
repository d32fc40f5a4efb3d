# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The rule before the forecast, as a control: the last round with a margin."""

import collections

import tensorflow as tf

from tff_autotune_secagg.numerics.reading import stripes
from tff_autotune_secagg.numerics.tuning import operating_point
from tff_autotune_secagg.numerics.tuning import tuners


class LastRoundTuner(tuners.Tuner):
  """The bin of least error if the next sum is as long as the last.

  ln of its size may have moved by a normal amount of standard deviation 0.1;
  errors count relative to the last size. The ladder never moves.
  """

  def initial_state(self):
    return collections.OrderedDict(
      bin_size=tf.constant(1.0, tf.float32), calibrating=tf.constant(True)
    )

  def bin_sizes(self, state):
    return tf.where(
      state['calibrating'],
      stripes.ladder(tf.constant(0)),
      stripes.level(state['bin_size']),
    )

  def reported_bin_size(self, state):
    return state['bin_size']

  def next_state(self, state, fitted, num_clients):
    log_sizes, weights = operating_point.normal_nodes(0.1)
    best = operating_point.best_operating_point(
      tf.maximum(num_clients, 1.0),
      self.modulus,
      self.rounding,
      self.decoding,
      log_sizes,
      weights * tf.exp(2.0 * log_sizes),
    )
    has_clients = num_clients > 0.0
    is_lost = tf.logical_or(fitted.is_blind, fitted.is_zero)
    learned = tf.logical_and(has_clients, tf.logical_not(is_lost))
    lost = tf.logical_and(has_clients, is_lost)
    bin_size = best.bin_per_stddev * fitted.sum_stddev
    bin_size = tf.cast(tf.clip_by_value(bin_size, 1e-30, 1e30), tf.float32)
    return collections.OrderedDict(
      bin_size=tf.where(learned, bin_size, state['bin_size']),
      calibrating=tf.where(
        learned, False, tf.logical_or(state['calibrating'], lost)
      ),
    )

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The plain mean with its largest sums clipped."""

import collections
import math

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff


class ClippedMeanFactory(tff.aggregators.WeightedAggregationFactory):
  """Scales an inner mean down whose sum is larger than sums usually are.

  The sum, mean times weights, is what a secure sum sees, and what is damped
  where it is larger than expected. It grows with the clients' weights, too.

  At clients: nothing of its own.
  At server: the inner result is scaled down so that its sum has at most
  `factor` times the usual norm, which is the geometric mean of the norms
  before, the last one counting a tenth. The first sum defines it, and
  is clipped if `factor` is below 1.

  Types: those of the inner mean.
  State: `log_norm` (float32), `num_rounds` (int32) and `inner`.
  Measurements: `is_clipped` (bool) and `inner`.
  Limits: a sum of norm 0 or not finite teaches nothing and is not clipped.
  """

  _DECAY = 0.9

  def __init__(self, inner_factory, *, factor: float):
    """Initializes the factory.

    Args:
      inner_factory: A `tff.aggregators.WeightedAggregationFactory`.
      factor: Positive float.
    """
    self._inner_factory = inner_factory
    self._factor = factor

  def create(self, value_type, weight_type):
    inner = self._inner_factory.create(value_type, weight_type)
    own_type = tff.to_type(
      collections.OrderedDict(log_norm=np.float32, num_rounds=np.int32)
    )

    @tff.tensorflow.computation
    def initial():
      return collections.OrderedDict(log_norm=0.0, num_rounds=0)

    @tff.tensorflow.computation(
      own_type, inner.next.type_signature.result['result'].member, weight_type
    )
    def clip(own, mean, weight_sum):
      norm = tf.linalg.global_norm(tf.nest.flatten(mean)) * weight_sum
      log_norm = tf.math.log(norm)
      teaches = tf.math.is_finite(log_norm)
      is_first = tf.equal(own['num_rounds'], 0)
      usual = tf.where(is_first, log_norm, own['log_norm'])
      excess = log_norm - usual - math.log(self._factor)
      is_clipped = tf.logical_and(teaches, excess > 0)
      scale = tf.where(is_clipped, tf.exp(-excess), 1.0)
      learned = self._DECAY * usual + (1 - self._DECAY) * log_norm
      new_own = collections.OrderedDict(
        log_norm=tf.where(teaches, learned, own['log_norm']),
        num_rounds=own['num_rounds'] + tf.cast(teaches, tf.int32),
      )
      clipped = tf.nest.map_structure(lambda leaf: leaf * scale, mean)
      return new_own, clipped, is_clipped

    @tff.federated_computation()
    def init_fn():
      own = tff.federated_eval(initial, tff.SERVER)
      return tff.federated_zip(
        collections.OrderedDict(own=own, inner=inner.initialize())
      )

    @tff.federated_computation(
      init_fn.type_signature.result,
      tff.FederatedType(value_type, tff.CLIENTS),
      tff.FederatedType(weight_type, tff.CLIENTS),
    )
    def next_fn(state, value, weight):
      output = inner.next(state['inner'], value, weight)
      own, mean, is_clipped = tff.federated_map(
        clip, (state['own'], output.result, tff.federated_sum(weight))
      )
      return tff.templates.MeasuredProcessOutput(
        tff.federated_zip(collections.OrderedDict(own=own, inner=output.state)),
        mean,
        tff.federated_zip(
          collections.OrderedDict(
            is_clipped=is_clipped, inner=output.measurements
          )
        ),
      )

    return tff.templates.AggregationProcess(init_fn, next_fn)

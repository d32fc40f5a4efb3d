# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The sum of vectors that each client quantizes to a range of its own.

Made for experiments: it checks little and takes one float32 vector.
"""

import tensorflow as tf
import tensorflow_federated as tff

from experiments.common.baselines import levels


class LocallyQuantizedSumFactory(tff.aggregators.UnweightedAggregationFactory):
  """Sums float32 vectors that each client quantizes to a range of its own.

  At clients: values are rounded at random to `num_levels` levels between the
  client's own least and greatest value.
  At server: the sum of the decoded vectors, in the clear: each client's own
  range must be known to read its levels.

  Types: `value_type` is a float32 tensor. The result type equals it.
  State: empty. Measurements: empty.
  Guarantees: unbiased.
  Reference: Suresh et al. (2017), arXiv:1611.00429, section 2.
  """

  def __init__(self, *, num_levels: int):
    self._num_levels = num_levels

  def create(self, value_type):
    @tff.tensorflow.computation(value_type)
    def quantize(value):
      lowest = tf.reduce_min(value)
      step = (tf.reduce_max(value) - lowest) / (self._num_levels - 1)
      # A constant vector has no range; any positive step returns it exactly.
      step = tf.where(step > 0, step, 1.0)
      numbers = levels.round_to_levels(value, lowest, step, self._num_levels)
      return lowest + tf.cast(numbers, tf.float32) * step

    @tff.federated_computation()
    def init_fn():
      return tff.federated_value((), tff.SERVER)

    @tff.federated_computation(
      init_fn.type_signature.result,
      tff.FederatedType(value_type, tff.CLIENTS),
    )
    def next_fn(state, value):
      result = tff.federated_sum(tff.federated_map(quantize, value))
      return tff.templates.MeasuredProcessOutput(
        state, result, tff.federated_value((), tff.SERVER)
      )

    return tff.templates.AggregationProcess(init_fn, next_fn)

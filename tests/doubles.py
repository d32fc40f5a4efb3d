# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Doubles: factories that tests put under the one they test."""

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff


class SumPlusOneFactory(tff.aggregators.UnweightedAggregationFactory):
  """A double: adds 1 to every entry of the sum, which it shows, and counts.

  State: rounds so far. Measurements: the sum, before the 1 is added. With a
  modulus, the result is reduced by it.
  """

  def __init__(self, modulus=None):
    self._modulus = modulus

  def create(self, value_type):
    modulus = self._modulus

    def plus_one(x):
      x += tf.ones([], x.dtype)
      return x if modulus is None else tf.math.floormod(x, modulus)

    @tff.federated_computation
    def init_fn():
      return tff.federated_value(np.int32(0), tff.SERVER)

    @tff.tensorflow.computation(value_type)
    def add_one(value):
      return tf.nest.map_structure(plus_one, value)

    @tff.tensorflow.computation(np.int32)
    def count(rounds):
      return rounds + 1

    @tff.federated_computation(
      tff.FederatedType(np.int32, tff.SERVER),
      tff.FederatedType(value_type, tff.CLIENTS),
    )
    def next_fn(state, value):
      total = tff.federated_sum(value)
      return tff.templates.MeasuredProcessOutput(
        tff.federated_map(count, state),
        tff.federated_map(add_one, total),
        total,
      )

    return tff.templates.AggregationProcess(init_fn, next_fn)

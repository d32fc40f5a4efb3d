# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Any structure of float tensors as one vector."""

import tensorflow as tf
import tensorflow_federated as tff

from tff_autotune_secagg.factories import value_types


class FlattenFactory(tff.aggregators.UnweightedAggregationFactory):
  """Hands a structure of float tensors on as one vector.

  One vector means one rotation, one padding and one fit. Unlike
  `tff.aggregators.concat_factory` it takes mixed float dtypes, scalars, empty
  tensors and structures without a Python container.

  At clients: leaves are cast to float64 if one of them is float64, else to
    float32, and concatenated.
  At server: the inner result is split and cast back.
  Types: `value_type` is any structure of float16, bfloat16, float32 and float64
    tensors of defined shape; the result has the same type and containers.
  State and measurements: those of the inner process.

  Limits: the cast back rounds, and overflows to infinity, as the dtype does: a
    sum of float16 leaves above 65,504 is infinite.
  """

  def __init__(
    self,
    inner_factory: tff.aggregators.UnweightedAggregationFactory,
  ):
    """Initializes the factory.

    Args:
      inner_factory: aggregates the vector.

    Raises:
      TypeError: `inner_factory` is no unweighted factory.
    """
    self._inner_factory = value_types.check_sum_factory(
      'inner_factory', inner_factory
    )

  def create(self, value_type) -> tff.templates.AggregationProcess:
    """Creates the process.

    Args:
      value_type: structure of float tensors of defined shape.

    Returns:
      A `tff.templates.AggregationProcess`.

    Raises:
      TypeError: `value_type` holds something else.
    """
    value_types.check_floats(value_type)
    specs = value_types.leaf_specs(value_type)
    has_float64 = any(spec.dtype == tf.float64 for spec in specs)
    dtype = tf.float64 if has_float64 else tf.float32
    sizes = [spec.shape.num_elements() for spec in specs]

    @tff.tensorflow.computation(value_type)
    def concatenate(value):
      leaves = value_types.flatten(value)
      parts = [tf.reshape(tf.cast(leaf, dtype), [-1]) for leaf in leaves]
      if not parts:
        return tf.zeros([0], dtype)
      return parts[0] if len(parts) == 1 else tf.concat(parts, axis=0)

    vector_type = concatenate.type_signature.result
    inner_process = self._inner_factory.create(vector_type)

    @tff.tensorflow.computation(vector_type)
    def split(vector):
      parts = tf.split(vector, sizes) if sizes else []
      leaves = [
        tf.cast(tf.reshape(part, spec.shape), spec.dtype)
        for part, spec in zip(parts, specs)
      ]
      return value_types.pack(leaves, value_type)

    @tff.federated_computation(
      inner_process.initialize.type_signature.result,
      tff.FederatedType(value_type, tff.CLIENTS),
    )
    def next_fn(state, value):
      output = inner_process.next(state, tff.federated_map(concatenate, value))
      return tff.templates.MeasuredProcessOutput(
        state=output.state,
        result=tff.federated_map(split, output.result),
        measurements=output.measurements,
      )

    return tff.templates.AggregationProcess(inner_process.initialize, next_fn)

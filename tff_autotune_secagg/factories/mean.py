# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Means over clients whose every sum is secure.

TFF's mean factories sum values and weights apart, so that a client whose value
an inner factory refuses still counts in the denominator. Here a client is
accepted or rejected once, with value and weight together.
"""

import collections

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_autotune_secagg import _checks
from tff_autotune_secagg.factories import value_types

# A weight travels as its whole part and its fraction in units of 2**-40, both
# exact in int64 for up to 2**22 clients.
_WEIGHT_BITS = 40
MAX_WEIGHT = 2.0**_WEIGHT_BITS


class SecureMeanFactory(tff.aggregators.WeightedAggregationFactory):
  """Weighted mean with secure sums only.

  At clients: the value is multiplied by the weight. A client is rejected, and
    adds nothing to either sum, if its weight is negative, not finite or above
    2**40, or if the squares of the product do not have a finite sum (in float32
    for leaves up to float32): an entry is not finite, or the norm is above
    1.8e19, where a rotation may overflow.
  At server: the sum of values is divided by the sum of weights; the mean is 0
    if that is 0.
  Types: `value_type` is a structure of float16, bfloat16, float32 and float64
    tensors, `weight_type` a float or integer scalar. The inner factory is
    created for the same structure, in float64 for float64 leaves and float32
    otherwise: values times weights of hundreds overflow float16. The result
    type equals `value_type`.
  State: `value` (that of the inner process).
  Measurements: `value` (those of the inner process), `weight_sum` (float32) and
    `rejected_clients` (int32).
  Secure signals: beside those of the inner process, the weight (two integers)
    and whether the client was rejected, by `tff.federated_secure_sum`.

  Guarantees: the sum of weights is exact to 2**-40 per client.
  """

  def __init__(
    self, value_sum_factory: tff.aggregators.UnweightedAggregationFactory
  ):
    """Initializes the factory.

    Args:
      value_sum_factory: sums the weighted values.

    Raises:
      TypeError: it is not an unweighted aggregation factory.
    """
    self._value_sum_factory = value_types.check_sum_factory(
      'value_sum_factory', value_sum_factory
    )

  def create(self, value_type, weight_type) -> tff.templates.AggregationProcess:
    """Creates the process.

    Args:
      value_type: structure of float tensors of defined shape.
      weight_type: scalar float or integer type.

    Returns:
      A `tff.templates.AggregationProcess`.

    Raises:
      TypeError: a type is another one.
    """
    value_types.check_floats(value_type)
    _check_weight_type(weight_type)
    weigh, divide = _computations(value_type, weight_type)
    process = self._value_sum_factory.create(weigh.type_signature.result[0])

    @tff.federated_computation
    def init_fn():
      return _state(process.initialize())

    @tff.federated_computation(
      init_fn.type_signature.result,
      tff.FederatedType(value_type, tff.CLIENTS),
      tff.FederatedType(weight_type, tff.CLIENTS),
    )
    def next_fn(state, value, weight):
      return _next(state, value, weight, process, weigh, divide)

    return tff.templates.AggregationProcess(init_fn, next_fn)


class SecureUnweightedMeanFactory(tff.aggregators.UnweightedAggregationFactory):
  """Unweighted mean with secure sums only.

  Like `SecureMeanFactory` with all weights 1: a client with an entry that is
  not finite is rejected and does not count in the denominator.
  """

  def __init__(
    self, value_sum_factory: tff.aggregators.UnweightedAggregationFactory
  ):
    """Initializes the factory.

    Args:
      value_sum_factory: sums the values.

    Raises:
      TypeError: it is not an unweighted aggregation factory.
    """
    self._value_sum_factory = value_types.check_sum_factory(
      'value_sum_factory', value_sum_factory
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
    weigh, divide = _computations(value_type, tff.TensorType(np.float32))
    process = self._value_sum_factory.create(weigh.type_signature.result[0])

    @tff.federated_computation
    def init_fn():
      return _state(process.initialize())

    @tff.federated_computation(
      init_fn.type_signature.result,
      tff.FederatedType(value_type, tff.CLIENTS),
    )
    def next_fn(state, value):
      weight = tff.federated_value(np.float32(1.0), tff.CLIENTS)
      return _next(state, value, weight, process, weigh, divide)

    return tff.templates.AggregationProcess(init_fn, next_fn)


def _check_weight_type(weight_type):
  """Raises TypeError unless the type is a float or integer scalar."""
  is_tensor = isinstance(weight_type, tff.TensorType)
  # A shape of None is an unknown one.
  is_scalar = is_tensor and weight_type.shape is not None
  is_scalar = is_scalar and not len(weight_type.shape)
  dtype = tf.as_dtype(weight_type.dtype) if is_scalar else None
  if dtype is None or not (dtype.is_floating or dtype.is_integer):
    raise _checks.type_error(
      'weight_type', 'a float or integer scalar', weight_type
    )


def _state(inner):
  return tff.federated_zip(collections.OrderedDict(value=inner))


def _next(state, value, weight, process, weigh, divide):
  """Wires one round of either mean."""
  # Client computation.
  weighted = tff.federated_map(weigh, (value, weight))

  # Inner aggregations.
  output = process.next(state['value'], weighted[0])
  limits = collections.OrderedDict(
    whole=2**_WEIGHT_BITS, fraction=2**_WEIGHT_BITS, rejected=1
  )
  sums = tff.federated_secure_sum(weighted[1], max_input=limits)

  # Server computation.
  result, weight_sum = tff.federated_map(divide, (output.result, sums))
  return tff.templates.MeasuredProcessOutput(
    state=_state(output.state),
    result=result,
    measurements=tff.federated_zip(
      collections.OrderedDict(
        value=output.measurements,
        weight_sum=weight_sum,
        rejected_clients=sums['rejected'],
      )
    ),
  )


def _computations(value_type, weight_type):
  """Returns the client's and the server's TensorFlow computations."""
  unit = 2.0**_WEIGHT_BITS

  @tff.tensorflow.computation(value_type, weight_type)
  def weigh(value, weight):
    weight = tf.cast(weight, tf.float64)
    is_valid = tf.logical_and(weight >= 0.0, weight <= MAX_WEIGHT)
    weight = tf.where(is_valid, weight, 0.0)
    leaves = value_types.flatten(value)
    products = []
    for leaf in leaves:
      dtype = value_types.working_dtype(leaf.dtype)
      products.append(tf.cast(leaf, dtype) * tf.cast(weight, dtype))
    # 0 times infinity is NaN, so that the value needs no look of its own. The
    # norm bounds the entries of every rotation: what passes here passes there.
    finite = [tf.math.is_finite(tf.reduce_sum(tf.square(p))) for p in products]
    is_valid = tf.reduce_all(finite + [is_valid])
    products = [tf.where(is_valid, p, tf.zeros_like(p)) for p in products]
    weight = tf.where(is_valid, weight, 0.0)
    whole = tf.floor(weight)
    signals = collections.OrderedDict(
      whole=tf.cast(whole, tf.int64),
      fraction=tf.cast(tf.round((weight - whole) * unit), tf.int64),
      rejected=tf.cast(tf.logical_not(is_valid), tf.int32),
    )
    return value_types.pack(products, value_type), signals

  sums_type = weigh.type_signature.result[1]
  specs = value_types.leaf_specs(value_type)

  @tff.tensorflow.computation(weigh.type_signature.result[0], sums_type)
  def divide(value, sums):
    weight_sum = tf.cast(sums['whole'], tf.float64)
    weight_sum += tf.cast(sums['fraction'], tf.float64) / unit
    leaves = []
    for leaf, spec in zip(value_types.flatten(value), specs):
      mean = tf.math.divide_no_nan(leaf, tf.cast(weight_sum, leaf.dtype))
      leaves.append(tf.cast(mean, spec.dtype))
    mean = value_types.pack(leaves, value_type)
    return mean, tf.cast(weight_sum, tf.float32)

  return weigh, divide

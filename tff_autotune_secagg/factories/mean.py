# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Means over clients whose every sum is secure.

TFF's mean factories sum values and weights apart, so that a client whose value
an inner factory refuses still counts in the denominator. Here a client is
accepted or rejected once, with value and weight together.
"""

import sys

import tensorflow as tf
import tensorflow_federated as tff

from tff_autotune_secagg import _checks
from tff_autotune_secagg.factories import chain
from tff_autotune_secagg.factories import value_types
from tff_autotune_secagg.stages import weigh


class SecureMeanFactory(tff.aggregators.WeightedAggregationFactory):
  """Weighted mean with secure sums only.

  At clients:
    The value is multiplied by the weight. A client is rejected, and adds
    nothing to either sum, if its weight is negative, not finite, above 2**40 or
    between 0 and 2**-40, or if the squares of the product do not have a finite
    sum (in float32 for leaves up to float32): a coordinate is not finite, or
    the norm is above 1.8e19, where a rotation may overflow.
  At server:
    The sum of values is divided by the sum of weights. If the weights add up to
    0, the mean is 0.
  Types:
    `value_type` is a structure of float16, bfloat16, float32 and float64
    tensors, `weight_type` a float or integer scalar. The inner factory is
    created for the same structure, in float64 for float64 leaves and float32
    otherwise: values times weights of hundreds overflow float16. The result
    type equals `value_type`.
  State:
    `value` (that of the inner process).
  Measurements:
    `value` (those of the inner process, in units of values times weights),
    `weight_sum` (float32) and `rejected_clients` (int32).
  Secure signals:
    Beside those of the inner process: the weight (two integers), and whether
    the client was rejected, by `tff.federated_secure_sum`.

  Guarantees:
    The sum of weights is exact to 2**-40 per client.
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
      TypeError: a type is not as described.
    """
    value_types.check_floats(value_type)
    _check_weight_type(weight_type)
    return chain.create_process(
      [(weigh.WeighStage, dict(is_weighted=True))],
      self._value_sum_factory,
      value_type,
      weight_type,
    )


class SecureUnweightedMeanFactory(chain.ChainedFactory):
  """Unweighted mean with secure sums only.

  Like `SecureMeanFactory` with all weights 1: a client with a coordinate that
  is not finite is rejected and does not count in the denominator.
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
    value_sum_factory = value_types.check_sum_factory(
      'value_sum_factory', value_sum_factory
    )
    super().__init__(
      [(weigh.WeighStage, dict(is_weighted=False))], value_sum_factory
    )


def refuse_mean_around(owner: str) -> None:
  """Raises ValueError if a mean factory is about to divide another mean.

  Called by the `create` of a factory whose result is a mean. To TFF a factory
  of sums and one of means are of the same type. So it looks at who called it,
  with whatever is between the two, such as zeroing.

  Args:
    owner: the function that made the factory.

  Raises:
    ValueError: a mean factory of TFF or of this module is among the callers.
  """
  means = (
    tff.aggregators.MeanFactory,
    tff.aggregators.UnweightedMeanFactory,
    SecureMeanFactory,
    SecureUnweightedMeanFactory,
  )
  frame = sys._getframe(1)
  while frame is not None:
    caller = frame.f_locals.get('self')
    if frame.f_code.co_name == 'create' and isinstance(caller, means):
      raise ValueError(
        f'`value_sum_factory` must not be a {owner}, found one in a'
        f' {type(caller).__name__}: it returns the mean, which would be divided'
        ' once more. Pass it as it is, without a mean around it.'
      )
    frame = frame.f_back


def _check_weight_type(weight_type):
  """Raises TypeError unless the type is a float or integer scalar."""
  is_tensor = isinstance(weight_type, tff.TensorType)
  # A shape of None is unknown.
  is_scalar = is_tensor and weight_type.shape is not None
  is_scalar = is_scalar and not len(weight_type.shape)
  dtype = tf.as_dtype(weight_type.dtype) if is_scalar else None
  if dtype is None or not (dtype.is_floating or dtype.is_integer):
    raise _checks.type_error(
      'weight_type', 'a float or integer scalar', weight_type
    )

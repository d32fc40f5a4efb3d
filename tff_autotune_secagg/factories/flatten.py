# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Any structure of float tensors as one vector."""

import tensorflow as tf
import tensorflow_federated as tff

from tff_autotune_secagg.factories import chain
from tff_autotune_secagg.factories import value_types
from tff_autotune_secagg.stages import flatten
from tff_autotune_secagg.stages import mark_broken

_PASSED_AS_THEY_ARE = (tf.float32, tf.float64)


class FlattenFactory(chain.ChainedFactory):
  """Hands a structure of float tensors on as one vector.

  One vector means one rotation, one padding and one fit. Unlike
  `tff.aggregators.concat_factory` it takes mixed float dtypes, scalars, empty
  tensors and structures without a Python container.

  At clients:
    Leaves are cast to float64 if one of them is float64, else to float32, and
    concatenated.
  At server:
    The inner result is split and cast back.
  Types:
    `value_type` is any structure of float16, bfloat16, float32 and float64
    tensors of defined shape; the result has the same type and containers.
  State:
    That of the inner process.
  Measurements:
    Those of the inner process.

  Limits:
    The cast back rounds, and overflows to infinity, as the dtype does: a sum of
    float16 leaves above 65,504 is infinite.
  """

  def __init__(
    self,
    inner_factory: tff.aggregators.UnweightedAggregationFactory,
  ):
    """Initializes the factory.

    Args:
      inner_factory: aggregates the vector.

    Raises:
      TypeError: `inner_factory` is not an unweighted factory.
    """
    inner_factory = value_types.check_sum_factory(
      'inner_factory', inner_factory
    )
    super().__init__([(flatten.FlattenStage, {})], inner_factory)


def flatten_first(
  factory: tff.aggregators.AggregationFactory,
) -> tff.aggregators.AggregationFactory:
  """Wraps a factory so that values are flattened first; weighted if it is.

  Use this for TFF's zeroing and clipping. They compile a computation for each
  tensor: a thousand tensors take minutes. And they take an infinity for a large
  number; it is turned into NaN here, which they hand on to be rejected. A value
  that is a single tensor of float32 or float64 keeps its shape.
  """
  if isinstance(factory, tff.aggregators.WeightedAggregationFactory):
    return _FlattenFirstWeighted(factory)
  return _FlattenFirstUnweighted(factory)


class _FlattenFirstUnweighted(tff.aggregators.UnweightedAggregationFactory):
  """An unweighted factory behind a flattening."""

  def __init__(self, factory):
    self._factory = factory

  def create(self, value_type) -> tff.templates.AggregationProcess:
    return _create_flattened(self._factory, value_type)


class _FlattenFirstWeighted(tff.aggregators.WeightedAggregationFactory):
  """A weighted factory behind a flattening."""

  def __init__(self, factory):
    self._factory = factory

  def create(self, value_type, weight_type) -> tff.templates.AggregationProcess:
    return _create_flattened(self._factory, value_type, weight_type)


# TFF's builders answer an aggregator of the wrong kind with the name of its
# class, and only this says which argument makes the other kind.
for _made, _is_weighted in (
  (_FlattenFirstWeighted, True),
  (_FlattenFirstUnweighted, False),
):
  _made.__module__ = 'tff_autotune_secagg'
  _made.__name__ = f'autotuned_secure_aggregator(weighted={_is_weighted})'


def _create_flattened(factory, value_type, *weight_types):
  """Returns the process of `flatten_first`."""
  value_types.check_floats(value_type)
  stages = [(mark_broken.MarkBrokenStage, {})]
  is_tensor = isinstance(value_type, tff.TensorType)
  if not is_tensor or tf.as_dtype(value_type.dtype) not in _PASSED_AS_THEY_ARE:
    stages.insert(0, (flatten.FlattenStage, {}))
  return chain.create_process(
    stages, factory, value_type, *weight_types, inner_takes_weight=True
  )

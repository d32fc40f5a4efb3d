# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Structures of tensors as flat lists of leaves, and back.

Every factory maps a structure leaf by leaf. Going through lists keeps whatever
container the caller has (tuples, dicts, attrs classes, unnamed TFF structures)
and lets a leaf change its dtype or shape on the way.
"""

from typing import Any, List, Optional, Tuple

import tensorflow as tf
import tensorflow_federated as tff

from tff_autotune_secagg import _checks

_FLOATS = (tf.float16, tf.bfloat16, tf.float32, tf.float64)
_INTEGERS = (tf.int32, tf.int64)


def _leaf_types(
  value_type: tff.Type, path: str = ''
) -> List[Tuple[str, tff.Type]]:
  """Returns (path, type) of every leaf, in order."""
  if not isinstance(value_type, tff.StructType):
    return [(path, value_type)]
  leaves = []
  elements = tff.structure.iter_elements(value_type)
  for index, (name, element) in enumerate(elements):
    part = str(index) if name is None else name
    leaves += _leaf_types(element, f'{path}/{part}' if path else part)
  return leaves


def _check_leaves(value_type: tff.Type, rule: str, dtypes) -> None:
  """Raises TypeError unless all leaves are tensors of `dtypes`, known shape."""
  if not isinstance(value_type, tff.Type):
    raise _checks.type_error(
      'value_type',
      'a type of TFF, as `tff.TensorType(np.float32, [3])` or `tff.to_type`'
      ' makes one',
      f'{value_type!r:.80} ({type(value_type).__name__})',
    )
  if not isinstance(value_type, (tff.TensorType, tff.StructType)):
    raise _checks.leaf_error(rule, '', value_type)
  for path, leaf in _leaf_types(value_type):
    is_tensor = isinstance(leaf, tff.TensorType)
    if not is_tensor or tf.as_dtype(leaf.dtype) not in dtypes:
      raise _checks.leaf_error(rule, path, leaf)
    if not tff.types.is_shape_fully_defined(leaf.shape):
      raise _checks.leaf_error('tensors of fully defined shape', path, leaf)


def check_sum_factory(
  name: str, factory: Any
) -> tff.aggregators.UnweightedAggregationFactory:
  """Returns `factory` if it can aggregate without weights, or raises."""
  return _checks.check_instance(
    name,
    factory,
    tff.aggregators.UnweightedAggregationFactory,
    'an unweighted aggregation factory',
  )


def check_floats(value_type: tff.Type) -> None:
  """Raises TypeError unless `value_type` is a structure of float tensors."""
  _check_leaves(value_type, 'float tensors', _FLOATS)


def check_integers(value_type: tff.Type) -> None:
  """Raises TypeError unless `value_type` holds int32 and int64 tensors only."""
  _check_leaves(value_type, 'int32 or int64 tensors', _INTEGERS)


def leaf_specs(value_type: tff.Type) -> List[tf.TensorSpec]:
  """Returns the spec of every leaf, in order."""
  return [
    tf.TensorSpec(leaf.shape, tf.as_dtype(leaf.dtype))
    for _, leaf in _leaf_types(value_type)
  ]


def flatten(value: Any) -> List[tf.Tensor]:
  """Returns the leaves of a value inside a TensorFlow computation."""
  if tf.is_tensor(value):
    return [value]
  struct = tff.structure.from_container(value, recursive=True)
  return tff.structure.flatten(struct)


def pack(leaves: List[tf.Tensor], value_type: tff.Type) -> Any:
  """Returns the leaves in the containers of `value_type`."""
  if isinstance(value_type, tff.TensorType):
    (leaf,) = leaves
    return leaf
  struct = tff.structure.pack_sequence_as(value_type, list(leaves))
  if isinstance(value_type, tff.StructWithPythonType):
    return tff.types.type_to_py_container(struct, value_type)
  return struct


def with_leaves(
  value_type: Optional[tff.Type], specs: List[tf.TensorSpec]
) -> tff.Type:
  """Returns a type of the containers of `value_type` with other leaves.

  Args:
    value_type: structure with as many leaves as `specs`; None for one tensor.
    specs: of the leaves, in order.
  """
  leaves = [tff.TensorType(s.dtype.as_numpy_dtype, s.shape) for s in specs]
  if value_type is None:
    (leaf,) = leaves
    return leaf
  remaining = iter(leaves)

  def build(member):
    if not isinstance(member, tff.StructType):
      return next(remaining)
    elements = tff.structure.iter_elements(member)
    elements = [(name, build(element)) for name, element in elements]
    if isinstance(member, tff.StructWithPythonType):
      return tff.StructWithPythonType(elements, member.python_container)
    return tff.StructType(elements)

  return build(value_type)

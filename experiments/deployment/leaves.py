# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The tensors of TFF's types, in the order in which graphs list them."""

import collections
from typing import Any, Iterator, List, NamedTuple, Sequence, Tuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff


class Leaf(NamedTuple):
  """A tensor of a type.

  Attributes:
    name: The names on the way to it with slashes between them; a number where
      there is no name.
    dtype: NumPy's name of its dtype; 'sequence' for a data set.
    shape: Of the tensor; () for a data set.
  """

  name: str
  dtype: str
  shape: Tuple[int, ...]

  @property
  def length(self) -> int:
    """Its number of values."""
    return int(np.prod(self.shape, dtype=np.int64))

  @property
  def num_bytes(self) -> int:
    """What its values take as they are."""
    return self.length * np.dtype(self.dtype).itemsize


def of(type_signature: tff.Type, prefix: str = '') -> List[Leaf]:
  """All leaves of a type, depth first."""
  if isinstance(type_signature, tff.StructType):
    found = []
    for index, (name, member) in enumerate(
      tff.structure.iter_elements(type_signature)
    ):
      place = str(index) if name is None else name
      found += of(member, f'{prefix}/{place}' if prefix else place)
    return found
  if isinstance(type_signature, tff.TensorType):
    dtype = tf.as_dtype(type_signature.dtype).name
    return [Leaf(prefix, dtype, tuple(type_signature.shape))]
  return [Leaf(prefix, 'sequence', ())]


def pack(type_signature: tff.Type, values: Sequence[Any]) -> Any:
  """Nests flat values as a type does: dictionaries by name, else lists."""
  rest = iter(values)
  packed = _pack(type_signature, rest)
  if next(rest, None) is not None:
    raise ValueError(
      f'`values` must be one for each leaf, found {len(values)} for '
      f'{len(of(type_signature))}.'
    )
  return packed


def _pack(type_signature: tff.Type, values: Iterator[Any]) -> Any:
  if not isinstance(type_signature, tff.StructType):
    return next(values)
  members = [
    (name, _pack(member, values))
    for name, member in tff.structure.iter_elements(type_signature)
  ]
  if members and all(name is not None for name, _ in members):
    return collections.OrderedDict(members)
  return [value for _, value in members]

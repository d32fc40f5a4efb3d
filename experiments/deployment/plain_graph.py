# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""A computation of a form as a TensorFlow graph and nothing else.

What a device gets is a serialized graph and the names of its inputs and
outputs. So it is here: TFF serializes a computation, and what runs it is a
session of plain TensorFlow.
"""

from typing import Any, List, Sequence

import tensorflow as tf
import tensorflow_federated as tff

_DATASET_GRAPH = 'serialized_dataset'


def serialize_dataset(dataset: tf.data.Dataset) -> bytes:
  """A data set as a device reads it: a graph that makes it, as bytes."""
  return tf.raw_ops.DatasetToGraphV2(
    input_dataset=tf.data.experimental.to_variant(dataset)
  ).numpy()


def _bindings(binding) -> List[Any]:
  """The tensors and sequences of a binding, depth first."""
  if binding.WhichOneof('binding') == 'struct':
    return [b for member in binding.struct.element for b in _bindings(member)]
  return [binding]


def _read_dataset_from_bytes(graph_def: tf.compat.v1.GraphDef, name: str):
  """Makes the placeholder of a data set an operation that reads it.

  Args:
    graph_def: Changed in place.
    name: Of the placeholder's output, a variant, which nobody can feed.

  Returns:
    The name of a string placeholder, which takes `serialize_dataset`.
  """
  (node,) = (n for n in graph_def.node if n.name == name.partition(':')[0])
  node.op = 'DatasetFromGraph'
  node.ClearField('attr')
  node.input.append(_DATASET_GRAPH)
  node = graph_def.node.add(name=_DATASET_GRAPH, op='Placeholder')
  node.attr['dtype'].type = tf.string.as_datatype_enum
  node.attr['shape'].shape.SetInParent()
  return f'{_DATASET_GRAPH}:0'


class PlainGraph:
  """Runs a computation that has no placements.

  Attributes:
    num_bytes: Of the serialized graph, which a device downloads.
  """

  def __init__(self, computation: tff.Computation):
    """Initializes the graph.

    Args:
      computation: A TensorFlow computation of TFF, with at most one data set
        among its arguments.
    """
    proto = tff.framework.serialize_computation(computation).tensorflow
    graph_def = tf.compat.v1.GraphDef()
    proto.graph_def.Unpack(graph_def)
    self.num_bytes = graph_def.ByteSize()
    self._feeds = []
    if proto.HasField('parameter'):
      for binding in _bindings(proto.parameter):
        if binding.WhichOneof('binding') == 'sequence':
          name = binding.sequence.variant_tensor_name
          self._feeds.append(_read_dataset_from_bytes(graph_def, name))
        else:
          self._feeds.append(binding.tensor.tensor_name)
    self._fetches = [b.tensor.tensor_name for b in _bindings(proto.result)]
    graph = tf.Graph()
    with graph.as_default():
      tf.import_graph_def(graph_def, name='')
    self._initialize = proto.initialize_op or None
    self._session = tf.compat.v1.Session(graph=graph)

  def __call__(self, values: Sequence[Any] = ()) -> List[Any]:
    """Runs the graph.

    Args:
      values: One for each leaf of the argument; `serialize_dataset` of a data
        set.

    Returns:
      An array for each leaf of the result.
    """
    if len(values) != len(self._feeds):
      raise ValueError(
        f'`values` must be {len(self._feeds)}, found {len(values)}.'
      )
    feeds = dict(zip(self._feeds, values))
    if self._initialize is not None:
      self._session.run(self._initialize, feeds)
    return self._session.run(self._fetches, feeds)

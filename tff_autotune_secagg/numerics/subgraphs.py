# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Parts of graphs that are traced once and then copied.

TFF makes new graphs for every process. Python takes 0.2 ms for an operation, so
that a fit and a forecast, which are the same in all processes with the same
settings, would take longer than any round of these processes.
"""

import functools
from typing import Any, Callable, List, NamedTuple

import tensorflow as tf

# For each function; a graph takes up to 100 kB.
_MOST_TRACED = 64


class _Traced(NamedTuple):
  """A traced function.

  Attributes:
    graph_def: its operations.
    inputs: names of the arguments' tensors.
    outputs: names of the results' tensors.
    results: the structure of the results, without them.
  """

  graph_def: tf.compat.v1.GraphDef
  inputs: List[str]
  outputs: List[str]
  results: Any


def traced_once(function: Callable[..., Any]) -> Callable[..., Any]:
  """Makes a function of tensors cheap to call in many graphs.

  The first call in a graph traces the function and drops what it computes
  twice; calls in other graphs copy its operations. Results are those of the
  function. Elsewhere, in a `tf.function` as well, the function itself runs: the
  loops of a copy would end with the first `tf.function` that has one.

  Args:
    function: a pure function, without operations that have a state. Its
      positional arguments are structures of tensors of known shapes, its
      keyword arguments hashable and no tensors. It returns a structure of
      tensors.

  Returns:
    A function of the same arguments and results.
  """
  all_traced = {}

  @functools.wraps(function)
  def call(*arguments, **options):
    if not _is_in_a_graph():
      return function(*arguments, **options)
    arguments = tf.nest.map_structure(tf.convert_to_tensor, arguments)
    tensors = tf.nest.flatten(arguments)
    specs = tuple(tf.TensorSpec(x.shape, x.dtype) for x in tensors)
    key = (specs, repr(_empty(arguments)), tuple(sorted(options.items())))
    traced = all_traced.get(key)
    if traced is None:
      traced = _trace(function, arguments, specs, options)
      if len(all_traced) == _MOST_TRACED:
        all_traced.pop(next(iter(all_traced)), None)
      all_traced[key] = traced
    found = tf.graph_util.import_graph_def(
      traced.graph_def,
      input_map=dict(zip(traced.inputs, tensors)),
      return_elements=traced.outputs,
      # The name of a scope does not begin with an underscore.
      name=function.__name__.strip('_'),
    )
    return tf.nest.pack_sequence_as(traced.results, found)

  return call


def _is_in_a_graph() -> bool:
  """Tells whether operations end up in a `tf.Graph`, as those of TFF do."""
  with tf.init_scope():
    return not tf.executing_eagerly()


def _empty(structure):
  """Returns a structure with zeros in the place of tensors."""
  return tf.nest.map_structure(lambda _: 0, structure)


def _trace(function, arguments, specs, options):
  """Returns what a function is as a graph."""
  results = []

  def of_tensors(*tensors):
    found = function(*tf.nest.pack_sequence_as(arguments, tensors), **options)
    results.append(_empty(found))
    # No output is an input, or twice an output.
    return [tf.identity(x) for x in tf.nest.flatten(found)]

  with tf.init_scope():
    traced = tf.function(of_tensors, autograph=False)
    graph = traced.get_concrete_function(*specs).graph
  inputs = [x.name for x in graph.inputs]
  outputs = [x.name for x in graph.outputs]
  graph_def = graph.as_graph_def()
  nodes = _without_copies(graph_def.node, _node_names(inputs + outputs))
  del graph_def.node[:]
  graph_def.node.extend(nodes)
  return _Traced(graph_def, inputs, outputs, results[-1])


def _without_copies(nodes, kept):
  """Returns the nodes without those that repeat another, or that nobody uses.

  Args:
    nodes: each behind those that it reads.
    kept: names of nodes to keep.
  """
  first_names, renamed, unique = {}, {}, []
  for node in nodes:
    for index, source in enumerate(node.input):
      name, colon, output = source.partition(':')
      node.input[index] = renamed.get(name, name) + colon + output
    if node.name not in kept:
      nameless = tf.compat.v1.NodeDef()
      nameless.CopyFrom(node)
      nameless.name = ''
      content = nameless.SerializeToString(deterministic=True)
      renamed[node.name] = first_names.setdefault(content, node.name)
    if renamed.get(node.name, node.name) == node.name:
      unique.append(node)
  used = set(kept)
  for node in reversed(unique):
    if node.name in used:
      used.update(_node_names(node.input))
  return [node for node in unique if node.name in used]


def _node_names(tensor_names):
  """Returns the names of the nodes that tensors come from."""
  return {name.lstrip('^').partition(':')[0] for name in tensor_names}

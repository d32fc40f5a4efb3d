# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whether a traced seed can be another one in the next run of its graph.

A computation is traced once. What Python draws while it is traced is a constant
of the graph, and so is, to TensorFlow, a file that an operation without a state
reads. Only what a stateful operation gives can change.

No TFF here: everything is graphs of TensorFlow.
"""

import tensorflow as tf

# They are called stateful, to be left alone by optimizers, and give what they
# are given.
_PASS_ON = frozenset({'TensorDataset', 'TensorSliceDataset', 'RangeDataset'})

# A handle stands for what is assigned to its variable.
_HANDLES = frozenset({'VarHandleOp', 'VariableV2', 'Variable'})

# What takes one of these gives what others have made.
_MADE_BY_OTHERS = frozenset({'resource', 'variant'})


def has_source(seed: tf.Tensor) -> bool:
  """Returns whether a tensor depends on an operation that may draw anew.

  Such an operation is stateful, has no fixed seed among its attributes, and is
  not there to hand on what others made; or it calls a function that contains
  one. The seed must come from it: that one was traced beside it is not enough.

  Limits:
    It says that a seed may change, not that nobody can guess it. An operation
    that is stateful and returns the same all the same is taken for a source,
    such as a file of one line that never changes.

  Args:
    seed: of a graph; a tensor of eager mode is a constant wherever it is
      captured.
  """
  if tf.is_tensor(seed) and not hasattr(seed, 'op'):
    return False
  graph = seed.graph
  bodies = {
    body.signature.name: body.node_def
    for body in graph.as_graph_def().library.function
  }
  seen, left = set(), [seed.op]
  while left:
    operation = left.pop()
    if operation.name in seen:
      continue
    seen.add(operation.name)
    if _is_source(graph, bodies, operation.node_def):
      return True
    left += [tensor.op for tensor in operation.inputs]
    left += operation.control_inputs
    if operation.type in _HANDLES:
      left += [op for out in operation.outputs for op in _assigned(out)]
  return False


def _assigned(handle):
  """Returns the operations whose results are assigned to a variable."""
  return [
    consumer.inputs[1].op
    for consumer in handle.consumers()
    if consumer.type.startswith('Assign')
  ]


def _is_source(graph, bodies, node) -> bool:
  """Whether a node, or one in a function that it calls, draws by itself."""
  called = [
    function.name
    for value in node.attr.values()
    for function in [value.func, *value.list.func]
    if function.name
  ]
  if called:
    return any(
      _is_source(graph, bodies, inner)
      for name in called
      for inner in bodies.get(name, ())
    )
  definition = graph.op_def_for_type(node.op)
  kinds = {
    tf.as_dtype(arg.type).name for arg in definition.input_arg if arg.type
  }
  has_fixed_seed = any(
    node.attr[name].i for name in ('seed', 'seed2') if name in node.attr
  )
  return (
    definition.is_stateful
    and not has_fixed_seed
    and node.op not in _PASS_ON | _HANDLES
    and not kinds & _MADE_BY_OTHERS
  )

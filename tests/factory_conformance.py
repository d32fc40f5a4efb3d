# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What every aggregation factory of this package must do.

A factory's test inherits `FactoryConformanceTest` and says how to build the
factory. Two processes are created for each: one for a structure of all
containers and dtypes, whose inner factory is a double, and one for a scalar.
"""

import abc
import collections
from typing import NamedTuple

from absl.testing import absltest
import attr
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_autotune_secagg import simulation

BFLOAT16 = tf.bfloat16.as_numpy_dtype
FLOATS = 'float tensors'
INTEGERS = 'int32 or int64 tensors'


class Point(NamedTuple):
  x: object
  y: object


@attr.s
class Pair:
  left = attr.ib()
  right = attr.ib()


def nested_value(*leaves):
  """The leaves in one container of each kind that TFF knows."""
  scalar, matrix, empty, double, half, brain = leaves
  return collections.OrderedDict(
    scalar=scalar,
    pair=Pair(matrix, empty),
    point=Point(double, (half, [brain])),
  )


def nested_type(dtypes=(np.float32, np.float64, np.float16, BFLOAT16)):
  """TFF type of `nested_value`, a scalar and an empty tensor included."""
  single, double, half, brain = dtypes
  leaves = [
    (single, []),
    (single, [2, 3]),
    (single, [0]),
    (double, [5]),
    (half, [3]),
    (brain, [2]),
  ]
  specs = [tff.TensorType(dtype, shape) for dtype, shape in leaves]
  return tff.to_type(nested_value(*specs))


NESTED_FLOATS = nested_type()
NESTED_INTEGERS = nested_type([np.int32, np.int64, np.int32, np.int64])


def nested_client_value(value_type, number):
  """The value of client `number`: small multiples of 1/2, exact in bfloat16."""
  step = 0.5 if value_type is NESTED_FLOATS else 1
  leaves = []
  for path_type in tff.structure.flatten(value_type):
    size = int(np.prod(path_type.shape))
    leaf = (np.arange(size) % 4 + number) * step
    leaves.append(leaf.reshape(path_type.shape).astype(path_type.dtype))
  return nested_value(*leaves)


def leaves_of(value):
  """Leaves as arrays, in order, whatever the containers."""
  struct = tff.structure.from_container(value, recursive=True)
  return [np.asarray(leaf) for leaf in tff.structure.flatten(struct)]


def vector_of(value):
  """All leaves as one float64 vector."""
  leaves = [np.ravel(leaf).astype(np.float64) for leaf in leaves_of(value)]
  return np.concatenate(leaves)


def set_up_context():
  """Sets the context once in a Python process; call it in `setUpModule`."""
  if not simulation.worker_pids():
    simulation.set_local_context()


def refused_types(rule):
  """(name, value type, whole message) of value types that `rule` refuses."""
  other = np.float32 if rule == INTEGERS else np.int32
  good = np.int32 if rule == INTEGERS else np.float32
  other_type, good_type = tff.TensorType(other), tff.TensorType(good)
  nested = tff.to_type(
    collections.OrderedDict(a=good_type, b=(good_type, [other_type]))
  )
  unnamed = tff.StructType([(None, good_type), ('x', tff.TensorType(np.bool_))])
  cases = [
    ('number', other_type, other_type, ''),
    ('bool', tff.TensorType(np.bool_, [2]), 'bool[2]', ''),
    ('string', tff.TensorType(np.str_), 'str', ''),
    ('complex', tff.TensorType(np.complex64), 'complex64', ''),
    ('small_int', tff.TensorType(np.int8), 'int8', ''),
    ('unsigned', tff.TensorType(np.uint32), 'uint32', ''),
    ('nested', nested, other_type, " at 'b/1/0'"),
    ('unnamed', unnamed, 'bool', " at 'x'"),
  ]
  whole = [
    ('sequence', tff.SequenceType(good_type)),
    ('function', tff.FunctionType(None, good_type)),
    ('federated', tff.FederatedType(good_type, tff.CLIENTS)),
  ]
  cases += [(name, bad, bad, '') for name, bad in whole]
  cases.append(
    ('sequence_inside', tff.to_type([whole[0][1]]), whole[0][1], " at '0'")
  )
  messages = [
    (name, bad, f'`value_type` must hold only {rule}, found {found}{where}.')
    for name, bad, found, where in cases
  ]
  for name, shape in [('unknown_dim', [2, None]), ('unknown_rank', None)]:
    bad = tff.TensorType(good, shape)
    message = (
      '`value_type` must hold only tensors of fully defined shape, found'
      f' {bad}.'
    )
    messages.append((name, bad, message))
  return messages


class FactoryConformanceTest(absltest.TestCase, metaclass=abc.ABCMeta):
  """Tests of one factory; `weighted`, `rule` and `atol` describe it."""

  rule = FLOATS
  value_type = NESTED_FLOATS
  weights = None  # Or one float per client: then the factory is weighted.
  atol = 0.0  # Of the results of rounds two and three.
  counts_rounds = True  # Whether the inner factory is `SumPlusOneFactory`.

  @abc.abstractmethod
  def factory(self):
    """A factory over `SumPlusOneFactory`, or one that has no inner factory."""

  @abc.abstractmethod
  def secure_factory(self):
    """A factory over an inner one that is secure."""

  def expected(self, values):
    """Entries of the result as one vector, from those of the clients [n, d]."""
    return np.sum(values, axis=0) + (1.0 if self.counts_rounds else 0.0)

  def inner_state(self, state):
    """The state of the inner factory."""
    return state

  def create(self, factory, value_type):
    if self.weights is None:
      return factory.create(value_type)
    return factory.create(value_type, tff.TensorType(np.float32))

  def next(self, process, state, values):
    extra = [] if self.weights is None else [self.weights[: len(values)]]
    return process.next(state, values, *extra)

  def nested_process(self):
    """The process for the nested type; one per test class."""
    cls = type(self)
    if '_nested' not in cls.__dict__:
      cls._nested = self.create(self.factory(), self.value_type)
    return cls._nested

  def test_state_type_in_equals_out_and_result_type_equals_value_type(self):
    process = self.nested_process()
    signature = process.next.type_signature
    state_type = process.initialize.type_signature.result
    tff.test.assert_types_identical(signature.parameter[0], state_type)
    tff.test.assert_types_identical(signature.result.state, state_type)
    tff.test.assert_types_identical(
      signature.parameter[1], tff.FederatedType(self.value_type, tff.CLIENTS)
    )
    tff.test.assert_types_identical(
      signature.result.result, tff.FederatedType(self.value_type, tff.SERVER)
    )
    self.assertEqual(signature.result.measurements.placement, tff.SERVER)

  def test_three_rounds_return_the_containers_dtypes_and_values(self):
    process = self.nested_process()
    values = [nested_client_value(self.value_type, i) for i in range(3)]
    expected = self.expected(np.stack([vector_of(v) for v in values]))
    state = process.initialize()
    for number in range(3):
      output = self.next(process, state, values)
      state = output.state
      tf.nest.assert_same_structure(output.result, values[0])
      self.assertIs(type(output.result['pair']), Pair)
      self.assertIs(type(output.result['point'].y[1]), list)
      for leaf, like in zip(leaves_of(output.result), leaves_of(values[0])):
        self.assertEqual(leaf.dtype, like.dtype)
        self.assertEqual(leaf.shape, like.shape)
      if number or not self.atol:
        np.testing.assert_allclose(
          vector_of(output.result), expected, rtol=0, atol=self.atol
        )
    if self.counts_rounds:
      self.assertEqual(self.inner_state(state), 3)

  def test_same_state_gives_same_result_whatever_happens_between(self):
    factory = self.secure_factory()
    process = self.create(factory, tff.TensorType(np.dtype(self.scalar)))
    values = [self.scalar(3), self.scalar(4)]
    state = process.initialize()
    first = self.next(process, state, values)
    # A second process of the same factory, and further rounds of the first.
    other = self.nested_process()
    nested = [nested_client_value(self.value_type, 0)]
    self.next(other, other.initialize(), nested)
    self.next(process, first.state, values)
    again = self.next(process, state, values)
    np.testing.assert_array_equal(first.result, again.result)
    tf.nest.map_structure(
      np.testing.assert_array_equal, first.state, again.state
    )
    tff.test.assert_not_contains_unsecure_aggregation(process.next)

  @property
  def scalar(self):
    return np.int32 if self.rule == INTEGERS else np.float32

  def test_rejects_value_types(self):
    factory = self.factory()
    for name, value_type, message in refused_types(self.rule):
      with self.subTest(name):
        with self.assertRaisesWithLiteralMatch(TypeError, message):
          self.create(factory, value_type)

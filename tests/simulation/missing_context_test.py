# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the error that names the missing context, and of who sets it when.

TFF keeps its contexts per thread, so each test has a thread of its own. What
depends on the import of the package runs in a fresh Python.
"""

from concurrent import futures
import functools

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow_federated as tff

from tests import fresh_python
import tff_autotune_secagg as autotune
from tff_autotune_secagg import simulation
from tff_autotune_secagg.simulation import missing_context

_FLOATS = tff.TensorType(np.float32, [8])
_DEFAULT = tff.backends.native.create_sync_local_cpp_execution_context


def _in_new_thread(function):
  """Decorates a test: runs it in a thread that has TFF's contexts to itself."""

  @functools.wraps(function)
  def run(*args, **kwargs):
    with futures.ThreadPoolExecutor(max_workers=1) as executor:
      executor.submit(function, *args, **kwargs).result()

  return run


def _set_default(context):
  tff.framework.set_default_context(context)
  return context


def _current():
  return tff.framework.get_context_stack().current


def _install(context):
  return tff.framework.get_context_stack().install(context)


class _Subclass(tff.framework.SyncExecutionContext):
  pass


def _other_compiler():
  return tff.framework.SyncExecutionContext(
    executor_fn=tff.framework.local_cpp_executor_factory(),
    compiler_fn=lambda comp: comp,
  )


def _no_compiler():
  return tff.framework.SyncExecutionContext(
    executor_fn=tff.framework.local_cpp_executor_factory()
  )


def _other_executors(kind=tff.framework.SyncExecutionContext):
  return kind(
    executor_fn=tff.framework.ResourceManagingExecutorFactory(lambda _: None),
    compiler_fn=tff.backends.native.desugar_and_transform_to_native,
  )


def _executors_of_the_user():
  class Executors(tff.framework.ExecutorFactory):
    def create_executor(self, cardinalities):
      raise NotImplementedError

    def clean_up_executor(self, cardinalities):
      raise NotImplementedError

  return tff.framework.SyncExecutionContext(
    executor_fn=Executors(),
    compiler_fn=tff.backends.native.desugar_and_transform_to_native,
  )


class ExplainTest(parameterized.TestCase):
  @_in_new_thread
  def test_takes_the_place_of_tffs_default_once(self):
    default = _set_default(_DEFAULT())
    simulation.explain_missing_context()
    explaining = _current()
    self.assertIsInstance(explaining, missing_context.ExplainingContext)
    self.assertIs(explaining.executor_factory, default.executor_factory)
    simulation.explain_missing_context()
    self.assertIs(_current(), explaining)

  @parameterized.named_parameters(
    (
      'of_the_test_backend',
      tff.backends.test.create_sync_test_cpp_execution_context,
    ),
    (
      'asynchronous',
      tff.backends.native.create_async_local_cpp_execution_context,
    ),
    ('subclass', functools.partial(_other_executors, _Subclass)),
    ('other_compiler', _other_compiler),
    ('no_compiler', _no_compiler),
    ('other_executors', _other_executors),
    ('executors_of_the_user', _executors_of_the_user),
  )
  @_in_new_thread
  def test_leaves_other_default_contexts_alone(self, create):
    default = _set_default(create())
    simulation.explain_missing_context()
    self.assertIs(_current(), default)

  @_in_new_thread
  def test_leaves_a_thread_alone_that_has_no_context(self):
    default = _current()
    self.assertNotIsInstance(default, tff.framework.SyncExecutionContext)
    simulation.explain_missing_context()
    self.assertIs(_current(), default)

  @_in_new_thread
  def test_leaves_an_installed_context_and_the_default_below_alone(self):
    default = _set_default(_DEFAULT())
    with _install(_DEFAULT()) as installed:
      simulation.explain_missing_context()
      self.assertIs(_current(), installed)
    self.assertIs(_current(), default)

  @_in_new_thread
  def test_leaves_other_threads_alone(self):
    default = _set_default(_DEFAULT())

    @_in_new_thread
    def explain_elsewhere():
      _set_default(_DEFAULT())
      simulation.explain_missing_context()

    explain_elsewhere()
    self.assertIs(_current(), default)

  @_in_new_thread
  def test_a_later_context_takes_over(self):
    _set_default(_DEFAULT())
    simulation.explain_missing_context()
    explaining = _current()
    with _install(_DEFAULT()) as installed:
      self.assertIs(_current(), installed)
    self.assertIs(_current(), explaining)
    default = _set_default(_DEFAULT())
    self.assertIs(_current(), default)


class CreateTest(parameterized.TestCase):
  """`create` of a factory leaves TFF's contexts alone."""

  def _assert_leaves_contexts_alone(self, function):
    default = _set_default(_DEFAULT())
    function()
    self.assertIs(_current(), default)
    with _install(_DEFAULT()) as installed:
      function()
      self.assertIs(_current(), installed)
    self.assertIs(_current(), default)

  @_in_new_thread
  def test_of_the_sum(self):
    # The whole chain: flattening, rotation, quantization and the modular sum.
    factory = autotune.AutotunedSecureSumFactory(modulus=256, seed=1)
    self._assert_leaves_contexts_alone(lambda: factory.create(_FLOATS))

  @_in_new_thread
  def test_of_the_weighted_mean(self):
    factory = autotune.autotuned_secure_aggregator()
    weight_type = tff.TensorType(np.float32)
    self._assert_leaves_contexts_alone(
      lambda: factory.create(_FLOATS, weight_type)
    )

  @_in_new_thread
  def test_of_the_unweighted_mean(self):
    factory = autotune.autotuned_secure_aggregator(weighted=False)
    self._assert_leaves_contexts_alone(lambda: factory.create(_FLOATS))

  @_in_new_thread
  def test_negative_control(self):
    with self.assertRaises(AssertionError):
      self._assert_leaves_contexts_alone(simulation.explain_missing_context)
    with self.assertRaises(AssertionError):
      self._assert_leaves_contexts_alone(
        lambda: tff.framework.set_default_context(_current())
      )


_PRELUDE = """
import threading
import numpy as np
import tensorflow_federated as tff

def current():
  return tff.framework.get_context_stack().current

default = current()
"""

_RUN_IN_DEFAULT_CONTEXT = """
import tff_autotune_secagg

def sum_process(factory):
  return factory.create(tff.TensorType(np.int32))

process = sum_process(tff.aggregators.SumFactory())
state = process.initialize()
print('sum', process.next(state, [np.int32(1), np.int32(2)]).result)
try:
  process.next(state, [np.zeros(2, np.int32)])
except TypeError as error:
  print('wrong type', str(error).startswith('Failed to serialize a value'))
process = sum_process(tff.aggregators.SecureModularSumFactory(16))
try:
  process.next(process.initialize(), [np.int32(1)])
except RuntimeError as error:
  print('secure', error)
"""

_IMPORT_INSIDE_INSTALL = """
installed = tff.backends.native.create_sync_local_cpp_execution_context()
with tff.framework.get_context_stack().install(installed):
  import tff_autotune_secagg
  print(current() is installed)
print(current() is default)
"""

_IMPORT_AFTER_A_CONTEXT = """
tff.backends.test.set_sync_test_cpp_execution_context()
default = current()
import tff_autotune_secagg
print(current() is default)
"""

_IMPORT_IN_A_THREAD = """
def run():
  default = current()
  import tff_autotune_secagg
  print(current() is default)

thread = threading.Thread(target=run)
thread.start()
thread.join()
print(current() is default)
"""

_IMPORT_AND_END = """
import atexit, gc, weakref

@atexit.register  # Before that of the package, and so called after it.
def check():
  gc.collect()
  print(default() is None)

import tensorflow_federated as tff
default = weakref.ref(tff.framework.get_context_stack().current)
import tff_autotune_secagg
"""


@pytest.mark.slow
class ImportTest(parameterized.TestCase):
  """What the import of the package does, each time in a fresh Python."""

  def _run(self, code):
    """Runs code in a fresh Python; returns its stdout and stderr."""
    output = fresh_python.run('-c', code, TF_CPP_MIN_LOG_LEVEL='3')
    self.assertEqual(output.status, 0, output.stderr[-2000:])
    return output.stdout, output.stderr

  def test_a_secure_sum_in_tffs_default_context_names_the_call(self):
    output, _ = self._run(_PRELUDE + _RUN_IN_DEFAULT_CONTEXT)
    self.assertSequenceEqual(
      output.splitlines(),
      [
        # All else runs and fails as ever.
        'sum 3',
        'wrong type True',
        'secure A secure sum must run in a context that supports it, found one'
        ' that does not. Call'
        ' `tff_autotune_secagg.simulation.set_local_context()` first (a'
        ' simulation without cryptography).',
      ],
    )

  @parameterized.named_parameters(
    ('inside_install', _IMPORT_INSIDE_INSTALL, 2),
    ('after_a_context_was_set', _IMPORT_AFTER_A_CONTEXT, 1),
    ('in_a_thread', _IMPORT_IN_A_THREAD, 2),
  )
  def test_leaves_contexts_alone(self, code, num_lines):
    output, _ = self._run(_PRELUDE + code)
    self.assertEqual(output, 'True\n' * num_lines)

  def test_python_ends_without_a_word(self):
    output, errors = self._run(_IMPORT_AND_END)
    self.assertEqual(errors, '')
    # Nothing is left whose destructor could run too late; else TFF's does in
    # some runs.
    self.assertEqual(output, 'True\n')


if __name__ == '__main__':
  absltest.main()

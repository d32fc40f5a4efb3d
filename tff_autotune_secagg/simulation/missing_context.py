# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""A readable error for a secure sum in TFF's own default context."""

from __future__ import annotations

import atexit
from typing import Any

import grpc
import tensorflow_federated as tff

from tff_autotune_secagg.simulation import borders

# What TFF's runtime says when it meets an intrinsic that it does not know.
_RUNTIME_ERROR = 'Cannot embed a federated value'


class ExplainingContext(tff.framework.SyncExecutionContext):
  """Another context, whose failure on a secure sum names what to call."""

  def __init__(self, context: tff.framework.SyncExecutionContext):
    """Initializes the context; it computes all that it is given in `context`.

    Args:
      context: the context that cannot run a secure sum.
    """
    super().__init__(executor_fn=context.executor_factory)
    self.explained_context = context
    self._border = borders.ProcessBorder()

  def invoke(self, comp: Any, arg: Any) -> Any:
    """Returns `comp(arg)`.

    Raises:
      RuntimeError: `comp` contains a secure sum and the context knows none, or
        the process is a forked copy of the context's.
    """
    self._border.check()
    try:
      return self.explained_context.invoke(comp, arg)
    except grpc.RpcError as error:
      if _RUNTIME_ERROR in str(error) and _contains_secure_sum(comp):
        raise RuntimeError(
          'A secure sum must run in a context that supports it, found one '
          'that does not. Call '
          '`tff_autotune_secagg.simulation.set_local_context()` first '
          '(a simulation without cryptography).'
        ) from error
      raise


def _contains_secure_sum(comp: Any) -> bool:
  try:
    tff.test.assert_contains_secure_aggregation(comp)
    return True
  except AssertionError:
    return False


def is_like_tffs_default(context: Any) -> bool:
  """Whether a context is made like the one that TFF sets when imported.

  TFF does not mark its own, so this compares the parts. A context that
  `tff.backends.native.set_sync_local_cpp_execution_context` set later has the
  same and is taken for TFF's own.
  """
  # The exact type: a subclass, ours included, knows what it does.
  if type(context) is not tff.framework.SyncExecutionContext:
    return False
  default_factory = tff.framework.local_cpp_executor_factory()
  try:
    # Private to TFF. Should another version call them something else, contexts
    # are left alone and `missing_context_test` fails.
    compiler_fn = context._async_context._compiler_pipeline._compiler_fn
    stack_fn = context.executor_factory._executor_stack_fn
    default_stack_fn = default_factory._executor_stack_fn
  except AttributeError:
    return False
  return (
    compiler_fn is tff.backends.native.desugar_and_transform_to_native
    and getattr(stack_fn, '__code__', None) is default_stack_fn.__code__
  )


def explain() -> None:
  """Puts an `ExplainingContext` in the place of TFF's own default context.

  Affects the calling thread, as TFF's own setting does, and only while its
  default context is TFF's own and none is installed above it: contexts of the
  user and of this package stay what they are. A context that is set or
  installed afterwards takes over as ever.
  """
  stack = tff.framework.get_context_stack()
  # Inside `stack.install(context)`, `current` is not the default, and TFF has
  # no public way to tell.
  is_default = len(getattr(stack, '_stack', ())) == 1
  if is_default and is_like_tffs_default(stack.current):
    stack.set_default_context(ExplainingContext(stack.current))


@atexit.register
def _let_go() -> None:
  """Lets go of TFF's own default context before Python ends.

  Its destructor needs TFF's modules. Kept until Python clears these, it runs
  too late in some runs, and Python prints an ignored exception. The thread is
  left with what TFF gives to new threads.
  """
  stack = tff.framework.get_context_stack()
  if isinstance(stack.current, ExplainingContext):
    stack.set_default_context(borders.context_of_new_threads())

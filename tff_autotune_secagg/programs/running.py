# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs a program of TFF such as `tff.learning.programs.train_model`."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent import futures
import signal
import threading
from typing import Any, Optional, TypeVar

import tensorflow_federated as tff

from tff_autotune_secagg import _checks
from tff_autotune_secagg.programs import event_loop

_Result = TypeVar('_Result')


class _AsyncContext(tff.framework.AsyncContext):
  """Another context's computations as coroutines, in threads of their own.

  A program writes checkpoints and metrics of a round while the next round runs,
  so computing must not hold up the event loop.
  """

  def __init__(self, context: tff.framework.SyncContext):
    self._context = context

  async def invoke(self, comp: Any, arg: Any) -> Any:
    future = futures.Future()
    future.set_running_or_notify_cancel()  # A result may come too late then.

    def compute():
      try:
        future.set_result(self._context.invoke(comp, arg))
      except BaseException as error:  # `SystemExit` as well: of clients' data.
        future.set_exception(error)

    # A daemon, so that Python need not wait for the end of a round on Ctrl-C.
    threading.Thread(target=compute, daemon=True).start()
    return await asyncio.wrap_future(future)


def run_program(program: Coroutine[Any, Any, _Result]) -> _Result:
  """Runs a program of TFF's in the context of the calling thread.

  The context decides where it computes: here, after `set_local_context`, or on
  workers, after `set_remote_context`. On Ctrl-C the program stops in the middle
  of its round, but first finishes writing checkpoints and metrics. A second
  Ctrl-C ends that as well. The program stops in the same way when something
  cannot be written, and when a function that it calls ends Python. It runs in a
  notebook, too: where an event loop runs already, that one waits.

  Args:
    program: such as what `tff.learning.programs.train_model(...)` returns.

  Returns:
    What the program returns.

  Raises:
    TypeError: an argument is of the wrong kind, or the current context is no
      `tff.framework.SyncContext`.
    KeyboardInterrupt: Ctrl-C has ended it.
    SystemExit: a function that it calls, such as one of yours, raised it.
    Exception: what the program raised, or its saving of states or releasing of
      metrics, which TFF's programs by themselves only log.
  """
  _checks.check_instance('program', program, Coroutine, 'a coroutine')
  stack = tff.framework.get_context_stack()
  context = tff.program.NativeFederatedContext(_AsyncContext(sync_context()))
  with stack.install(context), event_loop.signals_given_back():
    return event_loop.run(_supervise(program))


def sync_context() -> tff.framework.SyncContext:
  """Returns the context that computes for the calling thread.

  Raises:
    TypeError: there is none, as in a new thread, or it is of another kind.
  """
  context = tff.framework.get_context_stack().current
  # TFF gives a thread without a context this one, whose class is private, and
  # which fails in words that are not meant for users.
  is_none = type(context).__name__ == 'RuntimeErrorContext'
  return _checks.check_instance(
    'tff.framework.get_context_stack().current',
    None if is_none else context,
    tff.framework.SyncContext,
    'a `tff.framework.SyncContext`, as `set_local_context` sets one for the'
    ' thread that calls it',
  )


async def _supervise(program: Coroutine[Any, Any, _Result]) -> _Result:
  """Awaits a program; if it is to end early, its other tasks finish first."""
  loop = asyncio.get_running_loop()
  reasons: list[BaseException] = []
  unasked: list[dict[str, Any]] = []
  task: Optional[asyncio.Task] = None
  is_over = False

  def end(reason):
    reasons.append(reason)
    loop.remove_signal_handler(signal.SIGINT)
    task.cancel()

  async def without_exit(coroutine):
    try:
      return await coroutine
    except (KeyboardInterrupt, SystemExit) as error:
      # They would leave the loop at once, in the middle of all other tasks,
      # which only a second Ctrl-C may.
      if reasons and isinstance(error, KeyboardInterrupt):
        raise
      end(error)
      raise asyncio.CancelledError from None

  def start_task(loop, coroutine, **options):
    return _start(coroutine, without_exit, loop=loop, **options)

  def on_failure(loop, failure):
    # TFF's programs save and release in tasks of their own, and raise what
    # these raised in a callback, where asyncio would only log it.
    error = failure.get('exception')
    if 'handle' in failure and not reasons:
      end(error)
    elif 'future' in failure and not is_over:
      # Nobody asks several of TFF's tasks for the error that ends the program.
      # Some are freed when `task` is done and its error is not yet known here.
      unasked.append(failure)
    # What comes out of `run_program` is not logged as well.
    elif not (isinstance(error, asyncio.CancelledError) or error in reasons):
      loop.default_exception_handler(failure)

  loop.set_exception_handler(on_failure)
  loop.set_task_factory(start_task)
  task = loop.create_task(program)
  # Python gives signals to its main thread only.
  if threading.current_thread() is threading.main_thread():
    loop.add_signal_handler(signal.SIGINT, end, KeyboardInterrupt())
  result = None
  try:
    result = await task
  except (Exception, asyncio.CancelledError) as error:
    reasons.append(error)  # The first counts: a cancelled task has one already.
    await _others_finish()
  finally:
    loop.remove_signal_handler(signal.SIGINT)
    is_over = True
    for failure in unasked:
      on_failure(loop, failure)
  if reasons:
    raise reasons[0]
  return result


def _start(coroutine, wrap, **options) -> asyncio.Task:
  """Returns a task of the wrapped coroutine, which it closes in the end.

  A task that is cancelled before its first step leaves a coroutine that was
  never awaited, of which Python would warn.
  """
  task = asyncio.Task(wrap(coroutine), **options)
  task.add_done_callback(lambda _: coroutine.close())
  return task


async def _others_finish() -> None:
  """Waits for the end of all other tasks of the loop, however they end."""
  others = asyncio.all_tasks() - {asyncio.current_task()}
  await asyncio.gather(*others, return_exceptions=True)

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a TFF program such as `tff.learning.programs.train_model` needs here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent import futures
import signal
import threading
from typing import Any, Optional, TypeVar

import tensorflow_federated as tff

from tff_autotune_secagg import _checks

_Result = TypeVar('_Result')


class _AsyncContext(tff.framework.AsyncContext):
  """Another context's computations as coroutines, in threads of their own.

  A program writes checkpoints and metrics of one round while the next one runs,
  so that computing must not hold up the event loop.
  """

  def __init__(self, context: tff.framework.SyncContext):
    self._context = context

  async def invoke(self, comp: Any, arg: Any) -> Any:
    future = futures.Future()
    future.set_running_or_notify_cancel()  # A result may come too late then.

    def compute():
      try:
        future.set_result(self._context.invoke(comp, arg))
      except Exception as error:
        future.set_exception(error)

    # A daemon, so that Python need not wait for the end of a round on Ctrl-C.
    threading.Thread(target=compute, daemon=True).start()
    return await asyncio.wrap_future(future)


def run_program(program: Coroutine[Any, Any, _Result]) -> _Result:
  """Runs a program of TFF's in the context of the calling thread.

  Computes where `set_local_context` or `set_remote_context` said. On Ctrl-C the
  program stops in the middle of its round, and what it is writing, checkpoints
  and metrics, is written first. A second Ctrl-C ends that as well. It stops in
  the same way when something cannot be written.

  Args:
    program: such as what `tff.learning.programs.train_model(...)` returns.

  Returns:
    What the program returns.

  Raises:
    TypeError: an argument is of the wrong kind, or the current context is no
      `tff.framework.SyncContext`.
    KeyboardInterrupt: Ctrl-C has ended it.
    Exception: what the program raised, or its saving of states or releasing of
      metrics, which TFF's programs by themselves only log.
  """
  _checks.check_instance('program', program, Coroutine, 'a coroutine')
  stack = tff.framework.get_context_stack()
  _checks.check_instance(
    'tff.framework.get_context_stack().current',
    stack.current,
    tff.framework.SyncContext,
    'a `tff.framework.SyncContext`, as `set_local_context` sets one',
  )
  context = tff.program.NativeFederatedContext(_AsyncContext(stack.current))
  with stack.install(context):
    return asyncio.run(_supervise(program))


async def _supervise(program: Coroutine[Any, Any, _Result]) -> _Result:
  """Awaits a program; if it is to end early, its other tasks finish first."""
  task = asyncio.ensure_future(program)
  loop = asyncio.get_running_loop()
  reasons: list[BaseException] = []

  def end(reason):
    reasons.append(reason)
    loop.remove_signal_handler(signal.SIGINT)
    task.cancel()

  def on_failure(loop, failure):
    # TFF's programs save and release in tasks of their own, and raise what
    # these raised in a callback, where asyncio would only log it.
    error = failure.get('exception')
    if 'handle' not in failure or reasons:
      if not isinstance(error, asyncio.CancelledError):
        loop.default_exception_handler(failure)
    else:
      end(error)

  loop.set_exception_handler(on_failure)
  # Python gives signals to its main thread only.
  if threading.current_thread() is threading.main_thread():
    loop.add_signal_handler(signal.SIGINT, end, KeyboardInterrupt())
  result = None
  try:
    result = await task
  except (Exception, asyncio.CancelledError) as error:
    reasons.append(error)  # The first counts: a cancelled task has one already.
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.gather(*others, return_exceptions=True)
  finally:
    loop.remove_signal_handler(signal.SIGINT)
  if reasons:
    raise reasons[0]
  return result


class CohortSource(tff.program.FederatedDataSource):
  """A source of client data that the number of the round decides.

  TFF's own source draws clients anew when a program continues, and keeps all
  data in its checkpoints. Here a checkpoint keeps the number of the round, so
  that a program that continues sees the clients that an undisturbed one sees.
  """

  def __init__(
    self,
    client_data: Callable[[int], Sequence[Any]],
    federated_type: tff.FederatedType,
  ):
    """Initializes the source.

    Args:
      client_data: takes the number of a round, from 1, and returns the data of
        its clients; the same in every call. How many they are is its affair.
      federated_type: type of that, such as
        `process.next.type_signature.parameter[1]`.

    Raises:
      TypeError: an argument is of the wrong kind.
    """
    _checks.check_instance('client_data', client_data, Callable, 'a function')
    _checks.check_instance(
      'federated_type',
      federated_type,
      tff.FederatedType,
      'a `tff.FederatedType`',
    )

    class Iterator(tff.program.FederatedDataSourceIterator):
      """A class for each source, as TFF restores iterators by their class."""

      def __init__(self, rounds: int = 0):
        self._rounds = rounds

      @classmethod
      def from_bytes(cls, buffer: bytes) -> Iterator:
        return cls(int(buffer))

      def to_bytes(self) -> bytes:
        return str(self._rounds).encode()

      @property
      def federated_type(self) -> tff.FederatedType:
        return federated_type

      def select(self, k: Optional[int] = None) -> Sequence[Any]:
        del k  # `client_data` knows it.
        self._rounds += 1
        return client_data(self._rounds)

    self._federated_type = federated_type
    self._iterator_class = Iterator

  @property
  def federated_type(self) -> tff.FederatedType:
    """Type of the data of a round."""
    return self._federated_type

  def iterator(self) -> tff.program.FederatedDataSourceIterator:
    """Returns an iterator that begins with round 1."""
    return self._iterator_class()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Computations on one of several workers, in a thread of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent import futures
import threading
from typing import Any, Optional

import tensorflow_federated as tff

from tff_autotune_secagg.simulation import contexts


def closed_error() -> RuntimeError:
  """Returns what a computation in a closed context raises."""
  return RuntimeError(
    "The context's connections must be open, found them closed by "
    '`simulation.close()` or by a newer context. Call '
    '`tff_autotune_secagg.simulation.set_remote_context(...)`.'
  )


class WorkerContext:
  """Runs computations on one worker, in a thread of its own.

  TFF's gRPC calls block the event loop they run in, and TFF's own context for
  several workers runs them all in one loop, where they take turns: two workers
  were never busy at the same time.

  Attributes:
    executors: on the worker, closed with this context.
    is_closed: whether nothing can be started any more.
  """

  def __init__(
    self, executors: contexts.Executors, compiler_fn: Callable[[Any], Any]
  ):
    """Starts the thread.

    Args:
      executors: on the worker.
      compiler_fn: compiles a computation for it.
    """
    self.executors = executors
    self._context = tff.framework.AsyncExecutionContext(
      executor_fn=executors,
      compiler_fn=compiler_fn,
      transform_args=tff.tensorflow.transform_args,
      transform_result=tff.tensorflow.transform_result,
    )
    self._loop = asyncio.new_event_loop()
    self._lock = threading.Lock()  # Between starting something and the end.
    self.is_closed = False
    self._turn: Optional[asyncio.Lock] = None  # Made in the loop that uses it.
    # A daemon, so that Ctrl-C need not wait for a remote computation.
    threading.Thread(target=self._loop.run_forever, daemon=True).start()

  def start(self, comp: Any, arg: Any) -> futures.Future:
    """Computes `comp(arg)` after all that was started before.

    Args:
      comp: a computation.
      arg: its argument.

    Returns:
      What becomes the result; cancelled if the context is closed before.

    Raises:
      RuntimeError: the context is closed.
    """
    with self._lock:
      if self.is_closed:
        raise closed_error()
      return asyncio.run_coroutine_threadsafe(
        self._invoke_in_turn(comp, arg), self._loop
      )

  async def _invoke_in_turn(self, comp: Any, arg: Any) -> Any:
    if self._turn is None:
      self._turn = asyncio.Lock()
    # Several calls bound the worker's memory. Without turns, it would be sent
    # the clients of the next call before it has finished with these.
    async with self._turn:
      return await self._context.invoke(comp, arg)

  def close(self) -> None:
    """Cancels what is running, and starts nothing more."""
    with self._lock:
      self.is_closed = True
      self.executors.close()
      asyncio.run_coroutine_threadsafe(self._end(), self._loop)

  async def _end(self) -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
      task.cancel()
    # Whoever waits for them learns of their end before the loop stops.
    await asyncio.gather(*tasks, return_exceptions=True)
    self._loop.call_soon(self._loop.stop)

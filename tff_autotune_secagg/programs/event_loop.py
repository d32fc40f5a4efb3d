# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""An event loop for a coroutine, also where another one runs already."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
import contextlib
import signal
import threading
from typing import Any, TypeVar

_Result = TypeVar('_Result')


def run(main: Coroutine[Any, Any, _Result]) -> _Result:
  """Returns what a coroutine returns; it gets an event loop of its own.

  As `asyncio.run`, which refuses where a loop runs already, as in each cell of
  a notebook. That loop stands still meanwhile, as for any function called in
  it. It all stays in the calling thread: the contexts of TFF are bound to
  threads, and so may be what a user's functions use.

  Args:
    main: the coroutine.
  """
  outer = asyncio._get_running_loop()
  if outer is None:
    return asyncio.run(main)
  # Python has these two functions for those who implement event loops.
  asyncio._set_running_loop(None)
  try:
    return asyncio.run(main)
  finally:
    asyncio._set_running_loop(outer)
    asyncio.set_event_loop(outer)


@contextlib.contextmanager
def signals_given_back() -> Iterator[None]:
  """Leaves SIGINT as it was: a loop that handles it puts nothing back."""
  # Python gives signals to its main thread only.
  if threading.current_thread() is not threading.main_thread():
    yield
    return
  handler = signal.getsignal(signal.SIGINT)
  file_number = signal.set_wakeup_fd(-1)
  signal.set_wakeup_fd(file_number)
  try:
    yield
  finally:
    if handler is not None:  # Otherwise it is none of Python's.
      signal.signal(signal.SIGINT, handler)
    signal.set_wakeup_fd(file_number)

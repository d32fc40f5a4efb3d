# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Computations beyond the process or thread of a context, refused in words.

TFF keeps its default context for each thread. One that has none gets an error
that begins "You should not expect to get this error". Each context also has a
thread of its own, which a forked copy of the process lacks: a computation in it
would wait for ever.
"""

from __future__ import annotations

import os
import threading
from typing import Any

import tensorflow_federated as tff

_SET_CALL = '`tff_autotune_secagg.simulation.set_local_context()`'


class ProcessBorder:
  """Remembers the process in which it was made."""

  def __init__(self):
    """Takes the calling process."""
    self._pid = os.getpid()

  @property
  def is_crossed(self) -> bool:
    """Whether the calling process is a forked copy."""
    return os.getpid() != self._pid

  def check(self) -> None:
    """Raises RuntimeError in a forked copy of the process."""
    if self.is_crossed:
      raise RuntimeError(
        'A computation must run in the process that set its context, found the'
        f' forked process {os.getpid()} of process {self._pid}. Start processes'
        " by `multiprocessing.get_context('spawn')` and call"
        f' {_SET_CALL} in each of them.'
      )


def context_of_new_threads() -> tff.framework.SyncContext:
  """Returns what TFF gives a thread that has set none, the same object to all.

  Its `invoke` raises.
  """
  found = []
  thread = threading.Thread(
    target=lambda: found.append(tff.framework.get_context_stack().current)
  )
  thread.start()
  thread.join()
  return found[0]


def explain_threads() -> None:
  """Lets a computation in a thread without a context say what to call."""
  context = context_of_new_threads()
  # By its name, as TFF exports no such class. Should another version put a
  # context there that computes, it is left alone.
  if type(context).__name__ == 'RuntimeErrorContext':
    context.invoke = _refuse


def _refuse(comp: Any, arg: Any) -> None:
  del comp, arg  # Whatever they are.
  raise RuntimeError(
    'A computation must run in a thread with a context, found none in thread'
    f' {threading.current_thread().name!r}: TFF keeps one for each thread. Get'
    ' `context = tff.framework.get_context_stack().current` in the thread that'
    f' called {_SET_CALL}, and call'
    ' `tff.framework.set_default_context(context)` in this one.'
  )

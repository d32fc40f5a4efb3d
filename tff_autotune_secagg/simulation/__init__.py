# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Execution contexts in which the secure intrinsics run, without cryptography.

TFF's default context cannot run a secure sum. The contexts set here replace
each secure intrinsic by a plain computation with the same result, as TFF's test
backend does. They show what a model trained under secure aggregation is like;
they keep nothing secret. Secrecy is a matter of the runtime that a computation
is deployed to.

TFF keeps the default context per thread, and so does this module: a thread sets
and closes its own and leaves those of others alone. Call these functions in the
thread that runs the computations, or hand the context on to it. Get
`context = tff.framework.get_context_stack().current` in the thread that called
`set_local_context`, and call `tff.framework.set_default_context(context)` in
the other thread. A forked copy of the process can use none of the contexts.
"""

from __future__ import annotations

import atexit
from collections.abc import Iterable, Sequence
import os
import threading
from typing import Optional, TYPE_CHECKING, Union

import tensorflow_federated as tff

from tff_autotune_secagg import _checks
from tff_autotune_secagg.simulation import borders
from tff_autotune_secagg.simulation import contexts
from tff_autotune_secagg.simulation import worker_process
from tff_autotune_secagg.simulation.remote import backend as remote_backend

__all__ = [
  'close',
  'set_local_context',
  'set_remote_context',
  'worker_command',
  'worker_pids',
]

if TYPE_CHECKING:
  # At run time, typing would keep the classes of the `Union` for good, and they
  # TFF's modules. When Python ends, TFF's default context would be disposed of
  # when these are cleared already, and Python would print an ignored exception.
  _Backend = Union[contexts.LocalBackend, remote_backend.RemoteBackend]

# By the thread that has set it.
_backends: dict[threading.Thread, _Backend] = {}
# A forked copy of Python must leave the backend of its parent alone.
_border = borders.ProcessBorder()


def set_local_context(*, max_concurrent_clients: Optional[int] = None) -> None:
  """Makes secure sums run on this machine: a simulation, no cryptography.

  Sets TFF's default context to one that computes in a child process. The child
  ends with Python: at normal exit, after an unhandled exception, on Ctrl-C, on
  SIGTERM and even on SIGKILL. It holds none of Python's pipes, so that
  `python train.py | tail` ends. A former context of this thread is closed.

  Computations run on CPU: TFF's worker knows no accelerator. While it runs, it
  listens on a free port of all network interfaces, and computes what anybody
  who reaches the port sends it: on a shared network, put a firewall before it.

  Args:
    max_concurrent_clients: how many clients are computed at the same time, at
      least 1. None is as many as there are processors; lower it when memory
      runs out.

  Raises:
    TypeError: `max_concurrent_clients` is not an int.
    ValueError: `max_concurrent_clients` is below 1.
    RuntimeError: the installed TFF has no worker, or the process is a forked
      copy of a process that has computed in such a context. A computation
      raises it if its worker dies; the next computation gets a new worker.
  """
  _check_process()
  max_concurrent_clients = _checks.check_optional_count(
    'max_concurrent_clients', max_concurrent_clients
  )
  if max_concurrent_clients is None:
    # More would wait for each other, each with its vectors in memory.
    max_concurrent_clients = len(os.sched_getaffinity(0))
  close()
  _set(contexts.LocalBackend(max_concurrent_clients=max_concurrent_clients))


def set_remote_context(
  workers: Sequence[str],
  *,
  max_clients_per_call: Optional[int] = None,
  timeout_seconds: float = 10.0,
) -> None:
  """Makes secure sums run on several machines, without cryptography.

  Splits the clients of a round evenly over the workers, in the order in which
  they are passed. Each worker computes its clients and their partial sum. The
  first worker adds up the partial sums, in that order. Results have the types
  that they have on one machine. `python -m tff_autotune_secagg.worker
  --port=8000` starts a worker. Neither side proves who it is and nothing is
  encrypted: a worker runs whatever it is sent, so use a network that you trust.

  A worker that is lost during a round is waited for, and after
  `timeout_seconds` its clients are computed again by the other workers, with a
  warning. It gets its clients back once it answers again. Losing the last
  worker is an error. A machine that vanishes without closing its connections is
  noticed after about six minutes.

  Limits:
    TFF can split a computation only if no sum in it depends on another sum of
    the same call; it refuses others with a ValueError. Sums that depend on
    those of earlier rounds, as adaptive clipping does, are fine.

  Args:
    workers: addresses 'host:port', at least one, all different; an IPv6 host
      in brackets.
    max_clients_per_call: how many clients a worker is sent at a time, at least
      1. It keeps all their updates until it has added them up, so this bounds
      its memory. None sends each worker its whole share of the round at once.
    timeout_seconds: how long a worker may take to answer, above 0.

  Raises:
    TypeError: an argument has the wrong type.
    ValueError: an address is malformed or named twice, or there is none, or
      another argument is out of range.
    RuntimeError: as `set_local_context`.
    ConnectionError: a worker does not answer. The former context stays.
  """
  workers = _checks.check_addresses('workers', workers)
  max_clients_per_call = _checks.check_optional_count(
    'max_clients_per_call', max_clients_per_call
  )
  timeout_seconds = _checks.check_float(
    'timeout_seconds', timeout_seconds, above=0
  )
  _check_process()
  backend = remote_backend.RemoteBackend(
    workers,
    max_clients_per_call=max_clients_per_call,
    timeout_seconds=timeout_seconds,
  )
  close()
  _set(backend)


def close() -> None:
  """Ends the context that this thread has set, and its worker processes.

  Also those of threads that have ended. A computation that runs in such a
  context afterwards raises a RuntimeError. Harmless if there is none, or if
  called twice. Remote workers keep running.
  """
  this = threading.current_thread()
  _close(t for t in list(_backends) if t is this or not t.is_alive())


@atexit.register
def _close_all() -> None:
  _close(list(_backends))


def _close(threads: Iterable[threading.Thread]) -> None:
  for thread in threads:
    backend = _backends.pop(thread, None)
    if backend is not None and not _border.is_crossed:
      backend.close()


def worker_pids() -> list[int]:
  """Process ids of the running workers on this machine owned by this module."""
  return [
    pid for backend in list(_backends.values()) for pid in backend.worker_pids
  ]


def worker_command(
  port: int, *, max_concurrent_clients: Optional[int] = None
) -> list[str]:
  """Command line of a worker for `set_remote_context`.

  Runs the `worker_binary` that the installed TFF wheel brings, on all network
  interfaces. `python -m tff_autotune_secagg.worker` runs it.

  Args:
    port: TCP port, in 1..65535.
    max_concurrent_clients: as for `set_local_context`.

  Returns:
    Arguments for `subprocess.Popen`.

  Raises:
    TypeError: an argument is not an int.
    ValueError: an argument is out of range.
    RuntimeError: the installed TFF has no worker.
  """
  port = _checks.check_int('port', port, 1, _checks.MAX_PORT)
  max_concurrent_clients = _checks.check_optional_count(
    'max_concurrent_clients', max_concurrent_clients
  )
  return worker_process.command(
    port, max_concurrent_clients=max_concurrent_clients
  )


def _check_process() -> None:
  """Raises RuntimeError where gRPC, used before a fork, would crash."""
  if any(backend.is_connected for backend in list(_backends.values())):
    _border.check()


def _set(backend: _Backend) -> None:
  global _border
  _border = borders.ProcessBorder()
  _backends[threading.current_thread()] = backend
  tff.framework.set_default_context(backend.context)

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The life of one `worker_binary` process: start, wait until ready, end.

TFF's own launcher hands the worker Python's stdout and stderr and ends it in a
`__del__` that often does not run, so the worker outlives Python and a pipe such
as `python train.py | tail` never closes. The launcher is a private closure
inside TFF. Instead of reaching into it, the worker is started here and TFF is
given a gRPC channel to it through public names only.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Optional

import grpc
import tensorflow_federated as tff

# Messages hold whole model structures. The worker's own limit is 10 GB and
# protobuf's is 2 GB, so the Python side need not add one (-1: no limit).
MESSAGE_OPTIONS = (
  ('grpc.max_receive_message_length', -1),
  ('grpc.max_send_message_length', -1),
)
# With `http_proxy` set, gRPC would look for this machine behind the proxy.
NO_PROXY_OPTIONS = (('grpc.enable_http_proxy', 0),)

_START_TIMEOUT_SECONDS = 60.0
_END_TIMEOUT_SECONDS = 10.0

# Runs in a bare Python for some milliseconds and then becomes the worker (same
# process id). `prctl(PR_SET_PDEATHSIG)` makes the kernel kill the worker when
# Python is gone, whatever ended it, `kill -9` included, and survives `execv`.
# It is set here and not in a `preexec_fn`, which may deadlock in a process that
# has threads (gRPC has). A parent that died before the call is noticed by the
# changed parent id. Where it fails, a normal exit still ends the worker.
_LAUNCHER = """
import os, sys
try:
  import ctypes
  ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
except Exception:
  pass
if os.getppid() == int(sys.argv[1]):
  os.execv(sys.argv[2], sys.argv[2:])
"""


class SilentWorkerError(RuntimeError):
  """A worker runs and does not answer."""


def binary_path() -> str:
  """Path of the worker that TFF's wheel brings.

  Raises:
    RuntimeError: the installed TFF has no worker.
  """
  path = os.path.join(os.path.dirname(tff.__file__), 'data', 'worker_binary')
  if not os.path.isfile(path):
    raise RuntimeError(
      f'TFF {tff.__version__} must bring its worker, found no file {path}. '
      'Install the wheel for Linux x86-64.'
    )
  return path


def command(
  port: int, *, max_concurrent_clients: Optional[int] = None
) -> list[str]:
  """Command line that serves TFF's executor on `port` of all interfaces."""
  arguments = [binary_path(), f'--port={port}']
  if max_concurrent_clients is not None:
    arguments.append(
      f'--max_concurrent_computation_calls={max_concurrent_clients}'
    )
  return arguments


def answers_within(channel: grpc.Channel, seconds: float) -> bool:
  """Whether a gRPC server answers on `channel`, waited for at most `seconds`.

  gRPC has a future for this, but it makes a thread look at the channel up to
  0.2 s later. If the channel is closed by then, the thread prints a traceback.
  A call leaves nothing behind.

  Args:
    channel: connects to the server, and need not be connected yet.
    seconds: how long to wait.
  """
  try:
    # No server knows this method, but saying so is an answer, too.
    channel.unary_unary('/tff_autotune_secagg/AreYouThere')(
      b'', timeout=seconds, wait_for_ready=True
    )
  except grpc.RpcError as error:
    silence = (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE)
    return error.code() not in silence
  return True


def check_port(port: int) -> None:
  """Checks that a worker can have a port to itself.

  If the worker cannot listen, it ends without a word. And gRPC listens with
  `SO_REUSEPORT`: two workers can share a port, and connections then go to
  either.

  Args:
    port: TCP port.

  Raises:
    OSError: somebody listens on it, or this process may not.
  """
  # Sockets of connections that have just ended are no reason to refuse.
  _bind(port, socket.SO_REUSEADDR).close()


def _reserve_port() -> socket.socket:
  """Binds a free port that only a `SO_REUSEPORT` listener can share.

  The socket never listens: it keeps the kernel from giving the port to anybody
  else while the worker lives.
  """
  return _bind(0, socket.SO_REUSEPORT)


def _bind(port: int, option: int) -> socket.socket:
  """Binds a socket with an option on all interfaces; 0 takes a free port."""
  try:
    bound = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    address = '::'
  except OSError:  # A kernel without IPv6.
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    address = ''
  try:
    bound.setsockopt(socket.SOL_SOCKET, option, 1)
    bound.bind((address, port))
  except OSError:
    bound.close()
    raise
  return bound


class WorkerProcess:
  """A `worker_binary` on this machine that ends no later than this process.

  It ends by `end()`, and by the kernel when this process is gone. It has its
  own session, so that Ctrl-C in a terminal reaches Python alone, which may
  still want results for a last checkpoint.
  """

  def __init__(self, *, max_concurrent_clients: Optional[int] = None):
    """Starts the worker on a free port, and does not wait until it is ready.

    Args:
      max_concurrent_clients: how many clients are computed at the same time;
        None for no limit.

    Raises:
      OSError: the process could not be started.
      RuntimeError: the installed TFF has no worker.
    """
    self._owner_pid = os.getpid()
    self._reserved_port = _reserve_port()
    port = self._reserved_port.getsockname()[1]
    self._arguments = command(
      port, max_concurrent_clients=max_concurrent_clients
    )
    self._process: Optional[subprocess.Popen[bytes]] = None
    self._start_error: Optional[OSError] = None
    started = threading.Event()
    # The kernel takes the death of the *thread* that started a child for the
    # death of the parent. This thread therefore lives as long as the worker,
    # which makes it safe to be called from a short-lived thread.
    threading.Thread(
      target=self._start_and_wait, args=(started,), daemon=True
    ).start()
    started.wait()
    if self._start_error is not None:
      self._reserved_port.close()
      raise self._start_error
    self.channel = grpc.insecure_channel(
      f'localhost:{port}', MESSAGE_OPTIONS + NO_PROXY_OPTIONS
    )

  def _start_and_wait(self, started: threading.Event) -> None:
    arguments = self._arguments
    if sys.executable:
      launcher = [sys.executable, '-I', '-S', '-c', _LAUNCHER]
      arguments = launcher + [str(os.getpid())] + arguments
    try:
      self._process = subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        # Errors travel over gRPC; what is left is TensorFlow's start-up
        # noise. Inheriting stdout would keep a pipe of the user's open.
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
      )
    except OSError as error:
      self._start_error = error
    finally:
      started.set()
    if self._process is not None:
      self._process.wait()

  @property
  def pid(self) -> int:
    """Process id, which stays the same when the worker has ended."""
    return self._process.pid

  @property
  def exit_status(self) -> Optional[int]:
    """As `subprocess.Popen.poll`: None while it runs, -signal if killed."""
    return self._process.poll()

  def describe_end(self) -> str:
    """What ended the worker, in words for an error message."""
    status = self.exit_status
    if status is not None and status < 0:
      return f'ended by {signal.Signals(-status).name}'
    return f'ended with exit status {status}'

  def wait_until_ready(self) -> None:
    """Waits until the worker accepts calls.

    Raises:
      RuntimeError: the worker ends.
      SilentWorkerError: it stays silent for a minute.
    """
    give_up = time.monotonic() + _START_TIMEOUT_SECONDS
    while self.exit_status is None and time.monotonic() < give_up:
      if answers_within(self.channel, seconds=0.1):
        return
    if self.exit_status is None:
      error = SilentWorkerError
      found = f'no answer after {_START_TIMEOUT_SECONDS:g} s'
    else:
      error, found = RuntimeError, self.describe_end()
    raise error(
      "TFF's worker must accept calls after its start, found "
      f'{found}. Run `{" ".join(self._arguments)}` to see why.'
    )

  def end(self) -> None:
    """Ends the worker and returns when it is gone. Harmless if repeated."""
    if os.getpid() != self._owner_pid:
      return  # A forked copy of Python exits; the worker is not its own.
    # Kill the worker at once. It holds nothing worth saving, and after SIGINT
    # or SIGTERM it would first finish what it computes.
    self._process.kill()
    try:
      self._process.wait(timeout=_END_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
      pass  # Stuck in the kernel; it dies as soon as it gets out.
    self._reserved_port.close()

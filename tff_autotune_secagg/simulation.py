# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Execution contexts in which the secure intrinsics run, without cryptography.

TFF's default context cannot run a secure sum. The contexts here replace each
secure intrinsic by the plain computation of the same result, as TFF's test
backend does, and own the worker processes that do the work.
"""

from __future__ import annotations

import threading
from typing import Optional

import tensorflow_federated as tff

from tff_autotune_secagg import _worker_process

# Executors hold one connection state per number of clients in a round.
_lock = threading.Lock()
_local_worker: Optional[_LocalWorker] = None


def _compile(
    computation: tff.framework.ConcreteComputation,
) -> tff.framework.ConcreteComputation:
  computation = tff.backends.test.replace_secure_intrinsics_with_bodies(
      computation
  )
  return tff.backends.native.desugar_and_transform_to_native(computation)


class _LocalWorker:
  """A worker process and the executors that use it."""

  def __init__(self, max_concurrent_clients: Optional[int]):
    self._max_concurrent_clients = max_concurrent_clients
    self._process = self._start()
    self._executors = []
    self._closed = False
    self._is_ready = False

  def _start(self):
    return _worker_process.WorkerProcess(
        max_concurrent_clients=self._max_concurrent_clients
    )

  @property
  def pids(self) -> list[int]:
    return [] if self._process.exit_status is not None else [self._process.pid]

  def create_executor(self, cardinalities) -> tff.framework.RemoteExecutor:
    """Called by TFF for each new number of clients and after each failure."""
    if self._closed:
      raise RuntimeError(
          "The context's worker must run, found it ended by "
          '`simulation.close()` or by a newer context. Call '
          '`tff_autotune_secagg.simulation.set_local_context()`.'
      )
    if self._process.exit_status is not None:
      ended = self._process.describe_end()
      self._process, self._is_ready = self._start(), False
      raise RuntimeError(
          f"TFF's worker must live through a computation, found it {ended}. "
          'SIGKILL mostly means that memory ran out: lower '
          '`max_concurrent_clients`. The next computation gets a new worker.'
      )
    if not self._is_ready:
      self._process.wait_until_ready()
      self._is_ready = True
    stub = tff.framework.RemoteExecutorGrpcStub(self._process.channel)
    executor = tff.framework.RemoteExecutor(stub)
    cardinalities.setdefault(tff.CLIENTS, 0)
    executor.set_cardinalities(cardinalities)
    self._executors.append(executor)
    return executor

  def close(self):
    self._closed = True
    self._process.end()
    # Marks their values as gone. Otherwise Python disposes of them one by one
    # at exit and prints an error for each call that finds no worker.
    for executor in self._executors:
      executor.close()


def set_local_context(*, max_concurrent_clients: Optional[int] = None) -> None:
  """Makes secure sums run on this machine: a simulation, no cryptography.

  Sets TFF's default execution context, for the calling thread, to one that
  computes the secure intrinsics in the clear in one child process.

  Called again, it replaces the context and ends the former worker.

  Args:
    max_concurrent_clients: How many clients are computed at the same time, at
      least 1; None for no limit. Lower it when memory runs out.
  """
  global _local_worker
  with _lock:
    if _local_worker is not None:
      _local_worker.close()
    _local_worker = _LocalWorker(max_concurrent_clients)
    context = tff.framework.SyncExecutionContext(
        executor_fn=tff.framework.ResourceManagingExecutorFactory(
            _local_worker.create_executor
        ),
        compiler_fn=_compile,
        transform_args=tff.tensorflow.transform_args,
        transform_result=tff.tensorflow.transform_result,
    )
    tff.framework.set_default_context(context)


def close() -> None:
  """Ends the worker of the context set last. Harmless if there is none."""
  global _local_worker
  with _lock:
    if _local_worker is not None:
      _local_worker.close()
      _local_worker = None


def worker_pids() -> list[int]:
  """Process ids of the workers on this machine that this module owns."""
  return [] if _local_worker is None else _local_worker.pids

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The TFF contexts behind `simulation`, made of TFF's public parts."""

from __future__ import annotations

import collections
from collections.abc import Callable
import re
import threading
from typing import Any, Optional

from absl import logging
import grpc
import tensorflow_federated as tff

from tff_autotune_secagg import _checks
from tff_autotune_secagg.simulation import borders
from tff_autotune_secagg.simulation import round_warnings
from tff_autotune_secagg.simulation import worker_process

# As many as TFF's own factory keeps. An executor holds the values of one number
# of clients, and cohorts that differ in every round would pile them up.
_MAX_EXECUTORS = 10


def _compile(
  computation: tff.framework.ConcreteComputation,
) -> tff.framework.ConcreteComputation:
  """Replaces secure intrinsics by plain ones, then compiles as TFF does."""
  # Flat first: what follows reads and writes the whole of it three times.
  flat = tff.framework.to_call_dominant(computation.to_building_block())
  computation = tff.backends.test.replace_secure_intrinsics_with_bodies(
    tff.framework.ConcreteComputation.from_building_block(flat)
  )
  return tff.backends.native.desugar_and_transform_to_native(computation)


def raise_refused_state(error: grpc.RpcError) -> None:
  """Raises one sentence instead of `error` if a factory refused its state.

  Raises:
    ValueError: a factory found the settings of another one in its state, or
      bin sizes that no round can have.
  """
  refusal = re.search(
    rf'\[((?:{"|".join(_checks.REFUSALS)}) [^\]]*)\]', str(error)
  )
  if refusal:
    raise ValueError(refusal.group(1)) from None


def raise_without_values(error: TypeError) -> None:
  """Raises what TFF says of a structure of other fields, not its values.

  Raises:
    TypeError: `error` is of a structure of other fields.
  """
  sentence, has_values, _ = str(error).partition(' Trying to serialize\n')
  if has_values:
    raise TypeError(
      f'{sentence} If it is a state, `check_state(process, state)` says what'
      ' differs.'
    ) from None


class LocalContext(tff.framework.SyncExecutionContext):
  """TFF's context, in which refusals are one sentence."""

  def __init__(self, **options: Any):
    """Initializes the context.

    Args:
      **options: as of `tff.framework.SyncExecutionContext`.
    """
    super().__init__(**options)
    self._border = borders.ProcessBorder()
    self._warnings = round_warnings.RoundWarnings()

  def invoke(self, comp: Any, arg: Any) -> Any:
    """Returns `comp(arg)`.

    Raises:
      RuntimeError: the process is a forked copy of the context's.
      TypeError: an argument has other fields than `comp` takes.
      ValueError: a factory refused its state; else whatever TFF raises.
    """
    self._border.check()
    try:
      result = super().invoke(comp, arg)
    except TypeError as error:
      raise_without_values(error)
      raise
    except grpc.RpcError as error:
      raise_refused_state(error)
      raise
    self._warnings.look_at(result)
    return result


class Executors(tff.framework.ExecutorFactory):
  """One executor per number of clients, on the worker that a caller chooses.

  TFF's own factory keeps an executor for good; this one asks for the worker
  before each computation, which lets work move away from a lost worker and
  back.
  """

  def __init__(
    self, choose_stub: Callable[[], tff.framework.RemoteExecutorGrpcStub]
  ):
    """Initializes the factory, which has no executor yet.

    Args:
      choose_stub: returns the connection to the worker of the next computation.
        What it raises ends that computation.
    """
    self._choose_stub = choose_stub
    self._lock = threading.Lock()
    self._executors = collections.OrderedDict()

  def create_executor(
    self, cardinalities: tff.framework.CardinalitiesType
  ) -> tff.framework.RemoteExecutor:
    """Returns the executor for these numbers of clients, on the chosen worker.

    Args:
      cardinalities: how many there are of each placement.
    """
    stub = self._choose_stub()
    key = _executor_key(cardinalities)
    with self._lock:
      former_stub, executor = self._executors.get(key, (None, None))
      if former_stub is stub:
        self._executors.move_to_end(key)
        return executor
      if executor is not None:
        executor.close()
      executor = tff.framework.RemoteExecutor(stub)
      executor.set_cardinalities({tff.CLIENTS: 0, **cardinalities})
      self._executors[key] = (stub, executor)
      if len(self._executors) > _MAX_EXECUTORS:
        # Not closed: another thread may still compute with it. Its values are
        # freed on the worker as Python lets go of them.
        self._executors.popitem(last=False)
      return executor

  def clean_up_executor(
    self, cardinalities: tff.framework.CardinalitiesType
  ) -> None:
    """Forgets an executor, as TFF wants it after an error.

    Args:
      cardinalities: as for `create_executor`.
    """
    with self._lock:
      _, executor = self._executors.pop(
        _executor_key(cardinalities), (None, None)
      )
    if executor is not None:
      executor.close()

  def close(self) -> None:
    """Closes all executors and forgets them. Harmless if repeated."""
    with self._lock:
      for _, executor in self._executors.values():
        executor.close()
      self._executors.clear()


def _executor_key(cardinalities: tff.framework.CardinalitiesType):
  return tuple(sorted((str(place), n) for place, n in cardinalities.items()))


class LocalBackend:
  """A context over one worker process on this machine.

  Attributes:
    context: the `tff.framework.SyncContext` to set.
  """

  def __init__(self, *, max_concurrent_clients: Optional[int]):
    """Starts the worker, and does not wait until it is ready.

    Args:
      max_concurrent_clients: how many clients are computed at the same time;
        None for no limit.

    Raises:
      RuntimeError: the installed TFF has no worker.
    """
    self._max_concurrent_clients = max_concurrent_clients
    self._closed = False
    self._stub = None
    self._process = self._start()
    self._executors = Executors(self._choose_stub)
    self.context = LocalContext(
      executor_fn=self._executors,
      compiler_fn=_compile,
      transform_args=tff.tensorflow.transform_args,
      transform_result=tff.tensorflow.transform_result,
    )

  def _start(self) -> worker_process.WorkerProcess:
    return worker_process.WorkerProcess(
      max_concurrent_clients=self._max_concurrent_clients
    )

  @property
  def is_connected(self) -> bool:
    """Whether it has called its worker."""
    return self._stub is not None

  @property
  def worker_pids(self) -> list[int]:
    """Process id of the worker, in a list that is empty once it has ended."""
    return [self._process.pid] if self._process.exit_status is None else []

  def _choose_stub(self) -> tff.framework.RemoteExecutorGrpcStub:
    if self._closed:
      raise RuntimeError(
        "The context's worker must be running, found it ended by "
        '`simulation.close()` or by a newer context. Call '
        '`tff_autotune_secagg.simulation.set_local_context()`.'
      )
    if self._process.exit_status is not None:
      # TFF would start a new worker and repeat the computation for ever, which
      # is of no use when it ran out of memory.
      ended = self._process.describe_end()
      self._replace_worker()
      raise RuntimeError(
        f"TFF's worker must outlive a computation, found it {ended}. "
        'SIGKILL mostly means that memory ran out: lower '
        '`max_concurrent_clients`. The next computation gets a new worker.'
      )
    if self._stub is None:
      self._wait_until_ready()
      self._stub = tff.framework.RemoteExecutorGrpcStub(self._process.channel)
    return self._stub

  def _wait_until_ready(self) -> None:
    """Waits for the worker's start, and replaces one that stays silent once."""
    try:
      self._process.wait_until_ready()
    except worker_process.SilentWorkerError as error:
      # One in some thousands of starts, for whatever reason.
      logging.warning('%s Another worker is started.', error)
      self._replace_worker()
      self._process.wait_until_ready()

  def _replace_worker(self) -> None:
    """Ends the worker, or what is left of it, and starts another."""
    self._process.end()
    self._process, self._stub = self._start(), None

  def close(self) -> None:
    """Ends the worker; a later computation in `context` is an error."""
    self._closed = True
    # First the worker: a computation that Ctrl-C interrupted may still run in
    # it, and a call to it would wait for the end of that.
    self._process.end()
    # Then the executors, which marks their values as gone. Otherwise Python
    # disposes of them at exit and prints an error for each call that fails.
    self._executors.close()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The TFF context behind `simulation.set_remote_context`."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent import futures
import functools
import itertools
import threading
from typing import Any, Optional

from absl import logging
import grpc
import tensorflow_federated as tff

from tff_autotune_secagg.simulation import borders
from tff_autotune_secagg.simulation import contexts
from tff_autotune_secagg.simulation import round_warnings
from tff_autotune_secagg.simulation import worker_process
from tff_autotune_secagg.simulation.remote import partition
from tff_autotune_secagg.simulation.remote import proxies
from tff_autotune_secagg.simulation.remote import worker_context

_REMOTE_CHANNEL_OPTIONS = worker_process.MESSAGE_OPTIONS + (
  # A worker that came back is noticed after seconds, not after two minutes.
  ('grpc.max_reconnect_backoff_ms', 5_000),
  # Without keepalive, a machine that lost power leaves the call waiting for
  # ever. Pings more frequent than every five minutes are taken for abuse by
  # the worker's gRPC, which then closes the connection.
  ('grpc.keepalive_time_ms', 310_000),
  ('grpc.keepalive_timeout_ms', 20_000),
)

# How long a lost worker may hold up a round before it is passed over again.
_PROBE_SECONDS = 0.2

# As many computations as TFF's contexts keep.
_COMPILED_CACHE_SIZE = 128


def _compile(
  computation: tff.framework.ConcreteComputation,
) -> tff.framework.MergeableCompForm:
  """Splits `computation` at its sums into parts that workers can share."""
  plain = tff.backends.test.replace_secure_intrinsics_with_bodies(computation)
  form = tff.backends.native.compile_to_mergeable_comp_form(plain)
  # The replacement forgets Python containers. The original type brings them
  # back, so that a process returns what it returns on one machine.
  result_type = tff.types.FunctionType(
    form.after_merge.type_signature.parameter,
    computation.type_signature.result,
  )
  return tff.framework.MergeableCompForm(
    up_to_merge=form.up_to_merge,
    merge=form.merge,
    after_merge=tff.framework.ConcreteComputation.with_type(
      form.after_merge, result_type
    ),
  )


class _RemoteWorker:
  """The connection to one worker machine."""

  def __init__(self, address: str):
    self.address = address
    self.is_lost = False
    options = _REMOTE_CHANNEL_OPTIONS
    if proxies.is_this_machine(address):
      options += worker_process.NO_PROXY_OPTIONS
    self.channel = grpc.insecure_channel(address, options)
    self.stub = tff.framework.RemoteExecutorGrpcStub(self.channel)

  def answers_within(self, seconds: float) -> bool:
    return self.stub.is_ready or worker_process.answers_within(
      self.channel, seconds
    )


class _SplitContext(tff.framework.SyncContext):
  """Splits clients over workers, adds up their sums, goes on with the total.

  TFF's `MergeableCompExecutionContext` does the same with the same three parts
  of a computation, but adds partial sums and lists clients' results in the
  order in which workers happen to finish, and sends some client data twice.
  """

  def __init__(
    self,
    workers: Sequence[worker_context.WorkerContext],
    max_clients_per_call: Optional[int],
  ):
    self._workers = workers
    self._max_clients_per_call = max_clients_per_call
    self._border = borders.ProcessBorder()
    self._warnings = round_warnings.RoundWarnings()
    self._compile = functools.lru_cache(maxsize=_COMPILED_CACHE_SIZE)(_compile)

  def invoke(self, comp: Any, arg: Any) -> Any:
    self._border.check()
    result = self._compute(comp, arg)
    self._warnings.look_at(result)
    return result

  def _compute(self, comp: Any, arg: Any) -> Any:
    form = self._compile(comp)
    parameter_type = form.up_to_merge.type_signature.parameter
    parts = partition.split(
      arg,
      parameter_type,
      min_parts=len(self._workers),
      max_clients=self._max_clients_per_call,
    )
    merged, *others = self._run(form.up_to_merge, parts)
    for other in others:
      pair = tff.structure.Struct.unnamed(merged, other)
      (merged,) = self._run(form.merge, [pair])

    result_type = form.after_merge.type_signature.result
    if not partition.has_client_values(result_type):
      # What is left happens at the server: no client data need travel again.
      parts = [partition.without_clients(arg, parameter_type)]
    if parameter_type is None:
      arguments = [merged]
    else:
      arguments = [tff.structure.Struct.unnamed(part, merged) for part in parts]
    results = self._run(form.after_merge, arguments)
    return partition.join(results, result_type)

  def _run(self, comp: Any, arguments: Sequence[Any]) -> list[Any]:
    running = [
      worker.start(comp, argument)
      for worker, argument in zip(itertools.cycle(self._workers), arguments)
    ]
    try:
      return [future.result() for future in running]
    except grpc.RpcError as error:
      self._raise_if_closed()
      contexts.raise_refused_state(error)
      raise
    except (futures.CancelledError, ValueError):  # As gRPC says "closed".
      self._raise_if_closed()
      raise
    finally:
      # After an error or Ctrl-C, calls that have not begun.
      for future in running:
        future.cancel()

  def _raise_if_closed(self) -> None:
    if any(worker.is_closed for worker in self._workers):
      raise worker_context.closed_error() from None


class RemoteBackend:
  """A context that splits each round's clients over worker machines.

  Attributes:
    context: the `tff.framework.SyncContext` to set.
    is_connected: True, since the workers have answered.
    worker_pids: empty, since no worker is a process of this machine's Python.
  """

  def __init__(
    self,
    addresses: Sequence[str],
    *,
    max_clients_per_call: Optional[int],
    timeout_seconds: float,
  ):
    """Connects to the workers and waits for an answer of each.

    Args:
      addresses: 'host:port' of each worker, all different.
      max_clients_per_call: how many clients a worker is sent at a time; None
        for no limit.
      timeout_seconds: how long a worker may take to answer.

    Raises:
      ConnectionError: a worker does not answer.
    """
    self._timeout_seconds = timeout_seconds
    self._closed = False
    self._workers = [_RemoteWorker(address) for address in addresses]
    for worker in self._workers:
      if not worker.answers_within(timeout_seconds):
        self._close_channels()
        raise ConnectionError(
          f'`workers` must all answer within {timeout_seconds:g} s, found no '
          f'answer from {worker.address!r}. Start it there with `python -m '
          'tff_autotune_secagg.worker --port='
          f'{worker.address.rpartition(":")[2]}`.'
          + proxies.hint([worker.address])
        )
    # All workers run the same computations: compile each of them once.
    self._compile_cached = functools.lru_cache(maxsize=_COMPILED_CACHE_SIZE)(
      tff.backends.native.desugar_and_transform_to_native
    )
    self._compile_lock = threading.Lock()
    self._contexts = [
      worker_context.WorkerContext(
        contexts.Executors(functools.partial(self._choose_stub, worker)),
        self._compile_once,
      )
      for worker in self._workers
    ]
    self.context = _SplitContext(self._contexts, max_clients_per_call)
    self.is_connected = True
    self.worker_pids: list[int] = []

  def _compile_once(self, computation: tff.framework.ConcreteComputation):
    with self._compile_lock:
      return self._compile_cached(computation)

  def _choose_stub(
    self, preferred: _RemoteWorker
  ) -> tff.framework.RemoteExecutorGrpcStub:
    """`preferred`, or the next worker that answers while that one is lost."""
    if self._closed:
      raise worker_context.closed_error()
    start = self._workers.index(preferred)
    for worker in self._workers[start:] + self._workers[:start]:
      patience = _PROBE_SECONDS if worker.is_lost else self._timeout_seconds
      if worker.answers_within(patience):
        if worker.is_lost:
          logging.warning('Worker %s answers again.', worker.address)
          worker.is_lost = False
        return worker.stub
      if not worker.is_lost:
        logging.warning(
          'Worker %s does not answer; its clients go to the others.',
          worker.address,
        )
        worker.is_lost = True
    addresses = [worker.address for worker in self._workers]
    raise ConnectionError(
      f'At least one worker must answer, found none of {", ".join(addresses)}.'
      + proxies.hint(addresses)
    )

  def _close_channels(self) -> None:
    for worker in self._workers:
      worker.channel.close()

  def close(self) -> None:
    """Closes all connections; a later computation in `context` is an error."""
    self._closed = True
    for context in self._contexts:
      context.close()
    self._close_channels()

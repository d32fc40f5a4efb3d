# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the local simulation context and the life of its worker."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import threading
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow_federated as tff

from tests import child_signals
from tests import fresh_python
from tests.simulation import processes
from tff_autotune_secagg import simulation
from tff_autotune_secagg.simulation import worker_process

_PROJECT = pathlib.Path(__file__).parents[2]

# Sets the context, uses it, tells the worker's id and ends as it is told to.
_CHILD = """
import sys
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff
from tff_autotune_secagg import simulation

simulation.set_local_context()
process = tff.aggregators.SecureModularSumFactory(16).create(
  tff.types.TensorType(np.int32)
)
output = process.next(process.initialize(), [np.int32(9), np.int32(9)])
print(output.result, *simulation.worker_pids(), flush=True)
sys.stdin.readline()  # Not all children of the test at once.
if sys.argv[1] == 'raises':
  raise ValueError('unhandled')

@tff.tensorflow.computation(np.int64)
def count_up_to(end):
  return tf.while_loop(lambda i: i < end, lambda i: [i + 1], [np.int64(0)])[0]

count_up_to(np.int64(10**12))  # Hours.
"""


def _start_child(end: str) -> subprocess.Popen:
  return child_signals.popen(
    [sys.executable, '-c', fresh_python.RARELY_COLLECTED + _CHILD, end],
    cwd=_PROJECT,
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    stderr=subprocess.DEVNULL,
    text=True,
  )


def _modular_sum_process() -> tff.templates.AggregationProcess:
  return tff.aggregators.SecureModularSumFactory(16).create(
    tff.types.TensorType(np.int32)
  )


def _sum(process: tff.templates.AggregationProcess, values):
  output = process.next(process.initialize(), [np.int32(v) for v in values])
  return int(output.result)


def tearDownModule():
  # Test files that come later in the same Python may count on a context.
  simulation.set_local_context()


@pytest.mark.slow
class WorkerLifeTest(parameterized.TestCase):
  """No worker outlives the Python that started it, however that ends."""

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    # All at once: most of a child's time is the import of TensorFlow.
    cls._children = {}
    for end in ('raises', 'SIGINT', 'SIGKILL'):
      cls._children[end] = _start_child(end)

  @classmethod
  def tearDownClass(cls):
    for child in cls._children.values():
      child.kill()
      child.wait()
      child.stdout.close()
      child.stdin.close()
    super().tearDownClass()

  def _release(self, child) -> int:
    line = child.stdout.readline().split()
    self.assertLen(line, 2)
    self.assertEqual(line[0], str((9 + 9) % 16))
    child.stdin.write('\n')
    child.stdin.flush()
    return int(line[1])

  def _assert_gone(self, child, worker_pid, expected_status):
    # Returns once nobody holds the other end of the pipe any more, which is
    # what the `tail` of `python x.py | tail` waits for.
    child.communicate(timeout=processes.DEADLINE_SECONDS)
    self.assertEqual(child.returncode, expected_status)
    self.assertTrue(
      processes.wait_for(lambda: not processes.is_running(worker_pid))
    )

  def test_worker_ends_when_python_ends_by_itself(self):
    child = self._children['raises']
    worker_pid = self._release(child)
    self._assert_gone(child, worker_pid, expected_status=1)

  @parameterized.named_parameters(
    ('sigint', signal.SIGINT),
    # SIGTERM ends Python in the same way.
    ('sigkill', signal.SIGKILL),
  )
  def test_busy_worker_ends_when_python_gets(self, signal_number):
    child = self._children[signal_number.name]
    worker_pid = self._release(child)
    before = processes.cpu_seconds(worker_pid)
    self.assertTrue(
      processes.wait_for(
        lambda: processes.cpu_seconds(worker_pid) > before + 0.3
      )
    )
    # Control: the check that follows would see a worker that lives on.
    self.assertTrue(processes.is_running(worker_pid))
    child.send_signal(signal_number)
    self._assert_gone(child, worker_pid, -signal_number)


class LocalContextTest(parameterized.TestCase):
  def test_runs_secure_sums(self):
    simulation.set_local_context()
    process = _modular_sum_process()
    self.assertEqual(_sum(process, [15] * 7), 15 * 7 % 16)

  def test_runs_secure_sums_with_one_client_at_a_time(self):
    simulation.set_local_context(max_concurrent_clients=1)
    command = pathlib.Path(f'/proc/{simulation.worker_pids()[0]}/cmdline')
    self.assertTrue(
      processes.wait_for(
        lambda: b'--max_concurrent_computation_calls=1' in command.read_bytes()
      )
    )
    self.assertEqual(_sum(_modular_sum_process(), [15] * 7), 15 * 7 % 16)

  def test_survives_more_client_counts_than_executors_are_kept(self):
    simulation.set_local_context()
    process = _modular_sum_process()
    for num_clients in [*range(1, 14), *range(1, 14)]:
      self.assertEqual(_sum(process, [1] * num_clients), num_clients % 16)

  def test_second_call_ends_the_former_worker_and_context(self):
    simulation.set_local_context()
    process = _modular_sum_process()
    self.assertEqual(_sum(process, [3]), 3)
    former_context = tff.framework.get_context_stack().current
    (former_pid,) = simulation.worker_pids()
    simulation.set_local_context()
    self.assertFalse(processes.is_running(former_pid))
    self.assertNotIn(former_pid, simulation.worker_pids())
    self.assertEqual(_sum(process, [3]), 3)

    tff.framework.set_default_context(former_context)
    with self.assertRaisesWithLiteralMatch(
      RuntimeError,
      "The context's worker must be running, found it ended by "
      '`simulation.close()` or by a newer context. Call '
      '`tff_autotune_secagg.simulation.set_local_context()`.',
    ):
      _sum(process, [3])

  def test_close_ends_the_worker_and_can_be_repeated(self):
    simulation.set_local_context()
    (pid,) = simulation.worker_pids()
    simulation.close()
    self.assertFalse(processes.is_running(pid))
    self.assertEmpty(simulation.worker_pids())
    simulation.close()

  def test_worker_outlives_the_thread_that_set_the_context(self):
    simulation.close()
    thread = threading.Thread(target=simulation.set_local_context)
    thread.start()
    thread.join()
    (pid,) = simulation.worker_pids()
    # A kernel that took the thread for the parent would have killed it with
    # the thread, before `join` returned.
    self.assertTrue(processes.is_running(pid))
    simulation.close()

  def test_each_thread_has_a_context_of_its_own(self):
    simulation.set_local_context()
    (pid,) = simulation.worker_pids()
    process = _modular_sum_process()
    set_there, closed_here = threading.Event(), threading.Event()
    found = []

    def compute():
      simulation.set_local_context()
      set_there.set()
      closed_here.wait()
      found.append(_sum(process, [9, 9]))

    thread = threading.Thread(target=compute)
    thread.start()
    set_there.wait()
    self.assertLen(simulation.worker_pids(), 2)
    self.assertEqual(_sum(process, [3]), 3)
    simulation.close()
    self.assertFalse(processes.is_running(pid))
    closed_here.set()
    thread.join()
    self.assertEqual(found, [2])
    # Nobody else can close the context of a thread that has ended.
    self.assertLen(simulation.worker_pids(), 1)
    simulation.close()
    self.assertEmpty(simulation.worker_pids())

  @contextlib.contextmanager
  def _workers(self, *commands):
    """Within it, a context starts these in turn, None for TFF's worker.

    Yields:
      The process id of the first.
    """
    command, commands = worker_process.command, iter(commands)

    def next_command(port, **options):
      found = next(commands)
      if found is None:
        worker_process._START_TIMEOUT_SECONDS = processes.DEADLINE_SECONDS
      return found or command(port, **options)

    with mock.patch.multiple(
      worker_process, command=next_command, _START_TIMEOUT_SECONDS=1.0
    ):
      simulation.set_local_context()
      (pid,) = simulation.worker_pids()
      yield pid

  def test_dead_worker_is_reported_once_and_replaced(self):
    simulation.set_local_context()
    process = _modular_sum_process()
    self.assertEqual(_sum(process, [3]), 3)
    os.kill(simulation.worker_pids()[0], signal.SIGKILL)
    with self.assertRaisesWithLiteralMatch(
      RuntimeError,
      "TFF's worker must outlive a computation, found it ended by SIGKILL. "
      'SIGKILL mostly means that memory ran out: lower '
      '`max_concurrent_clients`. The next computation gets a new worker.',
    ):
      _sum(process, [3])
    self.assertEqual(_sum(process, [3]), 3)

  def test_a_worker_that_stays_silent_is_replaced_once(self):
    with self._workers(['/bin/sleep', '1000'], None) as pid:
      with self.assertLogs(level='WARNING') as logged:
        self.assertEqual(_sum(_modular_sum_process(), [3]), 3)
    self.assertIn(
      "WARNING:absl:TFF's worker must accept calls after its start, found no"
      ' answer after 1 s. Run `/bin/sleep 1000` to see why. Another worker is'
      ' started.',
      logged.output,
    )
    self.assertFalse(processes.is_running(pid))

  def test_two_silent_workers_are_an_error(self):
    with self._workers(['/bin/sleep', '1000'], ['/bin/sleep', '1001']) as pid:
      with self.assertRaisesWithLiteralMatch(
        worker_process.SilentWorkerError,
        "TFF's worker must accept calls after its start, found no answer after"
        ' 1 s. Run `/bin/sleep 1001` to see why.',
      ):
        _sum(_modular_sum_process(), [3])
    (second_pid,) = simulation.worker_pids()
    simulation.close()
    for one in (pid, second_pid):
      self.assertFalse(processes.is_running(one))

  @parameterized.named_parameters(
    ('bool', True, TypeError, 'found True (bool).'),
    ('float', 2.0, TypeError, 'found 2.0 (float).'),
    ('zero', 0, ValueError, 'found 0 (int).'),
  )
  def test_rejects_max_concurrent_clients(self, value, error, message):
    with self.assertRaisesWithLiteralMatch(
      error,
      f'`max_concurrent_clients` must be an int of at least 1, {message}',
    ):
      simulation.set_local_context(max_concurrent_clients=value)


class WorkerCommandTest(parameterized.TestCase):
  def test_names_the_installed_worker_and_the_port(self):
    program, *flags = simulation.worker_command(8000, max_concurrent_clients=2)
    self.assertTrue(os.access(program, os.X_OK))
    self.assertEqual(
      flags, ['--port=8000', '--max_concurrent_computation_calls=2']
    )

  @parameterized.named_parameters(
    ('bool', True, TypeError, 'found True (bool).'),
    ('text', '80', TypeError, "found '80' (str)."),
    ('zero', 0, ValueError, 'found 0 (int).'),
    ('too_large', 2**16, ValueError, 'found 65536 (int).'),
  )
  def test_rejects_port(self, port, error, message):
    with self.assertRaisesWithLiteralMatch(
      error,
      f'`port` must be an int of at least 1 and at most 65535, {message}',
    ):
      simulation.worker_command(port)


class RemoteArgumentsTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('one_string', 'a:1', TypeError, "found 'a:1' (str)."),
    ('empty', [], ValueError, 'at least one, found [] (list).'),
    (
      'twice',
      ['a:1', 'a:1'],
      ValueError,
      "at least one, found ['a:1', 'a:1'] (list).",
    ),
  )
  def test_rejects_workers(self, workers, error, message):
    with self.assertRaisesWithLiteralMatch(
      error,
      "`workers` must be a list of different addresses 'host:port', " + message,
    ):
      simulation.set_remote_context(workers)

  @parameterized.named_parameters(
    ('no_port', 'host'),
    ('empty_port', 'host:'),
    ('empty_host', ':8000'),
    ('url', 'http://host:8000'),
    ('port_0', 'host:0'),
    ('port_too_large', 'host:65536'),
    ('signed_port', 'host:+80'),
    ('bare_ipv6', '::1:8000'),
    ('space', 'host: 8000'),
    ('newline', 'host:8000\n'),
    ('number', 8000),
  )
  def test_rejects_address(self, address):
    with self.assertRaisesWithLiteralMatch(
      ValueError,
      "`workers` must be a list of different addresses 'host:port' with a "
      f'port in 1..65535, found {address!r} ({type(address).__name__}).',
    ):
      simulation.set_remote_context(['host:8000', address])

  @parameterized.named_parameters(
    ('bool', True, TypeError, 'found True (bool).'),
    ('zero', 0, ValueError, 'found 0 (int).'),
  )
  def test_rejects_max_clients_per_call(self, value, error, message):
    with self.assertRaisesWithLiteralMatch(
      error, f'`max_clients_per_call` must be an int of at least 1, {message}'
    ):
      simulation.set_remote_context(['host:8000'], max_clients_per_call=value)

  @parameterized.named_parameters(
    ('bool', True, TypeError, 'found True (bool).'),
    ('text', '1', TypeError, "found '1' (str)."),
    ('zero', 0, ValueError, 'found 0 (int).'),
    ('nan', float('nan'), ValueError, 'found nan (float).'),
    ('infinite', float('inf'), ValueError, 'found inf (float).'),
  )
  def test_rejects_timeout(self, timeout, error, message):
    with self.assertRaisesWithLiteralMatch(
      error,
      f'`timeout_seconds` must be a finite number above 0, {message}',
    ):
      simulation.set_remote_context(['host:8000'], timeout_seconds=timeout)


if __name__ == '__main__':
  absltest.main()

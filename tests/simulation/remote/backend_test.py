# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the context over several workers, on two loopback addresses."""

import asyncio
import collections
from concurrent import futures
import os
import subprocess
import threading
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import portpicker
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.simulation import processes
import tff_autotune_secagg
from tff_autotune_secagg import simulation
from tff_autotune_secagg.simulation import contexts
from tff_autotune_secagg.simulation.remote import worker_context

_HOSTS = ('127.0.0.1', '127.0.0.2')
_NUM_FEATURES = 4
# Of a call that waits for a worker that is gone. Long enough for a slow
# machine to answer where an answer is due.
_TIMEOUT_SECONDS = 5.0


class _Worker:
  """A worker process on one loopback address."""

  def __init__(self, host: str):
    self._port = portpicker.pick_unused_port()
    self.address = f'{host}:{self._port}'

  def start(self) -> None:
    """Without Python in front, which takes long to start."""
    self.process = subprocess.Popen(
      simulation.worker_command(self._port),
      stdin=subprocess.DEVNULL,
      stdout=subprocess.DEVNULL,
      stderr=subprocess.DEVNULL,
    )

  def stop(self) -> None:
    self.process.kill()
    self.process.wait()


_workers = [_Worker(host) for host in _HOSTS]


def setUpModule():
  for worker in _workers:
    worker.start()


def tearDownModule():
  for worker in _workers:
    worker.stop()
  # Test files that come later in the same Python may count on a context.
  simulation.set_local_context()


def _set_context(timeout_seconds: float = 60.0, **options) -> None:
  simulation.set_remote_context(
    [worker.address for worker in _workers],
    timeout_seconds=timeout_seconds,
    **options,
  )


@tff.tensorflow.computation(np.int32)
def _read_pid(value):
  """The process that computes this, whatever `value` is."""
  stat = tf.io.read_file('/proc/self/stat')
  pid = tf.strings.to_number(tf.strings.split(stat, ' ')[0], tf.int32)
  return pid + 0 * value


@tff.federated_computation(tff.types.FederatedType(np.int32, tff.CLIENTS))
def _read_client_pids(values):
  return tff.federated_map(_read_pid, values)


@tff.tensorflow.computation(np.int32, np.int32)
def _add_for_hours(a, b):
  hours = tf.while_loop(lambda i: i < 10**12, lambda i: [i + 1], [np.int64(0)])[
    0
  ]
  return a + b + tf.cast(hours, tf.int32)


@tff.federated_computation(tff.types.FederatedType(np.int32, tff.CLIENTS))
def _merge_for_hours(values):
  add = tff.tensorflow.computation(lambda a, b: a + b, [np.int32, np.int32])
  report = tff.tensorflow.computation(lambda total: total, np.int32)
  return tff.federated_aggregate(
    values, np.int32(0), add, _add_for_hours, report
  )


def _client_pids(num_clients: int) -> list:
  return [int(pid) for pid in _read_client_pids([0] * num_clients)]


def _build_fed_avg() -> tff.learning.templates.LearningProcess:
  def model_fn():
    return tff.learning.models.from_keras_model(
      tf.keras.Sequential(
        [
          tf.keras.layers.InputLayer((_NUM_FEATURES,)),
          tf.keras.layers.Dense(1, kernel_initializer='zeros'),
        ]
      ),
      loss=tf.keras.losses.MeanSquaredError(),
      input_spec=(
        tf.TensorSpec([None, _NUM_FEATURES]),
        tf.TensorSpec([None, 1]),
      ),
    )

  return tff.learning.algorithms.build_weighted_fed_avg(
    model_fn,
    client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1),
    # All that may be around the sum, so that nothing is deeper.
    model_aggregator=tff.learning.add_debug_measurements(
      tff_autotune_secagg.autotuned_secure_aggregator(
        zeroing=True,
        clipping=True,
        predict_sum=True,
        rounding=tff_autotune_secagg.Rounding.DITHER,
        seed=7,
      )
    ),
  )


def _client_data(num_clients: int) -> list:
  rng = np.random.default_rng(20)
  datasets = []
  for _ in range(num_clients):
    features = rng.normal(size=[6, _NUM_FEATURES]).astype(np.float32)
    labels = features.sum(axis=1, keepdims=True)
    datasets.append(
      tf.data.Dataset.from_tensor_slices((features, labels)).batch(3)
    )
  return datasets


def _flat_bytes(structure) -> list:
  return [np.asarray(leaf).tobytes() for leaf in tf.nest.flatten(structure)]


@pytest.mark.slow
class TwoWorkersTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('at_once', None), ('two_at_a_time', 2), ('one_at_a_time', 1)
  )
  def test_secure_modular_sum_is_exact_for(self, max_clients_per_call):
    _set_context(max_clients_per_call=max_clients_per_call)
    process = tff.aggregators.SecureModularSumFactory(16).create(
      tff.types.TensorType(np.int32, [3])
    )
    state = process.initialize()
    for num_clients in (1, 3, 7):
      values = [np.array([i, 5, 15], np.int32) for i in range(num_clients)]
      output = process.next(state, values)
      self.assertIsInstance(output, tff.templates.MeasuredProcessOutput)
      state = output.state
      np.testing.assert_array_equal(output.result, sum(values) % 16)

  def test_clients_are_split_evenly_in_order(self):
    _set_context()
    pids = _client_pids(6)
    self.assertEqual(pids, [_workers[0].process.pid] * 3 + pids[3:])
    self.assertEqual(pids[3:], [_workers[1].process.pid] * 3)

  def test_federated_averaging_with_dither_equals_that_on_one_machine(self):
    outputs, process = [], _build_fed_avg()
    for set_context in (_set_context, simulation.set_local_context):
      set_context()
      state = process.initialize()
      for _ in range(2):
        output = process.next(state, _client_data(5))
        state = output.state
      weights = process.get_model_weights(state)
      self.assertGreater(np.abs(weights.trainable[0]).max(), 0.01)
      outputs.append(output)
    # Containers included: `LearningProcessOutput` and not a dictionary.
    tf.nest.assert_same_structure(*outputs)
    self.assertIsInstance(
      outputs[0], tff.learning.templates.LearningProcessOutput
    )
    # Model, tuner and seeds; a checkpoint holds nothing else.
    self.assertEqual(*(_flat_bytes(output.state) for output in outputs))
    # The training loss is a sum of floats, whose order differs between workers.
    for two, one in zip(*(tf.nest.flatten(out.metrics) for out in outputs)):
      np.testing.assert_allclose(two, one, rtol=1e-5)

  def test_stochastic_rounding_is_independent_between_workers(self):
    num_clients, dim, bin_size = 4, 2**12, 0.5
    _set_context()
    process = tff_autotune_secagg.QuantizeModFactory(
      tff_autotune_secagg.ExactModularSumFactory(modulus=2**10),
      tuner=tff_autotune_secagg.FixedBinSize(modulus=2**10, bin_size=bin_size),
    ).create(tff.types.TensorType(np.float32, [dim]))
    state = process.initialize()
    # Evenly spread within the bins, and the same at all clients, which is where
    # shared draws would show.
    value = np.linspace(-8, 8, dim, endpoint=False, dtype=np.float32)
    output = process.next(state, [value] * num_clients)
    error = output.result - num_clients * value.astype(np.float64)

    variance = num_clients * bin_size**2 / 6
    # Of the mean square of `dim` errors that are about normal; rounding errors
    # have lighter tails, which makes it an upper bound.
    standard_error = variance * np.sqrt(2 / dim)
    self.assertLess(abs(np.mean(error**2) - variance), 5 * standard_error)
    # Control: worker 2 repeating the draws of worker 1 doubles each error of a
    # half as large sum, and with it the variance.
    self.assertGreater(2 * variance - variance, 10 * standard_error)

  def test_small_calls_take_turns_and_keep_the_order_of_clients(self):
    _set_context(max_clients_per_call=2)
    first, second = (worker.process.pid for worker in _workers)
    # Seven clients in four calls.
    self.assertEqual(
      _client_pids(7), [first, second, second, first, first, second, second]
    )

  def test_closing_ends_who_waits(self):
    """Also for what is not in a gRPC call, such as a pause before a retry."""

    class Context(worker_context.WorkerContext):
      async def _invoke_in_turn(self, comp, arg):
        await asyncio.gather(asyncio.sleep(600), asyncio.sleep(600))

    context = Context(contexts.Executors(lambda: None), None)
    waiting = [context.start(None, None) for _ in range(2)]
    context.close()
    for future in waiting:
      with self.assertRaises(futures.CancelledError):
        future.result(timeout=30)
    with self.assertRaisesRegex(
      RuntimeError, 'connections must be open, found'
    ):
      context.start(None, None)

  def test_a_closed_context_says_so(self):
    _set_context()
    former_context = tff.framework.get_context_stack().current
    self.assertLen(_client_pids(2), 2)
    simulation.close()
    tff.framework.set_default_context(former_context)
    with self.assertRaisesRegex(
      RuntimeError, '^The context.s connections must be open, found them closed'
    ):
      _client_pids(2)

  def test_closing_ends_a_computation_in_words(self):
    """Here while it adds up, in the longest of its calls."""
    _set_context()
    context = tff.framework.get_context_stack().current
    raised = []

    def compute():
      tff.framework.set_default_context(context)
      try:
        _merge_for_hours([1, 2])
      except Exception as error:
        raised.append(error)

    pid = _workers[0].process.pid
    before = processes.cpu_seconds(pid)
    thread = threading.Thread(target=compute)
    thread.start()
    self.assertTrue(
      processes.wait_for(lambda: processes.cpu_seconds(pid) > before + 0.5)
    )
    simulation.close()
    thread.join()
    self.assertIsInstance(raised[0], RuntimeError)
    self.assertStartsWith(
      str(raised[0]), "The context's connections must be open, found them clo"
    )
    for worker in _workers:  # They would go on.
      worker.stop()
      worker.start()

  def test_workers_of_this_machine_are_found_whatever_the_proxy(self):
    with mock.patch.dict(os.environ, http_proxy='http://127.0.0.1:9'):
      _set_context()
      self.assertLen(_client_pids(2), 2)

  def test_a_proxy_is_named_where_a_worker_does_not_answer(self):
    with mock.patch.dict(os.environ, http_proxy='http://127.0.0.1:9'):
      with self.assertRaisesRegex(
        ConnectionError,
        r'--port=8000`\. The environment variable `http_proxy` has gRPC look',
      ):
        simulation.set_remote_context(['192.0.2.1:8000'], timeout_seconds=0.3)

  def test_computation_without_clients_runs(self):
    _set_context()
    add_one = tff.tensorflow.computation(lambda x: x + 1, np.int32)
    self.assertEqual(add_one(np.int32(3)), 4)

  def test_sum_that_depends_on_a_sum_is_refused(self):
    _set_context()

    @tff.federated_computation(tff.types.FederatedType(np.int32, tff.CLIENTS))
    def sum_of_sums(values):
      total = tff.federated_sum(values)
      return tff.federated_sum(tff.federated_broadcast(total))

    with self.assertRaisesRegex(ValueError, 'aggregat'):
      sum_of_sums([1, 2])


@pytest.mark.slow
class LostWorkerTest(absltest.TestCase):
  def tearDown(self):
    for worker in _workers:
      if worker.process.poll() is not None:
        worker.start()
    super().tearDown()

  def test_other_worker_takes_the_clients_until_it_is_back(self):
    _set_context()  # Waits for both to be up.
    _set_context(_TIMEOUT_SECONDS)
    kept, lost = _workers
    self.assertEqual(
      collections.Counter(_client_pids(4)),
      {kept.process.pid: 2, lost.process.pid: 2},
    )
    lost.stop()
    with self.assertLogs(level='WARNING') as logs:
      self.assertEqual(_client_pids(4), [kept.process.pid] * 4)
    self.assertIn(
      f'Worker {lost.address} does not answer; its clients go to the others.',
      logs.output[-1],
    )
    self.assertEqual(_client_pids(4), [kept.process.pid] * 4)

    lost.start()
    pids = [kept.process.pid] * 2 + [lost.process.pid] * 2
    self.assertTrue(processes.wait_for(lambda: _client_pids(4) == pids))

  def test_losing_all_workers_is_an_error(self):
    _set_context()
    _set_context(_TIMEOUT_SECONDS)
    self.assertLen(_client_pids(2), 2)
    for worker in _workers:
      worker.stop()
    addresses = ', '.join(worker.address for worker in _workers)
    with self.assertRaisesWithLiteralMatch(
      ConnectionError,
      f'At least one worker must answer, found none of {addresses}.',
    ):
      _client_pids(2)

  def test_unreachable_worker_is_named_and_the_former_context_stays(self):
    simulation.set_local_context()
    former_context = tff.framework.get_context_stack().current
    address = f'127.0.0.3:{portpicker.pick_unused_port()}'
    with self.assertRaisesWithLiteralMatch(
      ConnectionError,
      '`workers` must all answer within 0.5 s, found no answer from '
      f"'{address}'. Start it there with `python -m "
      f'tff_autotune_secagg.worker --port={address.rpartition(":")[2]}`.',
    ):
      simulation.set_remote_context([address], timeout_seconds=0.5)
    self.assertIs(tff.framework.get_context_stack().current, former_context)
    self.assertLen(simulation.worker_pids(), 1)


if __name__ == '__main__':
  absltest.main()

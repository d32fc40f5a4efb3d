# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of computations in other threads and in forked processes."""

from concurrent import futures
import threading

from absl.testing import absltest
import numpy as np
import tensorflow_federated as tff

from tests import factory_conformance
from tests import fresh_python

setUpModule = factory_conformance.set_up_context


# Computes, forks, and computes again. The copy prints what the functions raise.
_FORKS = """
import os, signal
import numpy as np
import tensorflow_federated as tff
from tff_autotune_secagg import simulation

simulation.set_local_context()
process = tff.aggregators.SecureModularSumFactory(16).create(
  tff.TensorType(np.int32)
)
state = process.initialize()

def modular_sum():
  return int(process.next(state, [np.int32(9), np.int32(9)]).result)

assert modular_sum() == 2
pid = os.fork()
if not pid:
  signal.alarm(60)  # Ends a copy that hangs, as it did.
  for function in (modular_sum, simulation.set_local_context):
    try:
      print('computed', function())
    except RuntimeError as error:
      print(error, flush=True)
  os._exit(0)  # Nothing of what Python would do at its end.
assert os.waitpid(pid, 0) == (pid, 0)
print(os.getpid(), pid)
# The copy has left the worker of this process alone.
print('computed', modular_sum())
"""


class BordersTest(absltest.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls._process = tff.aggregators.SecureModularSumFactory(16).create(
      tff.TensorType(np.int32)
    )
    cls._state = cls._process.initialize()

  def _sum(self):
    values = [np.int32(9), np.int32(9)]
    return int(self._process.next(self._state, values).result)

  def test_a_thread_computes_in_the_context_of_another_at_the_same_time(self):
    context = tff.framework.get_context_stack().current
    barrier = threading.Barrier(3)

    def compute():
      tff.framework.set_default_context(context)
      barrier.wait()
      return self._sum()

    with futures.ThreadPoolExecutor(max_workers=2) as executor:
      running = [executor.submit(compute) for _ in range(2)]
      barrier.wait()
      self.assertEqual(self._sum(), 2)
      self.assertEqual([future.result() for future in running], [2, 2])

  def test_a_forked_process_is_refused(self):
    # In a Python of its own: what gRPC does around a fork has killed pytest.
    output = fresh_python.run('-c', _FORKS, GRPC_ENABLE_FORK_SUPPORT='0')
    self.assertEqual(output.status, 0, output.stderr)
    *refusals, pids, computed = output.stdout.splitlines()
    pid, forked_pid = pids.split()
    refusal = (
      'A computation must run in the process that set its context, found the'
      f' forked process {forked_pid} of process {pid}. Start processes by'
      " `multiprocessing.get_context('spawn')` and call"
      ' `tff_autotune_secagg.simulation.set_local_context()` in each of them.'
    )
    self.assertEqual(refusals, [refusal, refusal])
    self.assertEqual(computed, 'computed 2')


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of computations in other threads and in forked processes."""

from concurrent import futures
import os
import signal
import threading

from absl.testing import absltest
import numpy as np
import tensorflow_federated as tff

from tests import factory_conformance
from tff_autotune_secagg import simulation

setUpModule = factory_conformance.set_up_context


def _errors_in_fork(*functions) -> list:
  """What functions raise in a forked copy of this process."""
  receiver, sender = os.pipe()
  pid = os.fork()
  if not pid:
    signal.alarm(60)  # Ends a copy that hangs, as it did.
    try:
      for function in functions:
        try:
          function()
          text = 'nothing'
        except RuntimeError as error:
          text = str(error)
        os.write(sender, f'{text}\n'.encode())
    finally:
      os._exit(0)  # Nothing of what pytest would do at the end.
  os.close(sender)
  with os.fdopen(receiver) as lines:
    found = lines.read().splitlines()
  os.waitpid(pid, 0)
  sentence = (
    'A computation must run in the process that set its context, found the'
    f' forked process {pid} of process {os.getpid()}. Start processes by'
    " `multiprocessing.get_context('spawn')` and call"
    ' `tff_autotune_secagg.simulation.set_local_context()` in each of them.'
  )
  return [line == sentence or line for line in found]


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
    self.assertEqual(self._sum(), 2)
    self.assertEqual(
      _errors_in_fork(self._sum, simulation.set_local_context), [True, True]
    )
    # The copy has left the worker of this process alone.
    self.assertEqual(self._sum(), 2)


if __name__ == '__main__':
  absltest.main()

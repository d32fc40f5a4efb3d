# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of running programs; a whole one is in `tests/project/`."""

import asyncio
import os
import signal
import threading

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow_federated as tff

from tests import factory_conformance
from tff_autotune_secagg import programs

setUpModule = factory_conformance.set_up_context


class RunProgramTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self._process = tff.aggregators.SecureModularSumFactory(16).create(
      tff.TensorType(np.int32)
    )

  async def _sum(self):
    state = await tff.program.materialize_value(self._process.initialize())
    output = self._process.next(state, [np.int32(9), np.int32(9)])
    result = await tff.program.materialize_value(output.result)
    return int(result)

  def test_computes_secure_sums(self):
    before = tff.framework.get_context_stack().current
    self.assertEqual(programs.run_program(self._sum()), 2)
    self.assertIs(tff.framework.get_context_stack().current, before)

  def test_runs_in_a_thread_that_has_the_context(self):
    context = tff.framework.get_context_stack().current
    found = []

    def run():
      tff.framework.set_default_context(context)
      found.append(programs.run_program(self._sum()))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    self.assertEqual(found, [2])

  def test_interrupt_lets_other_tasks_finish(self):
    done = []

    async def write():
      await asyncio.sleep(0.2)
      done.append('written')

    async def program():
      task = asyncio.ensure_future(write())
      os.kill(os.getpid(), signal.SIGINT)
      await asyncio.sleep(60)
      await task

    handler = signal.getsignal(signal.SIGINT)
    with self.assertRaises(KeyboardInterrupt):
      programs.run_program(program())
    self.assertEqual(done, ['written'])
    self.assertEqual(signal.getsignal(signal.SIGINT), handler)

  @parameterized.parameters(60, 0)
  def test_what_a_task_raised_ends_the_program(self, seconds_left):
    """As `train_model` has it: raised in a callback, which asyncio logs."""
    done = []

    async def fail():
      raise OSError('full')

    async def write():
      await asyncio.sleep(0.2)
      done.append('written')

    async def program():
      tasks = [asyncio.ensure_future(t()) for t in (fail, write)]
      tasks[0].add_done_callback(lambda task: task.result())
      await asyncio.wait(tasks)
      await asyncio.sleep(seconds_left)

    with self.assertRaisesRegex(OSError, '^full$'):
      programs.run_program(program())
    self.assertEqual(done, ['written'])

  def test_an_error_of_the_program_lets_other_tasks_finish(self):
    done = []

    async def write():
      await asyncio.sleep(0.2)
      done.append('written')

    async def program():
      asyncio.ensure_future(write())
      raise ValueError('x')

    with self.assertRaisesRegex(ValueError, '^x$'):
      programs.run_program(program())
    self.assertEqual(done, ['written'])

  def test_errors_and_cancellation_are_the_programs_own(self):
    async def fail(error):
      raise error

    for error in (ValueError('x'), asyncio.CancelledError()):
      with self.assertRaises(type(error)):
        programs.run_program(fail(error))

  def test_rejects_what_is_no_program(self):
    with self.assertRaisesRegex(TypeError, '^`program` must be a coroutine, f'):
      programs.run_program(self._sum)


if __name__ == '__main__':
  absltest.main()

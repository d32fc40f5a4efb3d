# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of running programs; a whole one is in `tests/project/`."""

import asyncio
import contextlib
import gc
import logging
import os
import signal
import threading
from unittest import mock
import warnings

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

  def test_runs_where_an_event_loop_runs_already(self):
    """As in each cell of a notebook."""

    async def cell():
      outer = asyncio.get_running_loop()
      found = programs.run_program(self._sum())
      self.assertIs(asyncio.get_running_loop(), outer)
      await asyncio.sleep(0)
      return found

    self.assertEqual(asyncio.run(cell()), 2)

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

  def test_a_thread_without_a_context_is_told_so(self):
    raised = []

    def run():
      program = self._sum()
      try:
        programs.run_program(program)
      except TypeError as error:
        raised.append(str(error))
      program.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    self.assertEqual(
      raised,
      [
        '`tff.framework.get_context_stack().current` must be a'
        ' `tff.framework.SyncContext`, as `set_local_context` sets one for the'
        ' thread that calls it, found None (NoneType).'
      ],
    )

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

    with self.assertRaises(KeyboardInterrupt):
      programs.run_program(program())
    self.assertEqual(done, ['written'])

  def test_what_handled_interrupts_before_does_afterwards(self):
    def handler(number, frame):
      del number, frame

    async def program():
      self.assertIsNot(signal.getsignal(signal.SIGINT), handler)

    async def outer():
      loop = asyncio.get_running_loop()
      loop.add_signal_handler(signal.SIGINT, done.set)
      programs.run_program(program())
      os.kill(os.getpid(), signal.SIGINT)
      await asyncio.wait_for(done.wait(), timeout=60)
      loop.remove_signal_handler(signal.SIGINT)

    before = signal.signal(signal.SIGINT, handler)
    self.addCleanup(signal.signal, signal.SIGINT, before)
    programs.run_program(program())
    self.assertIs(signal.getsignal(signal.SIGINT), handler)
    done = asyncio.Event()
    asyncio.run(outer())

  @parameterized.product(
    error=[OSError('x'), SystemExit('x'), KeyboardInterrupt('x')],
    seconds_left=[60, 0],
  )
  def test_what_a_task_raised_ends_the_program(self, error, seconds_left):
    """As `train_model` has it: raised in a callback, which asyncio logs."""
    done = []

    async def fail():
      raise error

    async def write():
      await asyncio.sleep(0.2)
      done.append('written')

    async def program():
      tasks = [asyncio.ensure_future(t()) for t in (fail, write)]
      tasks[0].add_done_callback(lambda task: task.result())
      await asyncio.wait(tasks)
      await asyncio.sleep(seconds_left)

    with self._nothing_logged(), self.assertRaisesRegex(type(error), '^x$'):
      programs.run_program(program())
    self.assertEqual(done, ['written'])

  @parameterized.parameters(ValueError('x'), SystemExit('x'))
  def test_an_error_of_the_program_lets_other_tasks_finish(self, error):
    done = []

    async def write():
      await asyncio.sleep(0.2)
      done.append('written')

    async def program():
      asyncio.ensure_future(write())
      raise error

    with self._nothing_logged(), self.assertRaisesRegex(type(error), '^x$'):
      programs.run_program(program())
    self.assertEqual(done, ['written'])

  @contextlib.contextmanager
  def _nothing_logged(self):
    with mock.patch.object(logging.getLogger('asyncio'), 'error') as log:
      yield
      log.assert_not_called()

  def test_an_error_is_not_logged_besides(self):
    """TFF makes a task for each leaf of a result, and asks one of them."""

    async def program():
      error = ValueError('x')
      tasks = [asyncio.ensure_future(fail(error)) for _ in range(3)]
      await asyncio.wait(tasks)
      await tasks[0]

    async def fail(error):
      raise error

    with self._nothing_logged(), self.assertRaisesRegex(ValueError, '^x$'):
      programs.run_program(program())

  def test_an_error_is_not_logged_just_after_the_program_has_raised_it(self):
    async def program():
      error = ValueError('x')
      loop = asyncio.get_running_loop()
      # As a task does that is freed then; this is called before the waiter is.
      failure = dict(message='', exception=error, future=loop.create_future())
      loop.call_soon(loop.call_exception_handler, failure)
      raise error

    with self._nothing_logged(), self.assertRaisesRegex(ValueError, '^x$'):
      programs.run_program(program())

  def test_an_error_that_nobody_asked_for_is_logged(self):
    async def program():
      await asyncio.wait([asyncio.ensure_future(fail())])

    async def fail():
      raise ValueError('x')

    with self.assertLogs('asyncio', 'ERROR') as logged:
      programs.run_program(program())
    self.assertLen(logged.output, 1)

  def test_an_exit_in_the_thread_that_computes_comes_out(self):
    class Context(tff.framework.SyncContext):
      def invoke(self, comp, arg):
        raise SystemExit('x')

    with tff.framework.get_context_stack().install(Context()):
      with self.assertRaisesRegex(SystemExit, '^x$'):
        programs.run_program(self._sum())

  @parameterized.parameters(SystemExit, KeyboardInterrupt)
  def test_a_task_that_never_began_is_not_warned_of(self, error):
    """As of `materialize_value`, where Ctrl-C comes just after its call."""

    async def fail():
      raise error

    async def never_begins():
      self.fail()

    async def program():
      await asyncio.gather(fail(), never_begins())

    with warnings.catch_warnings(record=True) as caught:
      warnings.simplefilter('always')
      with self.assertRaises(error):
        programs.run_program(program())
      gc.collect()
    self.assertEmpty([str(warning.message) for warning in caught])

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

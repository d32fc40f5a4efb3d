# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of .ci/run on projects whose `make test` does one thing."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from absl.testing import absltest
from absl.testing import parameterized

from tests import child_signals

_PROJECT = pathlib.Path(__file__).parents[2]
_TOOL = 'tools/run_and_clean_up.py'
_FILES = ('.ci/run', 'tools/find_python.sh', _TOOL)
_DEADLINE_SECONDS = 60.0

# Leaves a child behind that nobody waits for, as TFF leaves its worker, and
# that holds the output open.
_LEAVE_A_CHILD = 'setsid sleep 1000 & echo $$! > child_pid'
_LEAVE_A_STUBBORN_CHILD = (
  "setsid sh -c 'trap : TERM; while :; do sleep 1; done' & echo $$! > child_pid"
)
# As any process is for some milliseconds while it is being started.
_LEAVE_A_CHILD_WITHOUT_ENVIRONMENT = (
  'env -i setsid sleep 1000 & echo $$! > child_pid'
)


def _is_running(pid: int) -> bool:
  """Whether process `pid` lives; one that only waits to be reaped does not."""
  try:
    stat = pathlib.Path(f'/proc/{pid}/stat').read_text()
  except (FileNotFoundError, ProcessLookupError):
    return False
  return stat.rpartition(')')[2].split()[0] != 'Z'


def _wait_for(condition) -> bool:
  deadline = time.monotonic() + _DEADLINE_SECONDS
  while not condition() and time.monotonic() < deadline:
    time.sleep(0.05)
  return condition()


class CiRunTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self._folder = pathlib.Path(self.create_tempdir().full_path)
    for name in _FILES:
      (self._folder / name).parent.mkdir(exist_ok=True)
      shutil.copy(_PROJECT / name, self._folder / name)

  def _start(self, *recipe: str) -> subprocess.Popen:
    lines = ''.join(f'\t@{line}\n' for line in recipe)
    (self._folder / 'Makefile').write_text(f'test:\n{lines}')
    return child_signals.popen(
      ['bash', '.ci/run'],
      cwd=self._folder,
      stdin=subprocess.DEVNULL,
      stdout=subprocess.PIPE,
      stderr=subprocess.STDOUT,
      text=True,
      env={**os.environ, 'MAKEFLAGS': ''},
    )

  def _child_pid(self) -> int:
    path = self._folder / 'child_pid'
    self.assertTrue(_wait_for(lambda: path.exists() and path.read_text()))
    return int(path.read_text())

  @parameterized.named_parameters(
    ('passing', 'true', 0), ('failing', 'exit 5', 2)
  )
  def test_prints_the_output_and_keeps_the_status(self, command, status):
    process = self._start('echo 3 passed in 1.00s; echo oh >&2', command)
    output, _ = process.communicate(timeout=_DEADLINE_SECONDS)
    self.assertEqual(process.returncode, status)
    self.assertIn('3 passed in 1.00s\noh\n', output)

  @parameterized.named_parameters(
    ('passing', _LEAVE_A_CHILD, 'true', 0),
    ('failing', _LEAVE_A_CHILD, 'false', 2),
    ('killed', _LEAVE_A_CHILD, 'kill -KILL $$$$', 2),
    ('stubborn', _LEAVE_A_STUBBORN_CHILD, 'true', 0),
    ('anonymous', _LEAVE_A_CHILD_WITHOUT_ENVIRONMENT, 'true', 0),
  )
  def test_leaves_no_process_when(self, leave_a_child, command, status):
    process = self._start(leave_a_child, command)
    output, _ = process.communicate(timeout=_DEADLINE_SECONDS)
    self.assertEqual(process.returncode, status)
    self.assertFalse(_is_running(self._child_pid()))
    self.assertIn('Ending what was left behind: ', output)

  @parameterized.named_parameters(
    ('interrupted', signal.SIGINT, 130), ('terminated', signal.SIGTERM, 143)
  )
  def test_leaves_no_process_when_itself_is(self, signal_number, status):
    process = self._start(_LEAVE_A_CHILD, 'echo begun; sleep 1000')
    child_pid = self._child_pid()
    process.send_signal(signal_number)
    output, _ = process.communicate(timeout=_DEADLINE_SECONDS)
    self.assertEqual(process.returncode, status)
    self.assertFalse(_is_running(child_pid))
    self.assertIn('begun', output)

  def test_goes_on_after_a_hangup_under_nohup(self):
    script = f'trap "" HUP; exec {sys.executable} {_PROJECT / _TOOL} "$@"'
    output = subprocess.check_output(
      ['sh', '-c', script, 'sh', '--time_limit_seconds=60', 'sh', '-c']
      + ['kill -HUP $PPID; sleep 0.5; echo went on'],
      stdin=subprocess.DEVNULL,
      text=True,
      timeout=_DEADLINE_SECONDS,
    )
    self.assertIn('went on', output)

  def _run_tool(self, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
      [sys.executable, str(_PROJECT / _TOOL), *arguments],
      cwd=self._folder,
      stdin=subprocess.DEVNULL,
      stdout=subprocess.PIPE,
      stderr=subprocess.STDOUT,
      text=True,
      timeout=_DEADLINE_SECONDS,
    )

  def test_ends_what_runs_over_the_time_limit(self):
    script = 'echo begun; sleep 1000 & echo $! > child_pid; wait'
    result = self._run_tool('--time_limit_seconds=1', 'sh', '-c', script)
    self.assertEqual(result.returncode, 124)
    self.assertFalse(_is_running(self._child_pid()))
    self.assertIn('begun', result.stdout)

  def test_a_signal_that_ends_the_command_is_its_status(self):
    result = self._run_tool('--time_limit_seconds=60', 'sh', '-c', 'kill $$')
    self.assertEqual(result.returncode, 128 + signal.SIGTERM)

  @parameterized.named_parameters(
    (
      'limit',
      ['--time_limit_seconds=0', 'true'],
      'must be at least 1, found 0',
    ),
    (
      'command',
      ['--time_limit_seconds=1'],
      'a command must follow, found none',
    ),
  )
  def test_refuses_without(self, arguments, message):
    result = self._run_tool(*arguments)
    self.assertEqual(result.returncode, 2)
    self.assertIn(message, result.stdout)

  def test_ends_only_its_own_processes(self):
    bystander = subprocess.Popen(['sleep', '1000'])
    try:
      process = self._start(_LEAVE_A_CHILD)
      process.communicate(timeout=_DEADLINE_SECONDS)
      self.assertIsNone(bystander.poll())
    finally:
      bystander.kill()
      bystander.wait()


if __name__ == '__main__':
  absltest.main()

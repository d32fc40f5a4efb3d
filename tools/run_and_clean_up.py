# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs a command, prints its output at the end, and leaves no process behind.

  python tools/run_and_clean_up.py --time_limit_seconds=4500 make test

The command writes into a file and not into a pipe, since a pipe stays open as
long as any process that inherited it, such as a TFF worker that outlived its
parent.

This process is the reaper of all its descendants (prctl(2),
PR_SET_CHILD_SUBREAPER): one whose parent has ended becomes a child of this
process, whatever session, process group or environment it has. To have no child
is then to have left nothing behind. A search through /proc could not tell that:
a process that is just being started has no environment for some milliseconds.

The exit status is the command's; 128 + n if a signal n ended the command or
this process; 124 if the limit was reached; 1 if a process could not be ended.
Needs nothing but the standard library, as it runs before anything is installed.
(psutil could list the children, but it makes no reaper: it loses those whose
parent has ended, which are the ones that matter here.)
"""

import argparse
import ctypes
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time

_PR_SET_CHILD_SUBREAPER = 36
_ENDING_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
_TIMED_OUT_STATUS = 124
_GRACE_SECONDS = 2.0  # To end in good order, before SIGKILL.
_GIVE_UP_SECONDS = 10.0
_POLL_SECONDS = 0.1


class _StoppedError(Exception):
  """A signal asked this process to end."""

  def __init__(self, status: int):
    super().__init__(status)
    self.status = status


def _ignore_signals() -> None:
  signal.alarm(0)
  for signal_number in _ENDING_SIGNALS:
    signal.signal(signal_number, signal.SIG_IGN)


def _stop(signal_number: int, frame) -> None:
  del frame  # Unused.
  _ignore_signals()
  if signal_number == signal.SIGALRM:
    raise _StoppedError(_TIMED_OUT_STATUS)
  raise _StoppedError(128 + signal_number)


def _become_reaper() -> None:
  libc = ctypes.CDLL(None, use_errno=True)
  if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
    raise OSError(
      ctypes.get_errno(), 'prctl(PR_SET_CHILD_SUBREAPER) must succeed'
    )


def _start(command: list[str], log_path: str) -> int:
  """Starts `command` in a process group of its own and returns its id."""
  write = os.O_WRONLY | os.O_TRUNC
  return os.posix_spawnp(
    command[0],
    command,
    os.environ,
    file_actions=[
      (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
      (os.POSIX_SPAWN_OPEN, 1, log_path, write, 0),
      (os.POSIX_SPAWN_DUP2, 1, 2),
    ],
    setpgroup=0,
    # A shell starts background jobs with these ignored, which would be
    # inherited; tests of Ctrl-C need them.
    setsigdef=[signal.SIGINT, signal.SIGQUIT],
  )


def _wait(command_pid: int) -> int:
  """Reaps whatever ends, until the command has, and returns its status."""
  while True:
    pid, wait_status = os.waitpid(-1, 0)
    if pid == command_pid:
      if os.WIFSIGNALED(wait_status):
        return 128 + os.WTERMSIG(wait_status)
      return os.WEXITSTATUS(wait_status)


def _children() -> list[int]:
  """Ids of the child processes, whether or not they have ended."""
  children = []
  for path in pathlib.Path('/proc').glob('[0-9]*/stat'):
    try:
      stat = path.read_text(errors='replace')
    except OSError:
      continue  # It has ended since, and was somebody else's child.
    _, parent_pid = stat.rpartition(')')[2].split()[:2]
    if int(parent_pid) == os.getpid():
      children.append(int(path.parent.name))
  return children


def _describe(pid: int) -> str:
  command = pathlib.Path(f'/proc/{pid}/cmdline').read_bytes()
  return command.replace(b'\0', b' ').decode(errors='replace')[:200].strip()


def _reap_ended() -> bool:
  """Reaps the children that have ended; whether any child is left."""
  try:
    while os.waitpid(-1, os.WNOHANG)[0]:
      pass
  except ChildProcessError:
    return False
  return True


def _end_descendants() -> bool:
  """Ends all descendants; whether that worked."""
  start_seconds = time.monotonic()
  announced = set()
  while _reap_ended():
    elapsed_seconds = time.monotonic() - start_seconds
    children = _children()
    if elapsed_seconds > _GIVE_UP_SECONDS:
      print('Could not end:', *children)
      return False
    # Their own children become ours, and are found the next time.
    for pid in children:
      if pid not in announced:
        print(f'Ending what was left behind: {pid} {_describe(pid)}')
        announced.add(pid)
      # Nobody but this process can reap a child, so that its id is still its
      # own even where it has ended.
      in_time = elapsed_seconds < _GRACE_SECONDS
      os.kill(pid, signal.SIGTERM if in_time else signal.SIGKILL)
    time.sleep(_POLL_SECONDS)
  return True


def _parse(arguments: list[str]) -> argparse.Namespace:
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument('--time_limit_seconds', type=int, required=True)
  parser.add_argument('command', nargs=argparse.REMAINDER)
  parsed = parser.parse_args(arguments)
  if parsed.time_limit_seconds < 1:
    parser.error(
      f'--time_limit_seconds must be at least 1, found '
      f'{parsed.time_limit_seconds}.'
    )
  if not parsed.command:
    parser.error('a command must follow, found none.')
  return parsed


def main(arguments: list[str]) -> int:
  parsed = _parse(arguments)
  command = ' '.join(parsed.command)
  print(f'Running {command}; its output follows when it has ended.', flush=True)
  for signal_number in (*_ENDING_SIGNALS, signal.SIGALRM):
    # nohup, and a shell for its background jobs, ignore some on purpose.
    if signal.getsignal(signal_number) != signal.SIG_IGN:
      signal.signal(signal_number, _stop)
  _become_reaper()
  with tempfile.NamedTemporaryFile() as log:
    try:
      signal.alarm(parsed.time_limit_seconds)
      status = _wait(_start(parsed.command, log.name))
      _ignore_signals()
    except _StoppedError as error:
      status = error.status
    if not _end_descendants():
      status = 1
    sys.stdout.flush()
    shutil.copyfileobj(log, sys.stdout.buffer)
  return status


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))

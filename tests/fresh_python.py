# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs code as a user does: in a Python of its own, and to files."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from typing import NamedTuple

_PROJECT = pathlib.Path(__file__).parents[1]
_TIMEOUT_SECONDS = 240

# Before a child's code. Python's garbage collector takes a fifth of the time
# of an import of TFF and of what a short program traces.
RARELY_COLLECTED = 'import gc; gc.set_threshold(1_000_000, 20, 20)\n'


class Output(NamedTuple):
  status: int
  stdout: str
  stderr: str


def run(*arguments: str, cwd=_PROJECT, **environment: str) -> Output:
  """Runs Python and returns how it ended and what it printed.

  Args:
    *arguments: Its command line, without the program. What follows `-c` runs
      behind `RARELY_COLLECTED`.
    cwd: Folder to run in; the project can be imported from any.
    **environment: Variables beside those of the test.
  """
  if arguments[0] == '-c':
    arguments = ('-c', RARELY_COLLECTED + arguments[1], *arguments[2:])
  with contextlib.ExitStack() as stack:
    # Not pipes: TFF's own worker holds them and may outlive Python.
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    paths = [pathlib.Path(folder, name) for name in ('stdout', 'stderr')]
    stdout, stderr = (stack.enter_context(open(path, 'w')) for path in paths)
    child = subprocess.Popen(
      [sys.executable, *arguments],
      cwd=cwd,
      env={**os.environ, 'PYTHONPATH': str(_PROJECT), **environment},
      stdin=subprocess.DEVNULL,
      stdout=stdout,
      stderr=stderr,
      start_new_session=True,
    )
    try:
      status = child.wait(timeout=_TIMEOUT_SECONDS)
    finally:
      # Its session: the child, if late, and TFF's own worker.
      with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
      child.wait()
    return Output(status, *(path.read_text('utf-8') for path in paths))

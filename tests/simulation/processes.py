# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What tests ask the kernel about processes, and how they wait for it."""

import os
import pathlib
import time

from tff_autotune_secagg.simulation import worker_process

DEADLINE_SECONDS = 120.0
_CLOCK_TICKS = os.sysconf('SC_CLK_TCK')


def is_running(pid: int) -> bool:
  """Whether process `pid` lives; one that only waits to be reaped does not."""
  return _stat_fields(pid)[0] != 'Z'


def _stat_fields(pid: int) -> list:
  """The fields of /proc/pid/stat from the process state on."""
  try:
    stat = pathlib.Path(f'/proc/{pid}/stat').read_text()
  except (FileNotFoundError, ProcessLookupError):
    return ['Z'] + ['0'] * 12
  return stat.rpartition(')')[2].split()


def cpu_seconds(pid: int) -> float:
  """Processor time that process `pid` has taken."""
  return sum(map(int, _stat_fields(pid)[11:13])) / _CLOCK_TICKS


def wait_for(condition) -> bool:
  """Waits until a function returns true; returns what it returns at last."""
  deadline = time.monotonic() + DEADLINE_SECONDS
  while not condition() and time.monotonic() < deadline:
    time.sleep(0.05)
  return condition()


def is_port_taken(port: int) -> bool:
  """Tells whether a worker would be refused the port."""
  try:
    worker_process.check_port(port)
  except OSError:
    return True
  return False

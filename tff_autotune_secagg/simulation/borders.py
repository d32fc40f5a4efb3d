# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Computations beyond the process of a context, refused in words.

Each context has a thread of its own, which a forked copy of the process lacks:
a computation there would wait for ever.
"""

from __future__ import annotations

import os


class ProcessBorder:
  """Remembers the process in which it was made."""

  def __init__(self):
    """Takes the calling process."""
    self._pid = os.getpid()

  @property
  def is_crossed(self) -> bool:
    """Whether the calling process is a forked copy."""
    return os.getpid() != self._pid

  def check(self) -> None:
    """Raises RuntimeError in a forked copy of the process."""
    if self.is_crossed:
      raise RuntimeError(
        'A computation must run in the process that set its context, found the'
        f' forked process {os.getpid()} of process {self._pid}. Start processes'
        " by `multiprocessing.get_context('spawn')` and call"
        ' `tff_autotune_secagg.simulation.set_local_context()` in each of them.'
      )

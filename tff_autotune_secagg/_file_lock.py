# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""A lock on a file that ends with the process that has it, however that ends.

The kernel lets go of such a lock when the last copy of its descriptor is
closed. A forked child has a copy, such as a worker of a data loader, and may
outlive a parent that was killed: it closes its copies.
"""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import fcntl
import os
import weakref

_files = weakref.WeakSet()


def _close_copies() -> None:
  for file in list(_files):
    file.close()


os.register_at_fork(after_in_child=_close_copies)


@contextlib.contextmanager
def held(path: str, *, wait: bool = False) -> Iterator[None]:
  """Holds the lock of a file, which is made where it is not there.

  Args:
    path: of the file, which stays empty.
    wait: whether to wait while another process holds the lock.

  Raises:
    BlockingIOError: another process holds it.
    OSError: the file cannot be made or locked; some file systems have no locks.
  """
  with open(path, 'ab') as file:
    _files.add(file)  # Before it is locked: other threads may fork.
    try:
      fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
      # `flock` does not know the path.
      raise OSError(error.errno, error.strerror, path) from error
    yield

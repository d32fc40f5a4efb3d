# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import errno
import fcntl
import os
import pathlib
import subprocess
import sys
from unittest import mock

from absl.testing import absltest

from tff_autotune_secagg import _file_lock

_PROJECT = pathlib.Path(__file__).parents[1]

# Locks, forks, and lives until its input ends; so does the child.
_HOLDER = """
import os, sys
from tff_autotune_secagg import _file_lock

with _file_lock.held(sys.argv[1]):
  if not os.fork():
    print('forked', flush=True)
  sys.stdin.read()
"""


class FileLockTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._path = os.path.join(self.create_tempdir().full_path, 'lock')

  def test_is_free_when_its_process_was_killed_and_a_fork_lives_on(self):
    with subprocess.Popen(
      [sys.executable, '-c', _HOLDER, self._path],
      cwd=_PROJECT,
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
    ) as holder:
      self.assertEqual(holder.stdout.readline(), b'forked\n')
      with self.assertRaises(BlockingIOError):
        with _file_lock.held(self._path):
          self.fail()
      holder.kill()
      holder.wait()
      with _file_lock.held(self._path):
        # Its output is open: the child is there.
        os.set_blocking(holder.stdout.fileno(), False)
        self.assertIsNone(holder.stdout.read())

  def test_is_free_after_the_block(self):
    for wait in (False, True):
      with _file_lock.held(self._path, wait=wait):
        with self.assertRaises(BlockingIOError):
          with _file_lock.held(self._path):
            self.fail()

  def test_a_file_system_without_locks_is_said_with_the_path(self):
    error = OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
    with mock.patch.object(fcntl, 'flock', side_effect=error):
      with self.assertRaisesRegex(OSError, "No locks available: '.*/lock'$"):
        with _file_lock.held(self._path):
          self.fail()


if __name__ == '__main__':
  absltest.main()

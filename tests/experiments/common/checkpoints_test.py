# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import asyncio
import os
import pathlib

from absl.testing import absltest
import numpy as np

from experiments.common import checkpoints
from experiments.common import command_line

_STATE = dict(a=np.float32(1.5))


class OpenFolderTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._folder = os.path.join(self.create_tempdir().full_path, 'states')
    manager = checkpoints.open_folder(self._folder)
    self.assertEqual(checkpoints.last_version(manager), 0)
    for version in (1, 2, 3):
      checkpoints.save(manager, _STATE, version)

  def _open(self, *broken):
    for version in broken:
      path = pathlib.Path(self._folder, f'program_state_{version}')
      (path / 'saved_model.pb').write_bytes(b'')
    return checkpoints.open_folder(self._folder)

  def test_the_newest_two_are_kept(self):
    manager = self._open()
    self.assertEqual(asyncio.run(manager.get_versions()), [2, 3])

  def test_a_broken_one_is_passed_over_and_written_again(self):
    manager = self._open(3)
    self.assertEqual(checkpoints.last_version(manager), 2)
    checkpoints.save(manager, _STATE, 3)
    self.assertEqual(checkpoints.last_version(self._open()), 3)

  def test_without_a_whole_one_the_run_ends(self):
    with self.assertRaisesRegex(
      command_line.UserError, r'none of the versions \[2, 3\] can be read'
    ):
      checkpoints.last_version(self._open(2, 3))

  def test_a_folder_that_cannot_be_read_from_is_refused(self):
    with self.assertRaisesRegex(
      command_line.UserError, '^`folder` must be a path without'
    ):
      checkpoints.open_folder(os.path.join(self._folder, 'run[lr=0.1]'))


class SaveTest(absltest.TestCase):
  def test_a_place_that_cannot_be_written_is_an_os_error(self):
    folder = os.path.join(self.create_tempdir().full_path, 'states')
    manager = checkpoints.open_folder(folder)
    os.rmdir(folder)
    with open(folder, 'w'):
      pass
    with self.assertRaisesRegex(
      OSError, '^The checkpoint of round 1 cannot be written: '
    ):
      checkpoints.save(manager, _STATE, 1)


if __name__ == '__main__':
  absltest.main()

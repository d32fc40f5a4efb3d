# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import asyncio
import contextlib
import io
import os
import pathlib

from absl.testing import absltest
import numpy as np

from experiments.common import checkpoints

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
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
      return checkpoints.open_folder(self._folder), said.getvalue()

  def test_the_newest_two_are_kept(self):
    manager, said = self._open()
    self.assertEqual(asyncio.run(manager.get_versions()), [2, 3])
    self.assertEmpty(said)

  def test_a_broken_one_is_set_aside_said_and_written_again(self):
    manager, said = self._open(3)
    self.assertEqual(checkpoints.last_version(manager), 2)
    self.assertRegex(
      said,
      r"^The checkpoint '.*program_state_3' cannot be read \(.*\) and was "
      r'renamed; the run goes on from round 2\.\n$',
    )
    checkpoints.save(manager, _STATE, 3)
    manager, said = self._open()
    self.assertEqual(checkpoints.last_version(manager), 3)
    self.assertEmpty(said)

  def test_without_a_whole_one_the_run_begins_anew(self):
    manager, said = self._open(2, 3)
    self.assertEqual(checkpoints.last_version(manager), 0)
    self.assertEndsWith(said, 'the run goes on from its start.\n')


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

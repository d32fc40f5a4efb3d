# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import asyncio
import os
import pathlib

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from tff_autotune_secagg.programs import checkpoints
from tff_autotune_secagg.programs import state_folder


def _state(number):
  return dict(a=np.float32(number), b=[np.int32(7)])


class StateFolderTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self._folder = os.path.join(self.create_tempdir().full_path, 'states')
    self._manager = state_folder.StateFolder(self._folder, num_kept=3)

  def _save(self, *versions):
    for version in versions:
      asyncio.run(self._manager.save(_state(version), version))

  def _break(self, *versions):
    for version in versions:
      path = pathlib.Path(self._folder, f'program_state_{version}')
      (path / 'saved_model.pb').write_bytes(b'')

  def _load(self, structure=None):
    structure = _state(0) if structure is None else structure
    return asyncio.run(self._manager.load_latest(structure))

  def _newest(self):
    return asyncio.run(self._manager.newest_version())

  def _names(self):
    return sorted(os.listdir(self._folder))

  def test_is_empty_at_first(self):
    self.assertEqual(self._load(), (None, 0))
    self.assertEqual(self._newest(), 0)

  def test_the_newest_are_kept_and_the_newest_is_loaded(self):
    self._save(1, 2, 3, 4)
    self.assertEqual(
      self._names(), ['program_state_2', 'program_state_3', 'program_state_4']
    )
    self.assertEqual(self._load(), (_state(4), 4))
    self.assertEqual(self._newest(), 4)

  def test_what_is_broken_is_passed_over_and_kept_beside_what_replaces_it(self):
    self._save(1, 2, 3)
    for number in (1, 2):
      self._break(2, 3)
      before = self._names()
      with self.assertLogs(level='WARNING') as logged:
        self.assertEqual(self._load(), (_state(1), 1))
      for version, line in zip((3, 2), logged.output):
        self.assertIn(
          f'The checkpoint of version {version} cannot be read and is passed'
          ' over: ',
          line,
        )
      self.assertLen(logged.output, 2)
      self.assertEqual(self._newest(), 1)
      self.assertEqual(self._names(), before)  # Loading changes nothing.
      self._save(2, 3)
      self.assertEqual(self._load(), (_state(3), 3))
      self.assertIn(f'program_state_3.unreadable_{number}', self._names())

  def test_broken_states_push_no_whole_one_out(self):
    """A run may save in other steps than the run before."""
    self._save(10, 20, 30)
    self._break(20, 30)
    self._save(12)
    self.assertEqual(self._load(), (_state(12), 12))
    self._break(12)
    with self.assertLogs(level='WARNING'):
      self.assertEqual(self._load(), (_state(10), 10))

  def test_without_a_whole_one_nothing_begins(self):
    self._save(1, 2)
    self._break(1, 2)
    before = self._names()
    message = (
      r'^One of the checkpoints must be whole, found that none of the versions'
      r' \[1, 2\] can be read \(.*\)\. They stay where they are; another folder'
      r' begins anew\.$'
    )
    with self.assertLogs(level='WARNING'):
      with self.assertRaisesRegex(ValueError, message):
        self._load()
    with self.assertRaisesRegex(ValueError, message):
      self._newest()
    self.assertEqual(self._names(), before)

  @parameterized.named_parameters(
    ('more', dict(_state(0), c=np.float32(0)), "lacks 'c'"),
    ('fewer', dict(a=np.float32(0)), "has besides 'b/0'"),
    (
      'deeper',
      dict(_state(0), b=[np.int32(0), np.int32(0)]),
      "lacks 'b/1'",
    ),
    ('other_containers', dict(_state(0), b=(np.int32(0),)), None),
  )
  def test_other_fields_are_named(self, structure, found):
    self._save(1, 2)
    found = f'found that it {found}' if found else 'found others'
    with self.assertRaisesWithLiteralMatch(
      checkpoints.OtherFieldsError,
      f'The checkpoint must have the fields of the process, {found}: another'
      ' model or aggregator, or another version of them, has written it.',
    ):
      self._load(structure)
    # It is whole, and so nothing is passed over.
    self.assertEqual(self._newest(), 2)

  @parameterized.parameters('run[lr=0.1]', 'a*', 'b?', 'back\\slash')
  def test_a_path_that_tensorflow_reads_as_a_pattern_is_refused(self, name):
    folder = os.path.join(self.create_tempdir().full_path, name)
    with self.assertRaises(ValueError) as caught:
      state_folder.StateFolder(folder, num_kept=2)
    self.assertStartsWith(
      str(caught.exception),
      '`folder` must be a path without `*`, `?`, `[` and backslashes, which'
      " TensorFlow reads as patterns, found '",
    )
    self.assertFalse(os.path.exists(folder))

  def test_a_path_that_is_not_of_this_machine_is_refused(self):
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(self.create_tempdir().full_path)
    with self.assertRaisesRegex(
      ValueError, r'^`folder` must be a path of this machine, .*gs://bucket'
    ):
      state_folder.StateFolder('gs://bucket/run', num_kept=2)
    for folder in ('~', '~/run'):
      with self.assertRaisesRegex(
        ValueError, r'^`folder` must be a path that begins with no `~`, '
      ):
        state_folder.StateFolder(folder, num_kept=2)
    for folder in ('', 'a\0b'):
      with self.assertRaisesRegex(
        ValueError, r"^`folder` must be a path, '\.' for the current folder, "
      ):
        state_folder.StateFolder(folder, num_kept=2)
    self.assertEmpty(os.listdir())

  def test_a_relative_path_is_settled_at_once(self):
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(self.create_tempdir().full_path)
    manager = state_folder.StateFolder('relative', num_kept=2)
    here = os.getcwd()
    os.chdir('/')
    asyncio.run(manager.save(_state(1), 1))
    self.assertEqual(
      os.listdir(os.path.join(here, 'relative')), ['program_state_1']
    )


if __name__ == '__main__':
  absltest.main()

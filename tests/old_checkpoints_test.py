# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that earlier commits wrote continue, or are refused by name.

`checkpoints/write.py` made them, each folder in the commit of its format.
docs/state.md, "When the format changes", says what a new format takes.
"""

import asyncio
import pathlib
import shutil

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tree

from tests import factory_conformance
from tests.checkpoints import write
import tff_autotune_secagg as autotune

setUpModule = factory_conformance.set_up_context

_FOLDER = pathlib.Path(__file__).parent / 'checkpoints'

_OTHER_FORMAT = (
  r'^The checkpoint must have the fields of the process, found `state_format` 2'
  r' and not 3: '
)

# What the refusal says, maybe of each process; None for checkpoints that
# continue.
_FORMATS = {
  # The private aggregation has no forecast, and a format of its own.
  'num_repeats': {
    'private_aggregation': (
      r'^The checkpoint must have the fields of the process, found that it has'
      r" besides 'num_repeats': "
    ),
    'aggregation': _OTHER_FORMAT,
    'training': _OTHER_FORMAT,
  },
  'format_2': {
    'private_aggregation': None,
    'aggregation': _OTHER_FORMAT,
    'training': _OTHER_FORMAT,
  },
  'format_3': None,
}


# On another processor floats differ in their last bits. The finest bins of the
# first round, a calibration, are smaller than those bits. It reads other
# residues there, and the size that it finds of 1,024 coordinates differs by
# some percent, as do all that follow from it.
_RTOL, _ATOL = 0.2, 1e-3


def _all_near(state, other):
  tree.assert_same_structure(state, other, check_types=False)
  return all(
    np.allclose(np.float64(a), np.float64(b), rtol=_RTOL, atol=_ATOL)
    for a, b in zip(tree.flatten(state), tree.flatten(other))
  )


class OldCheckpointsTest(parameterized.TestCase):
  def _load(self, folder, name, process):
    states = self.create_tempdir().full_path
    shutil.unpack_archive(_FOLDER / folder / f'{name}.zip', states)
    manager = write.manager(states)
    state, version = asyncio.run(autotune.load_latest_state(manager, process))
    self.assertEqual(version, write.NUM_ROUNDS)
    return state

  def test_every_folder_is_here(self):
    folders = {path.parent.name for path in _FOLDER.glob('*/*.zip')}
    self.assertEqual(folders, set(_FORMATS))
    self.assertIn(None, _FORMATS.values())

  @parameterized.parameters(*write.PROCESSES)
  def test_continues_as_if_undisturbed_or_is_refused_by_name(self, name):
    process = write.PROCESSES[name]()
    undisturbed = write.run(name, process)
    number = write.NUM_ROUNDS + 1
    expected = write.run_round(name, process, undisturbed, number)
    for folder, refusal in _FORMATS.items():
      if isinstance(refusal, dict):
        refusal = refusal[name]
      with self.subTest(folder):
        if refusal is not None:
          with self.assertRaisesRegex(ValueError, refusal) as caught:
            self._load(folder, name, process)
          self.assertLess(len(str(caught.exception)), 250)
          continue
        state = self._load(folder, name, process)
        self.assertTrue(_all_near(state, undisturbed), (state, undisturbed))
        output = write.run_round(name, process, state, number)
        self.assertTrue(_all_near(output.state, expected.state))
    # The negative controls: a run that begins anew differs, and so does a state
    # whose numbers are wrong by a third.
    wrong = tree.map_structure(
      lambda leaf: np.float64(leaf) / 1.5, expected.state
    )
    self.assertFalse(_all_near(wrong, expected.state))
    first = write.run_round(name, process, process.initialize(), number)
    self.assertFalse(_all_near(first.state, expected.state))


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the tutorial runs from top to bottom and shows its pictures."""

import pathlib

from absl.testing import absltest
import nbclient
import nbformat
import pytest

_PROJECT = pathlib.Path(__file__).parents[2]
_NOTEBOOK = _PROJECT / 'docs' / 'tutorial.ipynb'
_MAX_BYTES = 400_000

# Far above the minute that it takes: a cell that hangs must end some time.
_CELL_TIMEOUT_SECONDS = 300


def _pictures(notebook: nbformat.NotebookNode) -> int:
  return sum(
    'image/png' in output.get('data', {})
    for cell in notebook.cells
    for output in cell.get('outputs', [])
  )


class TutorialTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._notebook = nbformat.read(_NOTEBOOK, as_version=4)

  def test_committed_outputs_are_complete_and_small(self):
    self.assertEqual(_pictures(self._notebook), 6)
    self.assertLess(_NOTEBOOK.stat().st_size, _MAX_BYTES)

  @pytest.mark.slow
  def test_runs_from_top_to_bottom(self):
    for cell in self._notebook.cells:
      if cell.cell_type == 'code':
        cell.outputs = []
    client = nbclient.NotebookClient(
      self._notebook,
      timeout=_CELL_TIMEOUT_SECONDS,
      kernel_name='python3',
      resources={'metadata': {'path': str(_PROJECT)}},
    )
    client.execute()
    self.assertEqual(_pictures(self._notebook), 6)


if __name__ == '__main__':
  absltest.main()

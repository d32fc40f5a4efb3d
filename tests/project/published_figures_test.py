# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every published figure is what its flag file draws from committed results."""

import glob
import importlib
import os
import random
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
from PIL import Image
import pytest

import experiments
from experiments.common import plot_style
from experiments.common import result_rows
from tests import binary_runner

_ROOT = os.path.dirname(os.path.dirname(experiments.__file__))


def _names(pattern):
  """`experiment/name` of the files that match, their endings left out."""
  found = set()
  for path in glob.glob(os.path.join(_ROOT, 'experiments', pattern)):
    experiment = os.path.relpath(path, _ROOT).split(os.sep)[1]
    name = os.path.splitext(os.path.basename(path))[0]
    found.add(f'{experiment}/{name}')
  return sorted(found)


_FLAG_FILES = _names('*/configs/figures/*.flags')


def _path(name, folder, ending):
  experiment, stem = name.split('/')
  return os.path.join(_ROOT, 'experiments', experiment, folder, stem + ending)


def _perturbed(rows, relative, seed=1):
  """Rows as if another processor had computed all that was measured.

  Args:
    rows: Rows as `result_rows.read` returns them.
    relative: By what share of itself each float is larger or smaller.
    seed: Decides which are larger.

  Returns:
    The rows, but for the settings of the runs, which nobody computes.
  """
  rng = random.Random(seed)  # Of single numbers, far faster than NumPy's.

  def walk(value, name=''):
    if name in ('config', 'wrap_probability'):
      return value
    if isinstance(value, dict):
      return {key: walk(member, key) for key, member in value.items()}
    if isinstance(value, list):
      return [walk(member) for member in value]
    if isinstance(value, float):
      return value * (1 + relative * rng.choice((-1, 1)))
    return value

  return walk(rows)


def _drawn_by(path):
  with Image.open(path) as image:
    return image.info['Software']


def _all_readmes():
  pattern = os.path.join(_ROOT, 'experiments', '**', 'README.md')
  text = ''
  for path in glob.glob(pattern, recursive=True):
    with open(path) as f:
      text += f.read()
  return text


class PublishedFiguresTest(parameterized.TestCase):
  def test_each_has_a_flag_file_and_is_named_in_a_readme(self):
    self.assertGreater(len(_FLAG_FILES), 5)
    self.assertEqual(_names('*/figures/*'), _FLAG_FILES)
    text = _all_readmes()
    for name in _FLAG_FILES:
      self.assertIn(f'figures/{name.split("/")[1]}.png)', text)

  def _draw(self, name, relative):
    """Draws a figure from rows with other last bits; returns its path."""
    drawn = os.path.join(self.create_tempdir().full_path, 'drawn.png')
    # Flag files name results as seen from the root.
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(_ROOT)
    read = result_rows.read
    with mock.patch.object(
      result_rows,
      'read',
      lambda *args, **kwargs: _perturbed(read(*args, **kwargs), relative),
    ):
      status = binary_runner.run_main(
        importlib.import_module(f'experiments.{name.split("/")[0]}.plot'),
        f'--flagfile={_path(name, "configs/figures", ".flags")}',
        f'--output={drawn}',
      )
    self.assertEqual(status, 0)
    return drawn

  @pytest.mark.slow
  @parameterized.parameters(*_FLAG_FILES)
  def test_is_what_its_flag_file_draws_on_any_processor(self, name):
    # Thousands of units in the last place.
    drawn = self._draw(name, relative=1e-12)
    published = _path(name, 'figures', '.png')
    self.assertEmpty(
      plot_style.differences(
        plot_style.data_in(drawn), plot_style.data_in(published)
      )
    )
    # Another version of Matplotlib sets text, and then the axes, elsewhere.
    if _drawn_by(drawn) == _drawn_by(published):
      self.assertTrue(plot_style.look_alike(drawn, published))

  @pytest.mark.slow
  @parameterized.parameters(
    'error_table/error_table', 'training/fashion_dirichlet_difference'
  )
  def test_other_rows_are_found_out(self, name):
    drawn = self._draw(name, relative=1e-4)
    published = _path(name, 'figures', '.png')
    self.assertNotEmpty(
      plot_style.differences(
        plot_style.data_in(drawn), plot_style.data_in(published)
      )
    )


if __name__ == '__main__':
  absltest.main()

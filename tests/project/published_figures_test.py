# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every published figure is what its flag file draws from committed results."""

import glob
import importlib
import os

from absl.testing import absltest
from absl.testing import parameterized
import matplotlib
import numpy as np
from PIL import Image
import pytest

import experiments
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


def _pixels(path):
  with Image.open(path) as image:
    return np.asarray(image.convert('RGB'), np.float64)


def _text(path, key):
  with Image.open(path) as image:
    return image.info[key]


def _root_mean_square(pixels):
  return np.sqrt(np.mean(np.square(pixels)))


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

  @pytest.mark.slow
  @parameterized.parameters(*_FLAG_FILES)
  def test_is_what_its_flag_file_draws(self, name):
    drawn = os.path.join(self.create_tempdir().full_path, 'drawn.png')
    # Flag files name results as seen from the root.
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(_ROOT)
    status = binary_runner.run_main(
      importlib.import_module(f'experiments.{name.split("/")[0]}.plot'),
      f'--flagfile={_path(name, "configs/figures", ".flags")}',
      f'--output={drawn}',
    )
    self.assertEqual(status, 0)
    published = _path(name, 'figures', '.png')
    # Whichever version of Matplotlib drew it. That other data have another
    # digest is what the test of `plot_style` shows.
    self.assertEqual(
      _text(published, 'Description'), _text(drawn, 'Description')
    )
    wanted, found = _pixels(published), _pixels(drawn)
    self.assertEqual(wanted.shape, found.shape)
    # Another version sets text, and then the axes, at another place.
    if f'version{matplotlib.__version__},' in _text(published, 'Software'):
      self.assertLess(_root_mean_square(wanted - found), 1.0)
      # One pixel more or less does not pass for the same.
      shifted = np.roll(found, 1, axis=1)
      self.assertGreater(_root_mean_square(wanted - shifted), 5.0)


if __name__ == '__main__':
  absltest.main()

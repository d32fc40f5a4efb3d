# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every published figure is what its flag file draws from committed results."""

import glob
import os
import subprocess
import sys

from absl.testing import absltest
from absl.testing import parameterized
import matplotlib
import numpy as np
from PIL import Image
import pytest

from experiments.mean_estimation import plot
from experiments.training import plot
from experiments.wrapped_normal import plot
from tests import binary_runner

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_FIGURES = os.path.join(_ROOT, 'experiments', 'figures')
# The folder is the name of the binary.
_FLAG_FILES = {
  os.path.basename(path)[: -len('.flags')]: path
  for path in glob.glob(
    os.path.join(_ROOT, 'experiments', 'configs', 'plot_*', '*.flags')
  )
}
# Binaries that share their flags; others need a process of their own.
_MAINS = {
  'plot_mean_estimation': plot_mean_estimation,
  'plot_training': plot_training,
  'plot_wrapped_normal': plot_wrapped_normal,
}


def _pixels(path):
  with Image.open(path) as image:
    return np.asarray(image.convert('RGB'), np.float64)


def _root_mean_square(pixels):
  return np.sqrt(np.mean(np.square(pixels)))


class PublishedFiguresTest(parameterized.TestCase):
  def test_each_has_a_flag_file_and_is_named_in_the_readme(self):
    names = {name[: -len('.png')] for name in os.listdir(_FIGURES)}
    self.assertEqual(names, set(_FLAG_FILES))
    with open(os.path.join(_ROOT, 'experiments', 'README.md')) as f:
      text = f.read()
    for name in names:
      self.assertIn(f'(figures/{name}.png)', text)

  @pytest.mark.slow
  @parameterized.parameters(*sorted(_FLAG_FILES))
  def test_is_what_its_flag_file_draws(self, name):
    flag_file = _FLAG_FILES[name]
    binary = os.path.basename(os.path.dirname(flag_file))
    drawn = os.path.join(self.create_tempdir().full_path, f'{name}.png')
    arguments = (f'--flagfile={flag_file}', f'--output={drawn}')
    # Flag files name results as seen from the root.
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(_ROOT)
    if binary in _MAINS:
      status = binary_runner.run_main(_MAINS[binary], *arguments)
    else:
      status = subprocess.run(
        [sys.executable, '-m', f'experiments.{binary}', *arguments],
        check=False,
      ).returncode
    self.assertEqual(status, 0)
    published = os.path.join(_FIGURES, f'{name}.png')
    wanted, found = _pixels(published), _pixels(drawn)
    self.assertEqual(wanted.shape, found.shape)
    with Image.open(published) as image:
      made_by = image.info['Software']
    # Another version of matplotlib sets text a little differently.
    if f'version{matplotlib.__version__},' in made_by:
      self.assertLess(_root_mean_square(wanted - found), 1.0)
      # One pixel more or less does not pass for the same.
      shifted = np.roll(found, 1, axis=1)
      self.assertGreater(_root_mean_square(wanted - shifted), 5.0)


if __name__ == '__main__':
  absltest.main()

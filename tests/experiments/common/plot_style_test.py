# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import os
import pathlib

from absl.testing import absltest
from matplotlib import pyplot as plt
import numpy as np
from PIL import Image
from PIL import PngImagePlugin

from experiments.common import plot_style


class LabelTest(absltest.TestCase):
  def test_sigma_over_t_of_the_legend(self):
    # The two-sided 5 % point of the normal is 1.959964.
    self.assertIn(
      '=0.51)',
      plot_style.alpha_label('autotuned:modulus=256,wrap_probability=0.05'),
    )


def _figure(last=3.0, label='a', ylabel='y', edge=1.0):
  figure, axes = plt.subplots()
  axes.plot([1, 2], [1.0, last], label=label)
  axes.errorbar([1], [2.0], [edge])
  axes.fill_between([1, 2], [0, 0], [1.0, 2 * edge])
  axes.set_ylabel(ylabel)
  return figure


class DataDigestTest(absltest.TestCase):
  def test_follows_what_is_shown_and_nothing_else(self):
    digest = plot_style.data_digest(_figure())
    same = _figure()
    same.set_size_inches(3, 3)
    self.assertEqual(plot_style.data_digest(same), digest)
    # Another machine may round the last bit of a number otherwise.
    nearly = _figure(last=np.nextafter(3.0, 4.0))
    self.assertEqual(plot_style.data_digest(nearly), digest)
    for change in (
      dict(last=3.001),
      dict(label='b'),
      dict(ylabel='z'),
      dict(edge=1.01),
    ):
      self.assertNotEqual(plot_style.data_digest(_figure(**change)), digest)


class SaveTest(absltest.TestCase):
  def _save(self, path, **change):
    plot_style.save(_figure(**change), path)
    return pathlib.Path(path).read_bytes()

  def test_a_picture_that_looks_alike_is_left_alone(self):
    path = self.create_tempdir().full_path + '/a.png'
    first = self._save(path)
    with Image.open(path) as image:
      shades, info = np.array(image), PngImagePlugin.PngInfo()
      info.add_text('Description', image.info['Description'])
    for step, is_kept in ((1, True), (2, False)):
      # The same picture from a processor that rounds otherwise.
      moved = np.where(shades > 100, shades - step, shades).astype(np.uint8)
      Image.fromarray(moved).save(path, pnginfo=info)
      other = pathlib.Path(path).read_bytes()
      self.assertEqual(self._save(path), other if is_kept else first)

  def test_another_picture_takes_its_place(self):
    path = self.create_tempdir().full_path + '/a.png'
    self.assertNotEqual(self._save(path), self._save(path, last=3.5))
    self.assertEqual(os.listdir(os.path.dirname(path)), ['a.png'])


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import json
import os
import pathlib

from absl.testing import absltest
from absl.testing import parameterized
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


def _figure(
  last=3.0, label='a', ylabel='y', yscale='linear', edge=1.0, color='blue'
):
  figure, axes = plt.subplots()
  axes.set_yscale(yscale)
  axes.plot([1, 2], [1.0, last], label=label, color=color)
  axes.errorbar([1], [2.0], [edge])
  axes.fill_between([1, 2], [0, 0], [1.0, 2 * edge])
  axes.set_ylabel(ylabel)
  return figure


class DataTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.addCleanup(plt.close, 'all')

  def _differences(self, *figures):
    # As they are after a file.
    found, wanted = (
      json.loads(json.dumps(plot_style.data_of(figure))) for figure in figures
    )
    return plot_style.differences(found, wanted)

  def test_the_same_is_shown_whatever_the_size(self):
    same = _figure()
    same.set_size_inches(3, 3)
    self.assertEmpty(self._differences(same, _figure()))

  def test_last_bits_do_not_count(self):
    for last in (np.nextafter(3.0, 4.0), 3.0 + 3e-12):
      self.assertEmpty(self._differences(_figure(last=last), _figure()))
    # A digest of five digits differs: 2.49995 lies on the border of one.
    border = [_figure(last=2.49995 + step) for step in (-1e-12, 1e-12)]
    shown = [f'{f.axes[0].lines[0].get_ydata()[1]:.4e}' for f in border]
    self.assertNotEqual(*shown)
    self.assertEmpty(self._differences(*border))
    # So does what is left of a difference of larger numbers.
    self.assertEmpty(self._differences(_figure(last=1e-13), _figure(last=0.0)))

  @parameterized.parameters(
    (dict(last=3.001), "axes 0: other points of line 'a'"),
    (dict(label='b'), "axes 0: lines ['b', ''], not ['a', '']"),
    (dict(ylabel='z'), "axes 0: text ['', '', 'z'], not ['', '', 'y']"),
    (dict(yscale='log'), "axes 0: scales ['linear', 'log'], not"),
    (dict(edge=1.001), 'axes 0: another outline 0'),
    (dict(last=np.nan), "axes 0: other points of line 'a'"),
  )
  def test_changes_are_named(self, change, message):
    found = self._differences(_figure(**change), _figure())
    self.assertNotEmpty([text for text in found if message in text], found)

  def test_another_number_of_axes_lines_or_outlines(self):
    two, _ = plt.subplots(2)
    self.assertEqual(self._differences(two, _figure()), ['2 axes, not 1'])
    more = _figure()
    more.axes[0].fill_between([1, 2], [0, 0], [1, 1])
    self.assertEqual(
      self._differences(more, _figure()),
      ['axes 0: another number of areas and bars'],
    )

  def test_small_numbers_of_a_logarithmic_axis_count(self):
    figures = [_figure(last=last, yscale='log') for last in (1e-9, 1.001e-9)]
    self.assertNotEmpty(self._differences(*figures))


class SaveTest(absltest.TestCase):
  def _save(self, path, **change):
    plot_style.save(_figure(**change), path)
    return pathlib.Path(path).read_bytes()

  def test_a_picture_that_shows_the_same_is_left_alone(self):
    path = self.create_tempdir().full_path + '/a.png'
    first = self._save(path)
    self.assertEqual(self._save(path, last=3 + 1e-12), first)
    with Image.open(path) as image:
      shades, info = np.array(image), PngImagePlugin.PngInfo()
      info.add_text('Description', image.info['Description'])
    for moved, is_kept in (
      # The same picture from a processor that rounds otherwise.
      (np.where(shades > 100, shades - 5, shades), True),
      (np.roll(shades, 1, axis=0), True),
      (np.where(shades > 100, shades - 9, shades), False),
      (np.roll(shades, 2, axis=0), False),
    ):
      Image.fromarray(moved.astype(np.uint8)).save(path, pnginfo=info)
      other = pathlib.Path(path).read_bytes()
      self.assertEqual(self._save(path), other if is_kept else first)

  def test_another_picture_takes_its_place(self):
    path = self.create_tempdir().full_path + '/a.png'
    first = self._save(path)
    self.assertNotEqual(first, self._save(path, last=3.5))
    # The same numbers in another colour.
    self.assertNotEqual(first, self._save(path, color='red'))
    # Nor does what is no picture of ours stay.
    for image_bytes in (b'', b'nonsense'):
      pathlib.Path(path).write_bytes(image_bytes)
      self.assertEqual(self._save(path), first)
    Image.new('RGB', (8, 8)).save(path)
    self.assertEqual(self._save(path), first)
    self.assertEqual(os.listdir(os.path.dirname(path)), ['a.png'])


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest

from experiments.common import aggregators
from experiments.common import palette


class PaletteTest(absltest.TestCase):
  def test_every_aggregator_has_a_colour_of_its_own(self):
    self.assertContainsSubset(aggregators.NAMES, palette.COLOURS)
    colours = list(palette.COLOURS.values())
    self.assertLen(set(colours), len(colours))

  def test_a_colour_means_the_same_in_curves_and_points(self):
    for name in aggregators.NAMES:
      curve = palette.curves(['autotuned', f'{name}:bits=8'])[f'{name}:bits=8']
      if name != 'autotuned':
        self.assertEqual(curve['color'].upper(), palette.COLOURS[name])
      self.assertEqual(
        palette.family_style(name)['color'], palette.COLOURS[name]
      )

  def test_settings_of_one_aggregator_look_different(self):
    texts = [f'autotuned:modulus={2**bits}' for bits in range(4, 12)]
    looks = palette.curves(['plain_mean', *texts, *texts])
    self.assertEqual(list(looks), ['plain_mean', *texts])
    self.assertLen({look['color'] for look in looks.values()}, 9)

  def test_dither_is_a_family_of_its_own(self):
    texts = ['plain_mean', 'autotuned:modulus=16,rounding=dither', 'autotuned']
    found = palette.families(palette.family(text) for text in texts)
    self.assertEqual(
      found, ['autotuned', 'autotuned:rounding=dither', 'plain_mean']
    )
    looks = [palette.family_style(name) for name in found]
    self.assertEqual(looks[0]['color'], looks[1]['color'])
    self.assertEqual(looks[1]['markerfacecolor'], 'white')


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the numbers of docs/differential_privacy.md are the package's."""

import math
import pathlib
import re

from absl.testing import absltest
from absl.testing import parameterized

import tff_autotune_secagg as autotune
from tff_autotune_secagg.numerics.privacy import clip_bit
from tff_autotune_secagg.stages import clip

_PAGE = pathlib.Path(__file__).parents[2] / 'docs' / 'differential_privacy.md'
_TEXT = ' '.join(_PAGE.read_text(encoding='utf-8').split())
_ALIGNMENTS = (1.0, 0.3, 0.0)


def _table():
  """(dim, z, cohort) and the bits of each alignment, of each cell."""
  text = _PAGE.read_text(encoding='utf-8')
  (table,) = re.findall(r'^\| values \| z .*\n(?:\|.*\n)+', text, re.MULTILINE)
  (_, _, *columns), _, *rows = [
    [cell.strip() for cell in line.split('|')[1:-1]]
    for line in table.replace(',', '').splitlines()
  ]
  return [
    ((int(dim), float(z), int(column.split()[0])), cell)
    for dim, z, *cells in rows
    for column, cell in zip(columns, cells)
  ]


def _cell(dim, z, num_clients):
  moduli = [
    autotune.plan_distributed_dp_modulus(
      num_clients=num_clients,
      noise_multiplier=z,
      min_clients=num_clients * 7 // 10,
      dim=dim,
      alignment=alignment,
    )
    for alignment in _ALIGNMENTS
  ]
  return ' / '.join(str(modulus.bit_length() - 1) for modulus in moduli)


class TableTest(absltest.TestCase):
  def test_bits_are_those_that_are_planned(self):
    table = _table()
    self.assertLen(table, 18)
    wrong = [
      (key, cell, _cell(*key)) for key, cell in table if cell != _cell(*key)
    ]
    self.assertEmpty(wrong)

  def test_finds_a_wrong_number(self):
    self.assertNotEqual(_cell(1000, 1.0, 100), _cell(2000, 1.0, 1000))


class TextTest(parameterized.TestCase):
  @parameterized.parameters(
    (1.0, 100, 'That is {:.2f} for $z = 1$ and 100 clients'),
    (2.0, 70, '{:.2f} for $z = 2$ and 70, and never more'),
    (8.0, 70, '{:.2f} for $z = 2$ and 70, and never more'),
  )
  def test_share_of_the_clip_bit(self, z, min_clients, sentence):
    stddev = clip_bit.default_count_stddev(z, min_clients)
    longer = clip_bit.update_noise_multiplier(z, stddev) / z
    self.assertIn(sentence.format(longer**2), _TEXT)

  def test_pace_of_the_clip_norm(self):
    step = clip._LEARNING_RATE * clip._TARGET_SHARE
    self.assertEqual(clip._TARGET_SHARE, 0.5)  # So up and down are alike.
    self.assertIn(
      f'it starts at {clip.FIRST_CLIP_NORM} and moves by at most'
      f' {100 * math.expm1(step):.1f} % in a round, towards the median norm:'
      f' {math.log(10) / step:.0f} rounds for each factor of ten.',
      _TEXT,
    )

  def test_noise_of_a_larger_cohort(self):
    self.assertIn(
      f'{100 / 70:.2f} times the variance in a cohort of 100 with'
      ' `min_clients=70`',
      _TEXT,
    )

  def test_cost_of_a_short_round(self):
    full, short = (
      autotune.distributed_dp_epsilon(
        noise_multiplier=2.0, min_clients=70, dim=100_000, delta=1e-6, **rounds
      )
      for rounds in (
        dict(num_rounds=1),
        dict(num_rounds=0, num_short_rounds={10: 1}),
      )
    )
    self.assertIn(f'costs epsilon {short:.1f}', _TEXT)
    self.assertIn(f'and not {full:.1f} ', _TEXT)


if __name__ == '__main__':
  absltest.main()

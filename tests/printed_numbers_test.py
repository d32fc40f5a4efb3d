# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
from absl.testing import parameterized

from tests import printed_numbers


class SameTextTest(parameterized.TestCase):
  @parameterized.parameters(0.0215, 2.345e-5, 99.95, 1.0, 0.99949999)
  def test_last_bits_of_a_number_do_not_count(self, value):
    for number in (value * (1 - 1e-12), value, value * (1 + 1e-12)):
      for style in ('{:.2g}', '{:.3g}', '{:.2e}', '{:.4f}'):
        if '.' in style.format(value):
          self.assertTrue(
            printed_numbers.same_text(
              f'a  {style.format(number)}', f'a {style.format(value)}'
            )
          )

  @parameterized.parameters(
    ('0.0217', '0.021...', True),
    ('0.0222', '0.021...', False),
    ('2.0489e-05', '2.0...e-05', True),
    ('2.0489e-04', '2.0...e-05', False),
    ('5.61', '5.62', True),
    ('5.60', '5.62', False),
    ('1.01e+03', '1.02e+03', True),
    ('1.00e+03', '1.02e+03', False),
    # What is counted is exact.
    ('512', '512', True),
    ('513', '512', False),
    ('1,161,217 bytes', '1,161,216 bytes', False),
    ('bits 1.5', 'bytes 1.5', False),
    ('1.5 1.5', '1.5', False),
    ('---  ---\n1.5', '--- -----\n1.5', True),
  )
  def test_texts(self, found, said, is_same):
    self.assertEqual(printed_numbers.same_text(found, said), is_same)


class RoundsToTest(parameterized.TestCase):
  @parameterized.parameters(
    (0.02149, '0.021', True),
    (0.0215 * (1 + 1e-12), '0.021', True),
    (0.0215 * (1 - 1e-12), '0.022', True),
    (0.02151, '0.021', False),
    (0.104, '0.1', True),
    (0.106, '0.1', False),
    (9, '9', True),
    (8, '9', False),
    (0.0, '0', True),
  )
  def test_two_digits(self, value, said, is_same):
    self.assertEqual(printed_numbers.rounds_to(value, said, 2), is_same)


if __name__ == '__main__':
  absltest.main()

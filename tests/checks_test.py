# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `_checks`: whole messages."""

import decimal
import enum
import fractions

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from tff_autotune_secagg import _checks


class Colour(enum.Enum):
  RED = 1
  BLUE = 2


class CheckIntTest(parameterized.TestCase):
  @parameterized.parameters(2, np.int64(2), np.uint8(2), np.int32(5))
  def test_returns_python_int(self, value):
    result = _checks.check_int('size', value, 2, 5)
    self.assertIs(type(result), int)
    self.assertEqual(result, value)

  @parameterized.named_parameters(
    ('small', 1, ValueError, '1 (int)'),
    ('large', 6, ValueError, '6 (int)'),
    ('bool', True, TypeError, 'True (bool)'),
    ('numpy_bool', np.True_, TypeError, 'True (bool_)'),
    ('float', 3.0, TypeError, '3.0 (float)'),
    ('none', None, TypeError, 'None (NoneType)'),
    ('array', np.array([3]), TypeError, 'array([3]) (ndarray)'),
  )
  def test_rejects(self, value, error, found):
    with self.assertRaisesWithLiteralMatch(
      error,
      f'`size` must be an int of at least 2 and at most 5, found {found}.',
    ):
      _checks.check_int('size', value, 2, 5)

  def test_without_maximum(self):
    self.assertEqual(_checks.check_int('size', 10**30, 2), 10**30)
    with self.assertRaisesWithLiteralMatch(
      ValueError, '`size` must be an int of at least 2, found 0 (int).'
    ):
      _checks.check_int('size', 0, 2)

  def test_counts_are_those_that_floats_hold(self):
    self.assertEqual(_checks.check_count('size', 10**15), 10**15)
    with self.assertRaisesWithLiteralMatch(
      ValueError,
      '`size` must be an int of at least 1 and at most 1000000000000000, found'
      ' 1000000000000001 (int).',
    ):
      _checks.check_count('size', 10**15 + 1)

  def test_numbers_that_python_does_not_print_are_refused_as_others(self):
    for check in (_checks.check_count, _checks.check_float):
      with self.assertRaisesRegex(
        ValueError, r'^`size` must be .*, found .{1,80} \(int\)\.$'
      ):
        check('size', 10**5000)

  def test_long_values_are_cut(self):
    with self.assertRaisesWithLiteralMatch(
      TypeError,
      f"`size` must be an int of at least 2, found '{'x' * 76}... (str).",
    ):
      _checks.check_int('size', 'x' * 200, 2)

  def test_modulus_and_seed(self):
    for modulus in (2, 3, 2**30):
      self.assertEqual(_checks.check_modulus(modulus), modulus)
    self.assertIsNone(_checks.check_seed(None))
    self.assertEqual(_checks.check_seed(2**63 - 1), 2**63 - 1)


class CheckFloatTest(parameterized.TestCase):
  @parameterized.parameters(
    0.5,
    1,
    np.float32(0.5),
    np.longdouble(0.5),
    fractions.Fraction(1, 2),
    decimal.Decimal('0.5'),
  )
  def test_returns_python_float(self, value):
    result = _checks.check_float('share', value, above=0, at_most=1)
    self.assertIs(type(result), float)
    self.assertEqual(result, value)

  @parameterized.named_parameters(
    ('bound', 0.0, ValueError, '0.0 (float)'),
    ('above_maximum', 1.5, ValueError, '1.5 (float)'),
    ('nan', float('nan'), ValueError, 'nan (float)'),
    ('infinite', float('-inf'), ValueError, '-inf (float)'),
    # What is used is held to the bounds: this is 0 as a float.
    (
      'too_small_for_a_float',
      fractions.Fraction(1, 10**400),
      ValueError,
      f'Fraction(1, 1{64 * "0"}... (Fraction)',
    ),
    ('too_large_for_a_float', 10**400, ValueError, f'1{76 * "0"}... (int)'),
    (
      'signalling',
      decimal.Decimal('sNaN'),
      ValueError,
      "Decimal('sNaN') (Decimal)",
    ),
    ('bool', True, TypeError, 'True (bool)'),
    ('complex', 1j, TypeError, '1j (complex)'),
    ('text', '0.5', TypeError, "'0.5' (str)"),
  )
  def test_rejects(self, value, error, found):
    with self.assertRaisesWithLiteralMatch(
      error,
      f'`share` must be a finite number above 0 and at most 1, found {found}.',
    ):
      _checks.check_float('share', value, above=0, at_most=1)

  def test_rule_without_bounds_and_with_the_others(self):
    with self.assertRaisesWithLiteralMatch(
      ValueError, '`x` must be a finite number, found nan (float).'
    ):
      _checks.check_float('x', float('nan'))
    with self.assertRaisesWithLiteralMatch(
      ValueError,
      '`x` must be a finite number of at least 1 and below 2, found 2 (int).',
    ):
      _checks.check_float('x', 2, at_least=1, below=2)


class OtherChecksTest(absltest.TestCase):
  def test_bool(self):
    self.assertIs(_checks.check_bool('on', np.True_), True)
    with self.assertRaisesWithLiteralMatch(
      TypeError, '`on` must be True or False, found 0 (int).'
    ):
      _checks.check_bool('on', 0)

  def test_enum(self):
    self.assertIs(_checks.check_enum('colour', Colour.RED, Colour), Colour.RED)
    with self.assertRaisesWithLiteralMatch(
      TypeError,
      '`colour` must be one of Colour.RED, Colour.BLUE, found 1 (int).',
    ):
      _checks.check_enum('colour', 1, Colour)

  def test_instance(self):
    self.assertEqual(_checks.check_instance('x', 'a', str, 'a text'), 'a')
    with self.assertRaisesWithLiteralMatch(
      TypeError, '`x` must be a text, found 1 (int).'
    ):
      _checks.check_instance('x', 1, str, 'a text')

  def test_errors_that_a_caller_raises(self):
    self.assertEqual(
      str(_checks.leaf_error('float tensors', 'a/0', 'int32')),
      "`value_type` must hold only float tensors, found int32 at 'a/0'.",
    )
    self.assertEqual(
      str(_checks.leaf_error('float tensors', '', 'int32')),
      '`value_type` must hold only float tensors, found int32.',
    )
    self.assertEqual(
      str(_checks.type_error('x', 'a float32 tensor', 'int32')),
      '`x` must be a float32 tensor, found int32.',
    )
    self.assertEqual(
      str(_checks.shape_error('x', (None,))),
      '`x` must have a fully defined shape, found (None,).',
    )


if __name__ == '__main__':
  absltest.main()

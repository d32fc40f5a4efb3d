# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares printed numbers, which processors may round to another last digit.

Computed numbers differ in the last bit from processor to processor. Where a
number lies on the border of a printed digit, that digit differs as well.
"""

import math
import re

_NUMBER = re.compile(
  r'(?P<whole>\d[\d,]*)(?P<fraction>\.\d+)?(?:\.\.\.)?(?P<exponent>e[+-]?\d+)?'
)
# Of a unit of the last digit: for the last bits of a number on its border.
_SLACK = 1e-6


def same_text(found: str, said: str) -> bool:
  """Whether texts are the same up to a unit in the last digit of a number.

  Numbers with a fraction or an exponent are taken for computed; all others,
  such as counts, must be equal. Three dots after a number stand for digits left
  out, as in a doctest. The widths of columns do not count.

  Args:
    found: What was printed.
    said: What a document says.
  """
  if _words(found) != _words(said):
    return False
  pairs = zip(_NUMBER.finditer(found), _NUMBER.finditer(said))
  return all(
    abs(_value(one) - _value(other)) <= (1 + _SLACK) * _unit(other)
    for one, other in pairs
  )


def rounds_to(value: float, said: str, digits: int) -> bool:
  """Whether a number, rounded to so many digits, is what a document says."""
  number = float(said)
  size = math.floor(math.log10(abs(number))) if number else 0
  unit = 10.0 ** (size + 1 - digits)
  return abs(value - number) <= (0.5 + _SLACK) * unit


def _words(text):
  # A rule of dashes is as wide as its column.
  return re.sub('-{2,}', '--', _NUMBER.sub('#', text)).split()


def _value(match):
  whole, fraction, exponent = (part or '' for part in match.groups())
  return float(whole.replace(',', '') + fraction + exponent)


def _unit(match):
  fraction, exponent = match['fraction'], match['exponent']
  if not fraction and not exponent:
    return 0.0
  return 10.0 ** (int((exponent or 'e0')[1:]) - len(fraction or '.') + 1)

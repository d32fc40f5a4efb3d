# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Small Hadamard matrices: Sylvester's doubling and Paley's constructions.

Source: R. E. A. C. Paley (1933), On orthogonal matrices, Journal of Mathematics
and Physics 12. The constructions need the quadratic character of a finite
field, whose elements are polynomials over GF(p) here. Pure NumPy.
"""

import functools
import itertools
from typing import Optional, Tuple

import numpy as np

from tff_autotune_secagg import _checks


def hadamard_matrix(order: int) -> np.ndarray:
  """Returns a Hadamard matrix H: entries +-1 and `H @ H.T == order * I`.

  Args:
    order: 1, 2 or a multiple of 4 that a chain of doublings leads back to
      q + 1 for a prime power q = 3 mod 4 (Paley I) or to 2 (q + 1) for
      q = 1 mod 4 (Paley II). That is every multiple of 4 up to 88; powers of
      two use Sylvester's matrix.

  Returns:
    int8 array [order, order], read-only. It need not be symmetric.

  Raises:
    TypeError: `order` is not an int.
    ValueError: no construction here gives that order.
  """
  order = _checks.check_int('order', order, minimum=1)
  matrix = _construct(order)
  if matrix is None:
    raise ValueError(
      '`order` must be 1, 2 or a multiple of 4 from the constructions of'
      f' Sylvester and Paley, found {order}. Every multiple of 4 up to'
      ' 88 is.'
    )
  return matrix


@functools.lru_cache(maxsize=None)
def _construct(order: int) -> Optional[np.ndarray]:
  """The matrix of `hadamard_matrix`; None where no construction is known."""
  matrix = _paley_or_doubled(order)
  if matrix is not None:
    matrix.setflags(write=False)
  return matrix


def _paley_or_doubled(order: int) -> Optional[np.ndarray]:
  """One step of `_construct`."""
  if order == 1:
    return np.ones((1, 1), np.int8)
  if order % 2:
    return None
  if order & (order - 1):
    for paley in (_paley_one, _paley_two):
      matrix = paley(order)
      if matrix is not None:
        return matrix
  half = _construct(order // 2)
  if half is None:
    return None
  return np.kron(np.array([[1, 1], [1, -1]], np.int8), half)


def _paley_one(order: int) -> Optional[np.ndarray]:
  """Order q + 1, q = 3 mod 4: I + S for the skew conference matrix S."""
  field = _prime_power(order - 1)
  if field is None or order % 4:
    return None
  matrix = np.eye(order, dtype=np.int8)
  matrix[0, 1:] = 1
  matrix[1:, 0] = -1
  matrix[1:, 1:] += _jacobsthal(*field)
  return matrix


def _paley_two(order: int) -> Optional[np.ndarray]:
  """Order 2 (q + 1), q = 1 mod 4, from the symmetric conference matrix."""
  half = order // 2
  field = _prime_power(half - 1)
  if field is None or half % 4 != 2:
    return None
  conference = np.zeros((half, half), np.int8)
  conference[0, 1:] = 1
  conference[1:, 0] = 1
  conference[1:, 1:] = _jacobsthal(*field)
  off_diagonal = np.kron(conference, np.array([[1, 1], [1, -1]], np.int8))
  diagonal = np.kron(
    np.eye(half, dtype=np.int8), np.array([[1, -1], [-1, -1]], np.int8)
  )
  return off_diagonal + diagonal


def _prime_power(number: int) -> Optional[Tuple[int, int]]:
  """Returns (p, k) with p prime and p**k equal to `number`, or None."""
  if number < 2:
    return None
  divisors = (p for p in range(2, int(number**0.5) + 1) if number % p == 0)
  prime = next(divisors, number)
  degree = 0
  while number % prime == 0:
    number //= prime
    degree += 1
  return (prime, degree) if number == 1 else None


def _jacobsthal(prime: int, degree: int) -> np.ndarray:
  """The quadratic character of x - y for all x, y of GF(prime**degree).

  Elements are polynomials over GF(prime), low coefficient first.
  """
  elements = list(itertools.product(range(prime), repeat=degree))
  reducer = _irreducible_polynomial(prime, degree)
  squares = {_multiply(x, x, reducer, prime) for x in elements}

  def character(x):
    if not any(x):
      return 0
    return 1 if x in squares else -1

  def difference(x, y):
    return tuple((s - t) % prime for s, t in zip(x, y))

  table = {x: character(x) for x in elements}
  rows = [[table[difference(x, y)] for y in elements] for x in elements]
  return np.array(rows, np.int8)


def _irreducible_polynomial(prime: int, degree: int) -> Tuple[int, ...]:
  """Low coefficients of a monic polynomial modulo which no product vanishes."""
  elements = list(itertools.product(range(prime), repeat=degree))
  nonzero = elements[1:]
  for candidate in elements:
    products = itertools.combinations_with_replacement(nonzero, 2)
    if all(any(_multiply(x, y, candidate, prime)) for x, y in products):
      return candidate
  raise AssertionError(f'GF({prime}) has polynomials of every degree.')


def _multiply(x, y, reducer, prime: int) -> Tuple[int, ...]:
  """Product of two field elements modulo `t**degree + reducer(t)`."""
  degree = len(reducer)
  product = [0] * (2 * degree - 1)
  for i, s in enumerate(x):
    for j, t in enumerate(y):
      product[i + j] += s * t
  for power in range(2 * degree - 2, degree - 1, -1):
    for j, t in enumerate(reducer):
      product[power - degree + j] -= product[power] * t
  return tuple(c % prime for c in product[:degree])

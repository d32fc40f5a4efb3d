# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Randomized Hadamard rotation for many orders, in plain TensorFlow."""

import functools
import itertools

import numpy as np
import tensorflow as tf

# Odd parts of the small orders 4 * odd that have a Paley matrix of order <= 64.
_ODD_PARTS = (1, 3, 5, 7, 9, 11, 13, 15)
_BITS_PER_WORD = 32


@functools.lru_cache(maxsize=None)
def _squares(field_order: int):
  """Quadratic residue table of the field: `(difference -> -1, 0 or 1)`."""
  prime, degree = _prime_power(field_order)
  elements = list(itertools.product(range(prime), repeat=degree))
  modulus = _irreducible_polynomial(prime, degree)
  squares = {_multiply(x, x, modulus, prime) for x in elements}
  zero = (0,) * degree

  def character(a, b):
    difference = tuple((s - t) % prime for s, t in zip(a, b))
    if difference == zero:
      return 0
    return 1 if difference in squares else -1

  return np.array([[character(a, b) for b in elements] for a in elements])


def _prime_power(number: int):
  """Returns `(prime, degree)` with `prime**degree == number`, or `None`."""
  if number < 2:
    return None
  prime = next(
      (p for p in range(2, int(number**0.5) + 1) if number % p == 0), number
  )
  degree = 0
  while number % prime == 0:
    number //= prime
    degree += 1
  return (prime, degree) if number == 1 else None


def _multiply(a, b, modulus, prime: int):
  """Product of two polynomials (low power first) modulo a monic one."""
  degree = len(modulus)
  product = [0] * (2 * degree - 1)
  for i, s in enumerate(a):
    for j, t in enumerate(b):
      product[i + j] += s * t
  for power in range(2 * degree - 2, degree - 1, -1):
    for j, t in enumerate(modulus):
      product[power - degree + j] -= product[power] * t
  return tuple(c % prime for c in product[:degree])


def _irreducible_polynomial(prime: int, degree: int):
  """Low coefficients of a monic irreducible polynomial over GF(prime)."""
  elements = list(itertools.product(range(prime), repeat=degree))
  zero = elements[0]
  for candidate in elements:
    if all(
        _multiply(a, b, candidate, prime) != zero
        for a, b in itertools.combinations_with_replacement(elements[1:], 2)
    ):
      return candidate
  raise AssertionError(f'No irreducible polynomial of degree {degree}.')


@functools.lru_cache(maxsize=None)
def hadamard_matrix(order: int) -> np.ndarray:
  """Returns a Hadamard matrix of the given order as int8, entries +-1."""
  if order in (1, 2):
    return np.array([[1, 1], [1, -1]], np.int8)[:order, :order]
  if order % 4 == 0 and order & (order - 1):
    if _prime_power(order - 1):
      size = order - 1
      core = np.zeros((order, order), np.int8)
      core[0, 1:] = 1
      core[1:, 0] = -1
      core[1:, 1:] = _squares(size)
      return core + np.eye(order, dtype=np.int8)
    half = order // 2
    if half % 2 == 0 and _prime_power(half - 1) and (half - 1) % 4 == 1:
      core = np.zeros((half, half), np.int8)
      core[0, 1:] = 1
      core[1:, 0] = 1
      core[1:, 1:] = _squares(half - 1)
      return np.kron(core, np.array([[1, 1], [1, -1]], np.int8)) + np.kron(
          np.eye(half, dtype=np.int8), np.array([[1, -1], [-1, -1]], np.int8)
      )
  if order > 2 and order % 4 == 0:
    return np.kron(hadamard_matrix(2), hadamard_matrix(order // 2))
  raise ValueError(
      f'`order` must be 1, 2 or a multiple of 4 with a known construction, '
      f'found {order!r}.'
  )


@functools.lru_cache(maxsize=None)
def _odd_products():
  """Pairs (odd part, smallest exponent of two it needs, factors)."""
  best = {}
  for a, b in itertools.combinations_with_replacement(_ODD_PARTS, 2):
    parts = tuple(4 * o for o in (a, b) if o > 1)
    if a * b not in best or len(parts) < len(best[a * b]):
      best[a * b] = parts
  return best


@functools.lru_cache(maxsize=None)
def padded_dim(dim: int) -> int:
  """Returns the smallest available order that is at least `dim`."""
  if isinstance(dim, bool) or not isinstance(dim, (int, np.integer)) or dim < 1:
    raise ValueError(f'`dim` must be an int of at least 1, found {dim!r}.')
  dim = int(dim)
  orders = []
  for odd, parts in _odd_products().items():
    base = int(np.prod(parts, dtype=np.int64))
    # Smallest power of two that reaches `dim`, in Python integers.
    exponent = max(0, (-(-dim // base) - 1).bit_length())
    orders.append(base << exponent)
    del odd
  return min(orders)


@functools.lru_cache(maxsize=None)
def factors(order: int) -> tuple:
  """Returns the small dense orders used for `order`; their product is it."""
  if padded_dim(order) != order:
    raise ValueError(
        f'`order` must be an available Hadamard order, found {order!r}; the '
        f'next one is {padded_dim(order)}.'
    )
  exponent = (order & -order).bit_length() - 1
  parts = _odd_products()[order >> exponent]
  rest = order // int(np.prod(parts, dtype=np.int64))
  result = list(parts)
  while rest > 32:
    result.append(16)
    rest //= 16
  if rest > 1:
    result.append(rest)
  return tuple(result) or (1,)


def _apply(x, transpose):
  order = x.shape[-1]
  if order is None:
    raise ValueError('`x` must have a static last dimension, found None.')
  lead = tf.shape(x)[:-1]
  scale = 1.0 / np.sqrt(order)
  y = tf.reshape(x, [-1, order])
  inner = order
  for index, size in enumerate(factors(order)):
    inner //= size
    matrix = hadamard_matrix(size).astype(x.dtype.as_numpy_dtype)
    if transpose:
      matrix = matrix.T
    if index == 0:
      matrix = matrix * scale
    matrix = tf.constant(matrix, x.dtype)
    y = tf.matmul(matrix, tf.reshape(y, [-1, size, inner]))
  static = x.shape
  y = tf.reshape(y, tf.concat([lead, [order]], 0))
  return tf.ensure_shape(y, static)


def transform(x: tf.Tensor) -> tf.Tensor:
  """Orthonormal Hadamard transform along the last axis, `[..., D]`."""
  return _apply(x, transpose=False)


def inverse_transform(x: tf.Tensor) -> tf.Tensor:
  """Inverse (exact transpose) of `transform`."""
  return _apply(x, transpose=True)


def random_signs(dim: int, seed: tf.Tensor) -> tf.Tensor:
  """Returns `[dim]` int32, each 0 or the sign bit, 32 from each random word."""
  num_words = -(-dim // _BITS_PER_WORD)
  words = tf.random.stateless_uniform(
      [num_words, 1], seed, minval=None, maxval=None, dtype=tf.int32,
      alg='philox')
  shifted = tf.bitwise.left_shift(
      words, tf.range(_BITS_PER_WORD, dtype=tf.int32))
  signs = tf.bitwise.bitwise_and(shifted, tf.int32.min)
  return tf.reshape(signs, [-1])[:dim]


def flip_signs(x: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
  """Multiplies `x` (`[D]`) by +-1, the same for the same seed."""
  signs = random_signs(x.shape[0], seed)
  if x.dtype == tf.float32:
    bits = tf.bitwise.bitwise_xor(tf.bitcast(x, tf.int32), signs)
    return tf.bitcast(bits, tf.float32)
  return tf.where(signs < 0, -x, x)


def rotate(x: tf.Tensor, seed: tf.Tensor, num_repeats: int = 1) -> tf.Tensor:
  """Pads `x` (`[d]`), then flips signs and transforms `num_repeats` times."""
  dim = x.shape[0]
  y = tf.pad(x, [[0, padded_dim(dim) - dim]])
  for index in range(num_repeats):
    y = transform(flip_signs(y, _repeat_seed(seed, index)))
  return y


def inverse_rotate(
    y: tf.Tensor, seed: tf.Tensor, dim: int, num_repeats: int = 1
) -> tf.Tensor:
  """Inverse of `rotate`, cropped to the first `dim` entries."""
  for index in reversed(range(num_repeats)):
    y = flip_signs(inverse_transform(y), _repeat_seed(seed, index))
  return y[:dim]


def _repeat_seed(seed, index):
  return tf.random.experimental.stateless_fold_in(seed, index)

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import functools
import itertools
import math
import os
import pathlib
import subprocess
import sys

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests import stat_checks
from tff_autotune_secagg.numerics import hadamard
from tff_autotune_secagg.numerics import quantization

_SEED = np.array([11, 12], np.int64)
_PAPER_DIM = 1_369_738  # Parameters of the paper's network.


def _dense(order, dtype=np.float64):
  """The matrix of `transform`, column by column."""
  return hadamard.transform(tf.eye(order, dtype=dtype)).numpy().T


@functools.lru_cache(maxsize=None)
def _orders_below(limit):
  """All m1 * m2 * 2**p below the limit, by plain enumeration."""
  small = [1, 2] + list(range(4, 65, 4))
  orders = set()
  for one, two in itertools.product(small, repeat=2):
    order = one * two
    while order < limit:
      orders.add(order)
      order *= 2
  return np.array(sorted(orders))


def _relative_error(value, expected):
  return np.linalg.norm(value - expected) / np.linalg.norm(expected)


class MatrixTest(parameterized.TestCase):
  @parameterized.parameters(1, 2, *range(4, 89, 4), 100, 124, 128)
  def test_rows_are_orthogonal_and_entries_are_signs(self, order):
    matrix = hadamard.hadamard_matrix(order)
    self.assertEqual(matrix.dtype, np.int8)
    self.assertTrue(np.all(np.abs(matrix) == 1))
    gram = matrix.astype(np.int64) @ matrix.T.astype(np.int64)
    np.testing.assert_array_equal(gram, order * np.eye(order))

  def test_prime_powers_give_their_orders(self):
    # 27 + 1, 2 (25 + 1) and 2 (49 + 1) come from proper prime powers only.
    for order in (28, 52, 100):
      self.assertEqual(hadamard.hadamard_matrix(order).shape, (order, order))

  def test_result_cannot_be_changed_by_the_caller(self):
    with self.assertRaises(ValueError):
      hadamard.hadamard_matrix(4)[0, 0] = 3

  @parameterized.parameters(3, 6, 18, 92)
  def test_rejects_orders_without_a_construction(self, order):
    with self.assertRaisesRegex(
      ValueError,
      '^`order` must be 1, 2 or a multiple of 4 from the constructions of'
      f' Sylvester and Paley, found {order}. Every multiple of 4 up to 88'
      ' is.$',
    ):
      hadamard.hadamard_matrix(order)

  @parameterized.parameters(True, 4.0, '4')
  def test_rejects_what_is_no_int(self, order):
    with self.assertRaisesRegex(TypeError, '^`order` must be an int'):
      hadamard.hadamard_matrix(order)


class PaddedDimTest(parameterized.TestCase):
  def test_is_the_smallest_order_for_every_dim_up_to_1e5(self):
    dims = np.arange(1, 100_001)
    orders = _orders_below(1 << 18)
    expected = orders[np.searchsorted(orders, dims)]
    padded = np.array([hadamard.padded_dim(int(dim)) for dim in dims])
    np.testing.assert_array_equal(padded, expected)
    large = dims >= 1024
    self.assertLessEqual(np.max(padded[large] / dims[large]), 1.06)
    self.assertTrue(np.all(padded[large] % quantization.NUM_STRIPES == 0))

  def test_keeps_its_bound_for_large_dims(self):
    # The bound can only be approached just above an order.
    orders = _orders_below(1 << 33)
    dims = orders[(orders >= 1024) & (orders < 1 << 32)] + 1
    padded = np.array([hadamard.padded_dim(int(dim)) for dim in dims])
    self.assertLessEqual(np.max(padded / dims), 1.06)
    self.assertTrue(np.all(padded % quantization.NUM_STRIPES == 0))

  def test_mean_padding_is_at_most_one_and_a_half_percent(self):
    # Equal steps of the logarithm: a quadrature, not a sample.
    dims = np.geomspace(1e3, 1e8, 50_001).astype(np.int64)
    excess = [hadamard.padded_dim(int(dim)) / dim - 1 for dim in dims]
    self.assertLessEqual(np.mean(excess), 0.015)

  @parameterized.named_parameters(
    ('one', 1, 1),
    ('two', 2, 2),
    ('three', 3, 4),
    ('order_itself', 12, 12),
    ('paper_network', _PAPER_DIM, 1_376_256),
    ('above_2_21', 2**21 + 1, 65 * 2**15),
  )
  def test_known_values(self, dim, expected):
    self.assertEqual(hadamard.padded_dim(dim), expected)

  @parameterized.parameters(0, -1)
  def test_rejects_dim_below_one(self, dim):
    with self.assertRaisesRegex(
      ValueError, rf'^`dim` must be an int of at least 1, found {dim} '
    ):
      hadamard.padded_dim(dim)

  @parameterized.parameters(True, 4.0, '4', None)
  def test_rejects_dim_that_is_no_int(self, dim):
    with self.assertRaisesRegex(TypeError, '^`dim` must be an int'):
      hadamard.padded_dim(dim)


class FactorsTest(parameterized.TestCase):
  def test_every_order_up_to_2_20_is_a_product_of_small_orders(self):
    for order in _orders_below(1 << 20).tolist():
      sizes = hadamard.factors(order)
      self.assertEqual(math.prod(sizes), order)
      self.assertLessEqual(max(sizes), 64)
      for size in sizes:
        self.assertTrue(size <= 2 or size % 4 == 0)

  def test_first_factor_makes_stripes_even_where_the_order_is_large(self):
    uneven = [
      order
      for order in _orders_below(1 << 20).tolist()
      if hadamard.factors(order)[0] % quantization.NUM_STRIPES
    ]
    self.assertLess(max(uneven), 1 << 16)

  def test_names_the_next_order_when_there_is_no_such_one(self):
    with self.assertRaisesRegex(
      ValueError,
      '^`order` must be an available Hadamard order, found 1025. The next one'
      ' is 1040.$',
    ):
      hadamard.factors(1025)


class TransformTest(tf.test.TestCase, parameterized.TestCase):
  # One, two, three and four factors; symmetric and skew small matrices.
  @parameterized.parameters(1, 2, 4, 12, 20, 40, 52, 144, 1008, 1040, 1536)
  def test_matrix_is_orthonormal_with_entries_of_one_size(self, order):
    matrix = _dense(order)
    self.assertAllClose(np.abs(matrix) * order**0.5, np.ones([order, order]))
    self.assertAllClose(matrix @ matrix.T, np.eye(order), atol=1e-12)

  @parameterized.parameters(12, 1008, 1536, 3120)
  def test_equals_the_kronecker_product_in_its_documented_layout(self, order):
    sizes = hadamard.factors(order)
    kron = functools.reduce(
      np.kron, [hadamard.hadamard_matrix(size) for size in sizes]
    ) / np.sqrt(order)
    x = np.random.default_rng(1).normal(size=order)
    expected = np.moveaxis((kron @ x).reshape(sizes), 0, -1).reshape(-1)
    self.assertAllClose(hadamard.transform(x), expected, atol=1e-12)

  @parameterized.parameters(12, 52, 1008, 1536)
  def test_inverse_is_the_transpose(self, order):
    inverse = hadamard.inverse_transform(tf.eye(order, dtype=tf.float64))
    self.assertAllClose(tf.transpose(inverse), _dense(order).T, atol=1e-14)

  @parameterized.parameters(2**20, 1_376_256)
  def test_float32_round_trip_is_within_2e_6_of_the_norm(self, order):
    x = np.random.default_rng(2).standard_normal(order, np.float32)
    y = hadamard.transform(x)
    self.assertEqual(y.dtype, tf.float32)
    self.assertLess(_relative_error(hadamard.inverse_transform(y), x), 2e-6)
    exact = hadamard.transform(x.astype(np.float64)).numpy()
    self.assertLess(_relative_error(y.numpy(), exact), 2e-6)

  def test_float64_keeps_its_accuracy(self):
    x = np.random.default_rng(3).normal(size=2**16 * 12)
    y = hadamard.transform(x)
    self.assertEqual(y.dtype, tf.float64)
    self.assertLess(_relative_error(hadamard.inverse_transform(y), x), 2e-15)
    self.assertNear(np.linalg.norm(y), np.linalg.norm(x), 1e-12 * len(x) ** 0.5)

  @parameterized.named_parameters(
    ('largest', np.full(2**12, 1e38 / 64)),
    ('smallest', np.eye(1, 2**12)[0] * 1e-35),
  )
  def test_stages_stay_in_the_range_of_float32(self, x):
    x = x.astype(np.float32)
    back = hadamard.inverse_transform(hadamard.transform(x))
    size = np.max(x)
    self.assertLess(_relative_error(back.numpy() / size, x / size), 2e-6)

  @parameterized.parameters(([3],), ([2, 3],), ([0],))
  def test_leading_axes_are_a_batch(self, lead):
    x = np.random.default_rng(4).normal(size=lead + [1008])
    rows = [hadamard.transform(row) for row in x.reshape([-1, 1008])]
    expected = np.reshape(rows, x.shape)
    y = hadamard.transform(x)
    self.assertAllClose(y, expected, atol=1e-12)
    self.assertAllClose(hadamard.inverse_transform(y), x, atol=1e-12)

  def test_accepts_a_batch_of_unknown_size(self):
    @tf.function(
      input_signature=[tf.TensorSpec([None, 48], tf.float32)], autograph=False
    )
    def both_ways(x):
      y = hadamard.transform(x)
      self.assertEqual(y.shape.as_list(), [None, 48])
      return hadamard.inverse_transform(y)

    x = np.random.default_rng(5).normal(size=[5, 48]).astype(np.float32)
    self.assertAllClose(both_ways(x), x, atol=1e-6)

  def test_non_finite_values_spread_and_do_not_raise(self):
    x = np.zeros(48, np.float32)
    x[7] = np.nan
    self.assertAllEqual(np.isnan(hadamard.transform(x)), np.ones(48, bool))

  def test_rejects_an_unavailable_order(self):
    with self.assertRaisesRegex(ValueError, 'found 17. The next one is 20.$'):
      hadamard.transform(tf.zeros([17]))

  @parameterized.parameters(tf.int32, tf.float16, tf.bfloat16)
  def test_rejects_other_dtypes(self, dtype):
    with self.assertRaisesWithLiteralMatch(
      TypeError,
      '`x` must be of dtype float32 or float64, found '
      f'{dtype.name}. Cast it first.',
    ):
      hadamard.transform(tf.zeros([16], dtype))

  def test_rejects_an_unknown_last_dimension(self):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def run(x):
      return hadamard.transform(x)

    with self.assertRaisesRegex(
      ValueError, 'must have a last dimension known statically'
    ):
      run.get_concrete_function()


class SignsTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.product(
    dim=[1, 31, 32, 33, 1000, 4096], dtype=[np.float32, np.float64]
  )
  def test_flips_are_exact_and_self_inverse(self, dim, dtype):
    x = np.random.default_rng(dim).normal(size=dim).astype(dtype)
    flipped = hadamard.flip_signs(x, _SEED)
    self.assertEqual(flipped.dtype, dtype)
    self.assertAllEqual(np.abs(flipped), np.abs(x))
    self.assertAllEqual(hadamard.flip_signs(flipped, _SEED), x)

  def test_dtypes_share_the_signs(self):
    single = hadamard.flip_signs(np.ones(999, np.float32), _SEED)
    double = hadamard.flip_signs(np.ones(999, np.float64), _SEED)
    self.assertAllEqual(single, double)

  @parameterized.parameters(np.int32, np.int64)
  def test_accepts_seeds_of_both_integer_types(self, dtype):
    flipped = hadamard.flip_signs(
      np.ones(64, np.float32), np.array([1, 2], dtype)
    )
    self.assertAllEqual(np.abs(flipped), np.ones(64))

  @parameterized.parameters(1, 2, 3)
  def test_signs_are_fair_and_uncorrelated(self, seed):
    dim = 2**18
    seeds = np.array([[seed, 1], [seed, 2]], np.int64)
    one, two = (
      hadamard.flip_signs(np.ones(dim, np.float32), s).numpy() for s in seeds
    )
    tolerance = stat_checks.Z * stat_checks.mean_error(1.0, dim)
    self.assertLess(abs(one.mean()), tolerance)
    self.assertLess(abs(np.mean(one * two)), tolerance)
    # Neighbours, the bits of one word, and the same bit of neighbouring words.
    for lag in (1, 2, dim // 32, dim // 32 + 1, dim // 2):
      self.assertLess(abs(np.mean(one * np.roll(one, lag))), tolerance)
    # Negative control: signs that one entry in 50 forgets to flip.
    forgetful = np.where(np.arange(dim) % 50 == 0, 1.0, one)
    self.assertGreater(abs(forgetful.mean()), tolerance)

  @parameterized.parameters(4, 5, 6)
  def test_every_bit_of_a_word_is_fair(self, seed):
    num_words = 2**14
    seed = np.array([seed, 0], np.int64)
    signs = hadamard.flip_signs(np.ones(32 * num_words, np.float32), seed)
    means = np.reshape(signs, [32, num_words]).mean(axis=1)
    tolerance = stat_checks.z_for(32) * stat_checks.mean_error(1.0, num_words)
    self.assertLess(np.max(np.abs(means)), tolerance)


class RotationTest(tf.test.TestCase, parameterized.TestCase):
  @parameterized.product(
    dim=[1, 2, 5, 1000, 1024, 70_000], num_repeats=[1, 2, 3]
  )
  def test_inverse_after_rotation_is_the_identity(self, dim, num_repeats):
    x = np.random.default_rng(dim).normal(size=dim).astype(np.float32)
    y = hadamard.rotate(x, _SEED, num_repeats)
    self.assertEqual(y.shape, [hadamard.padded_dim(dim)])
    self.assertNear(np.linalg.norm(y) / np.linalg.norm(x), 1.0, 2e-6)
    back = hadamard.inverse_rotate(y, _SEED, dim, num_repeats)
    self.assertLess(_relative_error(back.numpy(), x), 2e-6)

  @parameterized.parameters(1, 2)
  def test_commutes_with_summation(self, num_repeats):
    x = np.random.default_rng(1).normal(size=[10, 3000])
    rotated = sum(hadamard.rotate(row, _SEED, num_repeats) for row in x)
    self.assertAllClose(
      rotated, hadamard.rotate(x.sum(axis=0), _SEED, num_repeats), atol=1e-12
    )

  def test_same_in_a_graph_and_under_another_seed_different(self):
    x = np.random.default_rng(2).normal(size=1000).astype(np.float32)
    graph = tf.function(hadamard.rotate, autograph=False)
    self.assertAllClose(
      graph(x, tf.constant(_SEED)), hadamard.rotate(x, _SEED), atol=1e-6
    )
    other = hadamard.rotate(x, _SEED + 1)
    self.assertNotAllClose(other, hadamard.rotate(x, _SEED), atol=1e-2)

  def test_repeats_use_different_signs(self):
    ones = np.ones(64, np.float32)
    once = hadamard.rotate(ones, _SEED)
    twice = hadamard.transform(hadamard.flip_signs(once, _SEED))
    self.assertNotAllClose(hadamard.rotate(ones, _SEED, 2), twice, atol=1e-3)

  @parameterized.parameters(1, 2, 3)
  def test_dense_input_becomes_normal(self, seed):
    # Skewed, with outliers: excess kurtosis in the thousands.
    rng = np.random.default_rng(seed)
    x = np.exp(2.0 * rng.normal(size=2**16)).astype(np.float32)
    z = hadamard.rotate(x, np.array([seed, 7], np.int64)).numpy()
    z = z.astype(np.float64) / np.sqrt(np.mean(z.astype(np.float64) ** 2))
    tolerance = stat_checks.Z * stat_checks.kurtosis_error(2**16)
    # The exact excess is -2 sum x^4 / (sum x^2)^2 over the random signs.
    energy = x.astype(np.float64) ** 2
    expected = -2.0 * np.sum(energy**2) / np.sum(energy) ** 2
    self.assertLess(abs(np.mean(z**4) - 3.0 - expected), tolerance + 0.05)

  @parameterized.parameters(1, 2, 3)
  def test_second_repeat_makes_a_sparse_vector_normal(self, seed):
    x = np.zeros(2**16, np.float32)
    x[[5, 50_000]] = 1.0
    seed = np.array([seed, 7], np.int64)

    def excess_kurtosis(num_repeats):
      z = hadamard.rotate(x, seed, num_repeats).numpy().astype(np.float64)
      return np.mean(z**4) / np.mean(z**2) ** 2 - 3.0

    tolerance = stat_checks.Z * stat_checks.kurtosis_error(2**16)
    self.assertLess(abs(excess_kurtosis(2)), tolerance)
    self.assertNear(excess_kurtosis(1), -1.0, 1e-3)  # -2 / j for j = 2.

  @parameterized.product(
    num_nonzero=[1, 2, 3, 16, 200, 4000], dim=[65_536, 69_802, 100_000]
  )
  def test_stripes_share_the_energy_of_a_run_of_neighbours(
    self, num_nonzero, dim
  ):
    x = np.zeros(dim, np.float32)
    x[:num_nonzero] = np.random.default_rng(num_nonzero).normal(
      size=num_nonzero
    )
    z = hadamard.rotate(x, _SEED).numpy()
    shares = np.mean(np.reshape(z, [-1, 16]) ** 2, axis=0) / np.mean(z**2)
    self.assertAllClose(shares, np.ones(16), atol=1e-3)

  @parameterized.parameters(1, 2, 3)
  def test_stripes_share_the_energy_of_scattered_values(self, seed):
    x = np.zeros(65_536, np.float32)
    rng = np.random.default_rng(seed)
    x[rng.choice(len(x), 300, replace=False)] = rng.normal(size=300)
    z = hadamard.rotate(x, np.array([seed, 0], np.int64)).numpy()
    shares = np.mean(np.reshape(z, [-1, 16]) ** 2, axis=0) / np.mean(z**2)
    # Pairs of values that fall on one class of the stripes' group give each
    # stripe the spread of a sum of about 300 squares.
    tolerance = stat_checks.z_for(16) * math.sqrt(2.0 / 300)
    self.assertLess(np.max(np.abs(shares - 1.0)), tolerance)

  def test_empty_input_is_rejected(self):
    with self.assertRaisesRegex(ValueError, '`dim` must be an int of at least'):
      hadamard.rotate(tf.zeros([0]), _SEED)

  def test_inverse_rejects_a_vector_of_another_size(self):
    with self.assertRaisesWithLiteralMatch(
      ValueError,
      '`y` must have `padded_dim(1000)` = 1008 entries, found 1024.',
    ):
      hadamard.inverse_rotate(tf.zeros([1024]), _SEED, 1000)


# A process of its own, whose peak memory nothing else has raised before.
_MEMORY_PROGRAM = """
import resource
import tensorflow as tf
from tff_autotune_secagg.numerics import hadamard

def peak():
  return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

dim = 2**23
transform = tf.function(hadamard.transform, autograph=False)
inverse = tf.function(hadamard.inverse_transform, autograph=False)
for size in (2**12, dim):  # The first loads kernels and starts threads.
  x = tf.zeros([size])
  before = peak()
  for run in (transform, inverse):
    run(x)
    tensors = (peak() - before) / (4 * size)
print(tensors)
"""


class MemoryTest(absltest.TestCase):
  def test_holds_one_intermediate_tensor_beside_input_and_result(self):
    project = str(pathlib.Path(__file__).parents[2])
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL='3', PYTHONPATH=project)
    output = subprocess.run(
      [sys.executable, '-c', _MEMORY_PROGRAM],
      cwd=project,
      env=environment,
      check=True,
      capture_output=True,
      text=True,
    ).stdout
    self.assertLess(float(output), 2.5)


if __name__ == '__main__':
  absltest.main()

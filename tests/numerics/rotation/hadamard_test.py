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

from tff_autotune_secagg.numerics.reading import stripes
from tff_autotune_secagg.numerics.rotation import hadamard

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
    self.assertTrue(np.all(padded[large] % stripes.NUM_STRIPES == 0))

  def test_keeps_its_bound_for_large_dims(self):
    # The bound can only be approached just above an order.
    orders = _orders_below(1 << 33)
    dims = orders[(orders >= 1024) & (orders < 1 << 32)] + 1
    padded = np.array([hadamard.padded_dim(int(dim)) for dim in dims])
    self.assertLessEqual(np.max(padded / dims), 1.06)
    self.assertTrue(np.all(padded % stripes.NUM_STRIPES == 0))

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
      if hadamard.factors(order)[0] % stripes.NUM_STRIPES
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


# A process of its own, whose peak memory nothing else has raised before.
_MEMORY_PROGRAM = """
import resource
import tensorflow as tf
from tff_autotune_secagg.numerics.rotation import hadamard

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
    environment = dict(
      os.environ,
      TF_CPP_MIN_LOG_LEVEL='3',
      PYTHONPATH=project,
      # oneDNN, which TensorFlow takes where the processor has AVX-512 VNNI, has
      # an allocator that keeps what was freed.
      TF_ENABLE_ONEDNN_OPTS='0',
    )
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

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import functools

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests import stat_checks
from tff_autotune_secagg.numerics.download import low_bit_leaves
from tff_autotune_secagg.numerics.download import normal_levels
from tff_autotune_secagg.numerics.download import packing
from tff_autotune_secagg.numerics.rotation import hadamard
from tff_autotune_secagg.numerics.rotation import randomized_hadamard

_SIZES = 5000, 3000
_ALL_BITS = 2, 3, 4, 5, 6, 7, 8


def _normal(rng):
  return rng.standard_normal(_SIZES[0])


def _sparse(rng):
  values = np.zeros(_SIZES[0])
  values[rng.choice(_SIZES[0], 20, replace=False)] = rng.standard_normal(20)
  return values


def _constant(rng):
  del rng  # Unused.
  return np.ones(_SIZES[0])


def _outliers(rng):
  values = rng.standard_normal(_SIZES[0])
  values[:5] *= 1000
  return values


@functools.lru_cache(maxsize=None)
def _coded(bits, sizes=_SIZES):
  """(encode, decode) of float32 tensors of these sizes, traced once."""
  specs = [tf.TensorSpec([size]) for size in sizes]
  codec = low_bit_leaves.LowBitLeaves(
    specs, num_trainable=len(sizes), bits=bits
  )
  return (
    tf.function(codec.encode, autograph=False),
    tf.function(codec.decode, autograph=False),
  )


def _seed(*numbers):
  return tf.constant(numbers, tf.int64)


def _nmse(found, wanted):
  unit = np.max(np.abs(np.float64(wanted)))  # Squares must not overflow.
  wanted = np.float64(wanted) / unit
  return np.sum((found / unit - wanted) ** 2) / np.sum(wanted**2)


class ErrorTest(parameterized.TestCase):
  @parameterized.product(
    bits=_ALL_BITS, kind=(_normal, _sparse, _constant, _outliers)
  )
  def test_is_the_predicted_one_in_each_tensor(self, bits, kind):
    rng = np.random.default_rng(bits)
    # A thousand times smaller: each tensor has a scale of its own.
    leaves = [np.float32(kind(rng)), np.float32(1e-3 * rng.normal(size=3000))]
    encode, decode = _coded(bits)
    errors, told = [], []
    for number in range(12):
      message, nmse = encode([tf.constant(x) for x in leaves], _seed(number, 5))
      found = decode(message)
      errors.append([_nmse(y, x) for y, x in zip(found, leaves)])
      told.append(float(nmse))
    predicted = low_bit_leaves.predicted_nmse(bits, sum(_SIZES))
    for of_tensor in np.transpose(errors):
      error = stat_checks.mean_error(np.std(of_tensor, ddof=1), 12)
      z = stat_checks.z_for(12)
      self.assertTrue(
        stat_checks.is_near(np.mean(of_tensor), predicted, error, z),
        (np.mean(of_tensor) / predicted, error / predicted),
      )
      # Negative control: a bit more or less is told apart.
      self.assertFalse(
        stat_checks.is_near(np.mean(of_tensor), predicted / 2, error, z)
      )
    # What the server says is what clients get. The second tensor is small.
    np.testing.assert_allclose(told, np.array(errors)[:, 0], rtol=1e-2)

  def test_the_mean_over_rotations_is_the_model(self):
    bits, size, num_draws = 2, 2048, 300
    leaf = np.float32(np.random.default_rng(1).standard_normal(size))
    encode, decode = _coded(bits, (size,))
    shares, nearest = [], []
    stddev = np.sqrt(leaf @ leaf / hadamard.padded_dim(size))
    levels = np.float32(stddev * normal_levels.best_levels(bits).levels)

    @tf.function
    def plain_of(codes, seed):
      values = tf.gather(levels, packing.unpack(codes, bits))
      return randomized_hadamard.inverse_rotate(values, seed, size, 2)

    for number in range(num_draws):
      seed = _seed(number, 6)
      message, _ = encode([tf.constant(leaf)], seed)
      (found,) = decode(message)
      shares.append(found.numpy() @ leaf / (leaf @ leaf))
      # The negative control: levels times the root mean square.
      plain = plain_of(message['codes'], seed)
      nearest.append(plain.numpy() @ leaf / (leaf @ leaf))
    error = stat_checks.mean_error(np.std(nearest, ddof=1), num_draws)
    # By construction each draw has all of the model along the model, but for
    # the padding that is not looked at.
    self.assertLess(abs(np.mean(shares) - 1), 5 * error + 1e-4)
    self.assertLess(np.mean(nearest), 1 - 50 * error)

  def test_coordinates_are_unbiased(self):
    bits, size, num_draws = 2, 1024, 400
    leaf = np.float32(np.random.default_rng(2).standard_normal(size))
    encode, decode = _coded(bits, (size,))
    total = np.zeros(size)
    for number in range(num_draws):
      message, _ = encode([tf.constant(leaf)], _seed(number, 7))
      total += decode(message)[0].numpy()
    # The error of the mean is the error of one draw over the draws.
    expected = low_bit_leaves.predicted_nmse(bits, size) / num_draws
    spread = expected * np.sqrt(2 / size)
    self.assertLess(abs(_nmse(total / num_draws, leaf) - expected), 5 * spread)
    # Negative control: a shrunk model, as without the factor.
    kept = 1 - normal_levels.best_levels(bits).distortion
    self.assertGreater(
      _nmse(kept * total / num_draws, leaf) - expected, 5 * spread
    )


class EdgeTest(parameterized.TestCase):
  def _through(self, leaves, bits=8, num_trainable=None):
    specs = [tf.TensorSpec(x.shape, x.dtype) for x in leaves]
    codec = low_bit_leaves.LowBitLeaves(
      specs, num_trainable=num_trainable or len(leaves), bits=bits
    )
    message, nmse = codec.encode([tf.constant(x) for x in leaves], _seed(1, 2))
    found = codec.decode(message)
    for spec, leaf in zip(specs, found):
      self.assertEqual((spec.dtype, spec.shape), (leaf.dtype, leaf.shape))
    num_bytes = sum(
      np.asarray(x).nbytes for x in tf.nest.flatten(dict(message))
    )
    self.assertEqual(num_bytes, codec.bytes_per_client)
    return [leaf.numpy() for leaf in found], float(nmse), codec

  def test_only_large_trainable_floats_are_coded(self):
    rng = np.random.default_rng(3)
    leaves = [
      rng.standard_normal([40, 30]),
      np.float32(rng.standard_normal(1023)),
      rng.integers(-9, 9, 2000),
      rng.standard_normal([50, 30]).astype(np.float16),
      rng.standard_normal(1024).astype(tf.bfloat16.as_numpy_dtype),
      np.float32(rng.standard_normal(5000)),
      np.array([True, False]),
    ]
    found, nmse, codec = self._through(leaves, num_trainable=5)
    self.assertEqual(codec.dim, 1200 + 1500 + 1024)
    for index in (1, 2, 5, 6):
      np.testing.assert_array_equal(found[index], leaves[index])
    predicted = low_bit_leaves.predicted_nmse(8, codec.dim)
    self.assertLess(abs(_nmse(found[0], leaves[0]) / predicted - 1), 0.5)
    # Half a unit in the last place of ten bits and of eight.
    self.assertLess(_nmse(found[3], leaves[3]), 2 * predicted)
    self.assertLess(_nmse(found[4], leaves[4]), 2 * predicted + 4.0**-9)
    self.assertLess(nmse, 2 * predicted)

  def test_a_model_without_a_large_tensor_arrives_as_it_is(self):
    leaves = [np.float32([1.5, np.nan]), np.float32(2.0)]
    found, nmse, codec = self._through(leaves)
    np.testing.assert_array_equal(found[0], leaves[0])
    self.assertEqual((found[1], nmse, codec.dim), (2.0, 0.0, 0))

  def test_zeros_stay_zeros(self):
    leaves = [np.zeros(1100, np.float32), np.float32(np.arange(2000.0))]
    found, nmse, _ = self._through(leaves)
    np.testing.assert_array_equal(found[0], leaves[0])
    self.assertLess(nmse, 1e-4)
    (found,), nmse, _ = self._through(leaves[:1])
    np.testing.assert_array_equal(found, leaves[0])
    self.assertEqual(nmse, 0.0)

  @parameterized.parameters(np.nan, np.inf, -np.inf)
  def test_what_is_not_finite_arrives_as_nan(self, broken):
    leaves = [np.ones(1100, np.float32), np.ones(1200, np.float32)]
    leaves[1][7] = broken
    found, nmse, _ = self._through(leaves)
    for leaf in found:
      self.assertTrue(np.all(np.isnan(leaf)))
    self.assertTrue(np.isnan(nmse))

  @parameterized.parameters(
    (3e38, np.float32),
    (1e-36, np.float32),
    (1e30, np.float32),
    (1e300, np.float64),
    (1e-300, np.float64),
  )
  def test_ends_of_the_range_arrive(self, size, dtype):
    rng = np.random.default_rng(4)
    for bits in (2, 8):
      leaves = [
        (size * np.clip(rng.standard_normal(1500), -1, 1)).astype(dtype),
        np.float32(rng.standard_normal(1500)),
      ]
      found, nmse, codec = self._through(leaves, bits=bits)
      predicted = low_bit_leaves.predicted_nmse(bits, codec.dim)
      for leaf, wanted in zip(found, leaves):
        self.assertTrue(np.all(np.isfinite(leaf)))
        self.assertLess(_nmse(leaf, wanted), 1.3 * predicted)
      self.assertLess(nmse, 1.3 * predicted)

  def test_what_is_too_small_for_tensorflow_arrives_as_zero_or_as_it_is(self):
    # Below 1.2e-38 TensorFlow takes a float32 for 0.
    wanted = np.full(1500, 1e-38, np.float32)
    (found,), nmse, _ = self._through([wanted])
    self.assertTrue(np.all(np.isfinite(found)))
    self.assertLess(np.max(np.abs(found)), 2e-38)
    self.assertFalse(np.isnan(nmse))


if __name__ == '__main__':
  absltest.main()

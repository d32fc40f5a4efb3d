# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Integers around every border, against Python integers that have none."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests import factory_conformance
from tff_autotune_secagg.factories import modular_sum
from tff_autotune_secagg.numerics.reading import stripes
from tff_autotune_secagg.numerics.rounding import quantization

setUpModule = factory_conformance.set_up_context

_PRIME_BELOW_2_30 = 2**30 - 35
_MODULI = (
  2,
  3,
  5,
  7,
  2**8 - 1,
  2**8,
  2**8 + 1,
  2**16 - 15,
  2**16,
  2**16 + 1,
  2**24 - 3,
  2**24,
  2**24 + 1,
  3 * 2**28,
  _PRIME_BELOW_2_30,
  2**30 - 1,
  2**30,
)


def _residues(modulus, num_clients, size=24):
  """Random residues; the first columns hold the extremes for all clients."""
  rng = np.random.default_rng([modulus, num_clients])
  residues = rng.integers(0, modulus, size=(num_clients, size))
  residues[:, 0] = modulus - 1
  residues[:, 1] = 0
  residues[:, 2] = modulus // 2
  return residues.astype(np.int32)


class ModularSumTest(parameterized.TestCase):
  # Each compiles a process; `secure_sum_test` has more.
  @parameterized.parameters(
    2, 3, 2**8, 2**16 + 1, 2**24 + 1, 3 * 2**28, _PRIME_BELOW_2_30, 2**30
  )
  def test_equals_python_integers(self, modulus):
    factory = modular_sum.ExactModularSumFactory(modulus=modulus)
    process = factory.create(tff.TensorType(np.int32, [24]))
    state = process.initialize()
    # A thousand clients cost a second: only where int32 is nearest to overflow.
    most = 1000 if modulus in (2, 3 * 2**28, 2**30) else 50
    for num_clients in (1, 2, most):
      residues = _residues(modulus, num_clients)
      output = process.next(state, list(residues))
      expected = [sum(map(int, column)) % modulus for column in residues.T]
      self.assertEqual([int(x) for x in output.result], expected)


class ReduceTest(parameterized.TestCase):
  @parameterized.product(modulus=_MODULI, dtype=(tf.int32, tf.int64))
  def test_equals_python_modulo(self, modulus, dtype):
    borders = [0, 1, modulus // 2, modulus - 1, modulus, modulus + 1, 2**30]
    borders += [dtype.max, dtype.max - 1]
    integers = [s * x for x in borders for s in (1, -1)] + [dtype.min]
    found = quantization.reduce_modulo(tf.constant(integers, dtype), modulus)
    self.assertEqual(
      [int(x) for x in found.numpy()], [x % modulus for x in integers]
    )

  @parameterized.parameters(*_MODULI)
  def test_centre_is_the_nearest_to_zero(self, modulus):
    residues = sorted(
      {
        0,
        1 % modulus,
        modulus // 2,
        (modulus - 1) // 2,
        (modulus + 1) // 2 % modulus,
        modulus - 1,
      }
    )
    found = quantization.centre(tf.constant(residues, tf.int32), modulus)
    for residue, centred in zip(residues, found.numpy()):
      self.assertEqual(int(centred) % modulus, residue)
      self.assertBetween(int(centred), -(modulus // 2), (modulus - 1) // 2)


class EncodedSumTest(parameterized.TestCase):
  """Encoding, Python's sum, decoding: exact for values on the grid."""

  @parameterized.product(modulus=_MODULI, num_clients=(1, 2, 100))
  def test_grid_points_come_back_exactly(self, modulus, num_clients):
    rng = np.random.default_rng([3, modulus, num_clients])
    # Integers that float32 has, whose sum stays within half a period.
    limit = min((modulus - 1) // 2 // num_clients, 2**24)
    integers = rng.integers(-limit, limit + 1, size=(num_clients, 32))
    bin_size = 2.0**-7
    encoded = quantization.encode(
      tf.constant(integers * bin_size, tf.float32),
      tf.fill([stripes.NUM_STRIPES], bin_size),
      tf.constant([modulus, num_clients], tf.int64),
      modulus=modulus,
    )
    total = encoded.numpy().astype(object).sum(axis=0)
    residues = tf.constant([int(t) % modulus for t in total], tf.int32)
    decoded = quantization.centre(residues, modulus).numpy()
    np.testing.assert_array_equal(decoded, integers.sum(axis=0))


if __name__ == '__main__':
  absltest.main()

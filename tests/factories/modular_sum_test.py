# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `secure_sum`; the oracle is the sum of Python's integers."""

import collections

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow_federated as tff

from tests import factory_conformance
from tff_autotune_secagg.factories import modular_sum

setUpModule = factory_conformance.set_up_context

_NUM_ENTRIES = 24


class ExactModularSumConformanceTest(
  factory_conformance.FactoryConformanceTest
):
  rule = factory_conformance.INTEGERS
  value_type = factory_conformance.NESTED_INTEGERS
  counts_rounds = False

  def factory(self):
    return modular_sum.ExactModularSumFactory(modulus=2**20)

  def secure_factory(self):
    return modular_sum.ExactModularSumFactory(modulus=5)


class ExactModularSumTypeTest(absltest.TestCase):
  def test_signature(self):
    value_type = tff.TensorType(np.int64, [3])
    process = modular_sum.ExactModularSumFactory(modulus=257).create(value_type)
    signature = process.next.type_signature
    self.assertEqual(signature.parameter[0], tff.FederatedType((), tff.SERVER))
    self.assertEqual(
      signature.result.measurements,
      tff.FederatedType(collections.OrderedDict(), tff.SERVER),
    )


class ExactModularSumExecutionTest(parameterized.TestCase):
  def _sum(self, process, values):
    return process.next(process.initialize(), values).result

  @parameterized.parameters(
    2,
    3,
    5,
    255,
    256,
    257,
    2**16,
    2**24,
    2**30 - 35,  # A prime.
    3 * 2**28,
    2**30,
  )
  def test_is_the_exact_sum_modulo_modulus(self, modulus):
    """Residues at random and at both ends; all clients at the top end, too."""
    process = modular_sum.ExactModularSumFactory(modulus=modulus).create(
      tff.TensorType(np.int32, [_NUM_ENTRIES])
    )
    rng = np.random.default_rng(modulus)
    counts = [1, 2, 7, 100]
    if modulus == 2**30 - 35:
      counts.append(1000)  # The sum passes 2**39.
    for num_clients in counts:
      values = rng.integers(0, modulus, [num_clients, _NUM_ENTRIES], np.int32)
      values[:, 0] = 0
      values[:, 1] = modulus - 1
      result = self._sum(process, list(values))
      self.assertEqual(result.dtype, np.int32)
      expected = [
        sum(int(value) for value in column) % modulus for column in values.T
      ]
      self.assertSequenceEqual(result.tolist(), expected)

  @parameterized.parameters(2**30 - 35, 2**30)
  def test_reduces_values_of_any_size(self, modulus):
    """And is 0 without clients."""
    process = modular_sum.ExactModularSumFactory(modulus=modulus).create(
      tff.TensorType(np.int64, [4])
    )
    big = [-1, 2**63 - 1, -(2**63), modulus]
    values = [np.array(big, np.int64)] * 3
    result = self._sum(process, values)
    self.assertEqual(result.dtype, np.int64)
    self.assertSequenceEqual(result.tolist(), [3 * x % modulus for x in big])
    self.assertSequenceEqual(self._sum(process, []).tolist(), [0] * 4)


class ExactModularSumErrorTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('one', 1, ValueError, '1 (int)'),
    ('too_large', 2**30 + 1, ValueError, '1073741825 (int)'),
    ('bool', True, TypeError, 'True (bool)'),
    ('float', 256.0, TypeError, '256.0 (float)'),
    ('text', '256', TypeError, "'256' (str)"),
    ('none', None, TypeError, 'None (NoneType)'),
  )
  def test_rejects_modulus(self, modulus, error, found):
    with self.assertRaisesWithLiteralMatch(
      error,
      '`modulus` must be an int of at least 2 and at most 1073741824, found'
      f' {found}.',
    ):
      modular_sum.ExactModularSumFactory(modulus=modulus)


if __name__ == '__main__':
  absltest.main()

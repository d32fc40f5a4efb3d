# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `rotation`.

The double under the factory shows the sum of the rotated vectors.
"""

import collections

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow_federated as tff

from tests import doubles
from tests import factory_conformance
from tff_autotune_secagg.factories import rotation
from tff_autotune_secagg.numerics.rotation import hadamard

setUpModule = factory_conformance.set_up_context


def _factory(**options):
  return rotation.HadamardRotationFactory(
    doubles.SumPlusOneFactory(), **options
  )


class RotationConformanceTest(factory_conformance.FactoryConformanceTest):
  atol = 0.1  # bfloat16 has steps of 1/16 at the largest entry, 15.
  counts_rounds = False

  def factory(self):
    return rotation.HadamardRotationFactory(
      tff.aggregators.SumFactory(), seed=11
    )

  def secure_factory(self):
    return rotation.HadamardRotationFactory(
      tff.aggregators.SecureSumFactory(100.0), seed=11
    )


class RotationExecutionTest(absltest.TestCase):
  """Of two equal vectors of 37 entries and a scalar, two clients."""

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    vector = tff.TensorType(np.float32, [37])
    cls._process = _factory(seed=5).create(
      tff.to_type(
        collections.OrderedDict(
          a=vector, b=vector, c=tff.TensorType(np.float64)
        )
      )
    )
    rng = np.random.default_rng(1)
    x = rng.standard_normal(37).astype(np.float32)
    cls._value = collections.OrderedDict(a=x, b=x, c=-1.5)
    cls._state = cls._process.initialize()
    cls._one = cls._process.next(cls._state, [cls._value])
    cls._two = cls._process.next(cls._state, [cls._value] * 2)

  def test_signature(self):
    signature = self._process.next.type_signature
    vector = tff.TensorType(np.float32, [40])  # 40 = 20 * 2.
    self.assertEqual(
      signature.result.measurements,
      tff.FederatedType(
        collections.OrderedDict(
          a=vector, b=vector, c=tff.TensorType(np.float64, [1])
        ),
        tff.SERVER,
      ),
    )
    self.assertEqual(
      signature.parameter[0],
      tff.FederatedType(
        collections.OrderedDict(
          settings=collections.OrderedDict(
            dim=np.int64, num_rotations=np.int64
          ),
          seed=tff.TensorType(np.int64, [2]),
          round=np.int64,
          inner=np.int32,
        ),
        tff.SERVER,
      ),
    )

  def test_rotation_preserves_the_norm(self):
    for name, leaf in self._one.measurements.items():
      np.testing.assert_allclose(
        np.linalg.norm(leaf), np.linalg.norm(self._value[name]), rtol=1e-6
      )

  def test_all_clients_rotate_alike(self):
    for name, leaf in self._two.measurements.items():
      np.testing.assert_allclose(
        leaf, 2 * self._one.measurements[name], rtol=1e-6
      )

  def test_leaves_and_rounds_rotate_differently(self):
    rotated = self._one.measurements
    later = self._process.next(self._one.state, [self._value]).measurements
    for other in (rotated['b'], later['a']):
      # 40 independent signs; equal or opposite vectors would give 1.
      cosine = np.dot(rotated['a'], other) / np.sum(np.square(other))
      self.assertLess(abs(cosine), 0.9)

  def test_inner_factory_is_used_and_its_result_rotated_back(self):
    """The double adds 1 to each rotated entry: a vector of norm sqrt(40)."""
    added = self._one.result['c'] - self._value['c']
    self.assertAlmostEqual(abs(added), 1.0, places=12)  # H of order 1.
    difference = self._one.result['a'] - self._value['a']  # 37 entries of 40.
    self.assertLessEqual(np.linalg.norm(difference), np.sqrt(40) + 1e-4)
    self.assertGreater(np.linalg.norm(difference), 1.0)

  def test_state_counts_rounds_and_keeps_the_seed(self):
    self.assertEqual(self._one.state['round'], 1)
    self.assertEqual(self._one.state['inner'], 1)
    np.testing.assert_array_equal(self._one.state['seed'], self._state['seed'])

  def test_state_of_another_size_is_refused_in_one_sentence(self):
    state = self._process.initialize()
    state['settings']['dim'] = np.int64(74)
    with self.assertRaisesWithLiteralMatch(
      ValueError,
      'The state was written with `dim` 74, but this HadamardRotationFactory'
      ' has `dim` 75: start from `initialize()` or use the model of the'
      ' checkpoint.',
    ):
      self._process.next(state, [self._value])


class RotationMinDimTest(absltest.TestCase):
  def test_smaller_leaves_are_padded_and_empty_ones_stay_empty(self):
    process = _factory(min_dim=50, seed=5).create(
      tff.to_type(
        collections.OrderedDict(
          a=tff.TensorType(np.float32, [3]),
          b=tff.TensorType(np.float32, [0]),
          c=tff.TensorType(np.float32, [60]),
        )
      )
    )
    value = collections.OrderedDict(
      a=np.float32([1, 2, 3]), b=np.float32([]), c=np.ones(60, np.float32)
    )
    output = process.next(process.initialize(), [value])
    sizes = [leaf.size for leaf in output.measurements.values()]
    self.assertEqual(sizes, [52, 0, 60])  # 52 and 60 are Paley's.
    norm = np.linalg.norm(output.measurements['a'])
    np.testing.assert_allclose(norm, np.sqrt(14), rtol=1e-6)
    self.assertEqual([leaf.size for leaf in output.result.values()], [3, 0, 60])


class RotationRepeatsTest(absltest.TestCase):
  def test_signs_are_exactly_one_and_repeats_spread_further(self):
    spike = np.zeros(32, np.float32)
    spike[7] = 1.0
    for repeats in (1, 2):
      process = _factory(num_rotations=repeats).create(
        tff.TensorType(np.float32, [32])
      )
      state = process.initialize()
      output = process.next(state, [spike])
      magnitudes = np.abs(output.measurements)
      if repeats == 1:
        # One column of H times a sign: all of the same size, to the last bit.
        self.assertLen(set(magnitudes.tolist()), 1)
        np.testing.assert_allclose(magnitudes, 1 / np.sqrt(32), rtol=1e-7)
      else:
        self.assertGreater(len(set(magnitudes.tolist())), 2)
      # A seed that is not given is drawn in each `initialize`.
      self.assertNotEqual(
        state['seed'].tolist(), process.initialize()['seed'].tolist()
      )

  def test_order_is_the_smallest_of_the_package(self):
    for dim in (1, 3, 74):
      process_type = (
        _factory().create(tff.TensorType(np.float64, [dim])).next.type_signature
      )
      self.assertEqual(
        process_type.result.measurements.member.shape,
        (hadamard.padded_dim(dim),),
      )


class RotationErrorTest(parameterized.TestCase):
  def test_rejects_inner_factory(self):
    with self.assertRaisesWithLiteralMatch(
      TypeError,
      '`inner_factory` must be an unweighted aggregation factory, found None'
      ' (NoneType).',
    ):
      rotation.HadamardRotationFactory(None)

  @parameterized.named_parameters(
    ('zero', 0, ValueError, '0 (int)'),
    ('nine', 9, ValueError, '9 (int)'),
    ('bool', True, TypeError, 'True (bool)'),
  )
  def test_rejects_num_rotations(self, num_rotations, error, found):
    with self.assertRaisesWithLiteralMatch(
      error,
      '`num_rotations` must be an int of at least 1 and at most 8, found'
      f' {found}.',
    ):
      _factory(num_rotations=num_rotations)

  @parameterized.named_parameters(
    ('negative', -1, ValueError, '-1 (int)'),
    ('too_large', 2**63, ValueError, '9223372036854775808 (int)'),
    ('float', 1.0, TypeError, '1.0 (float)'),
  )
  def test_rejects_seed(self, seed, error, found):
    with self.assertRaisesWithLiteralMatch(
      error,
      '`seed` must be an int of at least 0 and at most 9223372036854775807,'
      f' found {found}.',
    ):
      _factory(seed=seed)


if __name__ == '__main__':
  absltest.main()

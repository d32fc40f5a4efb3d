# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the factory of distributed DP, through TFF's runtime."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow_federated as tff

from tests import factory_conformance
from tests import stat_checks
from tff_autotune_secagg.factories import distributed_dp

setUpModule = factory_conformance.set_up_context

_DIM = 2000


def _factory(**options):
  settings = dict(
    noise_multiplier=1.0,
    min_clients=4,
    l2_norm_clip=1.0,
    modulus=None,
    seed=1,
    client_seed_fn=None,
  )
  settings.update(options)
  return distributed_dp.DistributedDpFactory(**settings)


def _process(dim=_DIM, **options):
  return _factory(**options).create(tff.TensorType(np.float32, [dim]))


class TypeTest(absltest.TestCase):
  def test_any_structure_of_floats_keeps_its_containers_and_dtypes(self):
    value_type = factory_conformance.NESTED_FLOATS
    process = _factory(l2_norm_clip=None).create(value_type)
    values = [
      factory_conformance.nested_client_value(value_type, i) for i in range(4)
    ]
    output = process.next(process.initialize(), values)
    found = factory_conformance.leaves_of(output.result)
    for leaf, like in zip(found, factory_conformance.leaves_of(values[0])):
      self.assertEqual((leaf.dtype, leaf.shape), (like.dtype, like.shape))
    self.assertIs(type(output.result['pair']), factory_conformance.Pair)
    signature = process.next.type_signature
    tff.test.assert_types_identical(
      signature.parameter[0], signature.result.state
    )

  def test_refuses_other_value_types(self):
    factory = _factory()
    for name, value_type, message in factory_conformance.refused_types(
      factory_conformance.FLOATS
    ):
      with self.subTest(name):
        with self.assertRaisesWithLiteralMatch(TypeError, message):
          factory.create(value_type)


class RoundTest(parameterized.TestCase):
  @parameterized.product(l2_norm_clip=[0.5, None], num_clients=[4, 6])
  def test_error_is_that_of_the_central_gaussian(
    self, l2_norm_clip, num_clients
  ):
    process = _process(l2_norm_clip=l2_norm_clip)
    rng = np.random.default_rng(3)
    values = rng.normal(size=[num_clients, _DIM]).astype(np.float32)
    state = process.initialize()
    for _ in range(3):
      output = process.next(state, list(values))
      state, measured = output.state, output.measurements
      norms = np.linalg.norm(values, axis=1, keepdims=True)
      clipped = values * np.minimum(1.0, measured['clip_norm'] / norms)
      errors = num_clients * (output.result - clipped.mean(axis=0))
      # As much more noise as there are more clients than four.
      variance = measured['noise_stddev'] ** 2 * num_clients / 4
      spread = np.var(errors.astype(np.float64), ddof=1)
      error = stat_checks.variance_error(variance, _DIM)
      # Clipping to a share of the norm, and wrapping, are seen at 2 %.
      error += 0.02 * variance / stat_checks.Z
      self.assertTrue(stat_checks.is_near(spread, variance, error))

  @parameterized.parameters(1, 2, 3)
  def test_error_energy_is_that_of_tff_s_central_gaussian(self, seed):
    rng = np.random.default_rng(seed)
    values = list(rng.normal(size=[20, _DIM]).astype(np.float32))
    wanted = sum(value / np.linalg.norm(value) for value in values)
    theirs = tff.aggregators.DifferentiallyPrivateFactory.gaussian_fixed(
      1.0, 20, 1.0
    )
    energies = []
    for factory in (_factory(min_clients=20), theirs):
      process = factory.create(tff.TensorType(np.float32, [_DIM]))
      result = process.next(process.initialize(), values).result
      energies.append(np.sum((20.0 * result - wanted) ** 2))
    # Two variances of as many coordinates.
    error = 2.0 / np.sqrt(_DIM)
    self.assertTrue(stat_checks.is_near(energies[0] / energies[1], 1.0, error))

  def test_refused_round_keeps_the_clip_norm(self):
    process = _process(l2_norm_clip=None)
    state = process.initialize()
    values = [np.ones([_DIM], np.float32)] * 4
    self.assertNotEqual(
      process.next(state, values).state['clip_norm'], state['clip_norm']
    )
    output = process.next(state, values[:3])
    self.assertEqual(np.count_nonzero(output.result), 0)
    self.assertEqual(output.state['clip_norm'], state['clip_norm'])
    self.assertTrue(output.measurements['refused'])
    self.assertEqual(output.measurements['share_within_clip_norm'], 0.0)

  def test_broken_clients_count_and_send_noise(self):
    process = _process()
    good = np.full([_DIM], 1.0 / np.sqrt(_DIM), np.float32)
    bad = good.copy()
    bad[7] = np.nan
    output = process.next(process.initialize(), [good, bad, bad, 0.0 * good])
    self.assertEqual(output.measurements['num_clients'], 4)
    self.assertFalse(output.measurements['refused'])
    along = 4.0 * float(output.result @ good)
    # One update of norm 1, and noise of standard deviation 1.
    self.assertTrue(stat_checks.is_near(along, 1.0, 1.0))
    spread = np.var(4.0 * output.result, ddof=1)
    error = stat_checks.variance_error(1.0, _DIM)
    self.assertTrue(stat_checks.is_near(spread, 1.0, error + 1e-3))

  def test_clip_norm_reaches_the_median(self):
    process = _process(l2_norm_clip=None, min_clients=20)
    rng = np.random.default_rng(1)
    values = rng.normal(size=[20, _DIM]).astype(np.float32)
    values *= np.linspace(0.5, 1.5, 20, dtype=np.float32)[:, np.newaxis]
    values *= np.float32(0.4 / np.sqrt(_DIM))
    state = process.initialize()
    for _ in range(25):
      state = process.next(state, list(values)).state
    self.assertBetween(state['clip_norm'], 0.28, 0.55)

  def test_same_clients_differ_in_noise_every_round(self):
    process = _process()
    values = [np.zeros([_DIM], np.float32)] * 4
    state = process.initialize()
    first, second = (process.next(state, values).result for _ in range(2))
    correlation = np.corrcoef(first, second)[0, 1]
    error = stat_checks.correlation_error(_DIM)
    self.assertTrue(stat_checks.is_near(correlation, 0.0, error))


class ModulusTest(parameterized.TestCase):
  @parameterized.parameters(
    (10, 2**20, 64), (100, 2**20, 128), (1000, 2**20, 512)
  )
  def test_planned_one_is_that_of_the_noise(self, min_clients, dim, modulus):
    found = distributed_dp.plan_modulus(
      num_clients=min_clients,
      noise_multiplier=1.0,
      min_clients=min_clients,
      dim=2**20,
      alignment=1.0,
    )
    self.assertEqual(found, modulus)

  def test_parallel_updates_have_room(self):
    process = _process(dim=1000, noise_multiplier=0.3, min_clients=50)
    value = np.ones([1000], np.float32)
    output = process.next(process.initialize(), [value] * 50)
    self.assertLess(output.measurements['wrap_probability'], 1e-3)
    self.assertGreater(output.measurements['bits_per_coordinate'], 7)
    error = 50.0 * (output.result - value / np.sqrt(1000))
    self.assertBetween(np.mean(error**2) / 0.3**2, 0.7, 1.3)

  def test_control_the_noise_alone_would_not_do(self):
    process = _process(
      dim=1000, noise_multiplier=0.3, min_clients=50, modulus=128
    )
    value = np.ones([1000], np.float32)
    output = process.next(process.initialize(), [value] * 50)
    self.assertGreater(output.measurements['wrap_probability'], 0.1)

  def test_no_modulus_is_an_error(self):
    with self.assertRaisesWithLiteralMatch(
      ValueError,
      '`noise_multiplier` 0.1 is too small for 4000000 clients: their sum needs'
      ' a modulus of 31 bits, more than 30. Raise `noise_multiplier`.',
    ):
      distributed_dp.plan_modulus(
        num_clients=4_000_000,
        noise_multiplier=0.1,
        min_clients=10_000,
        dim=1,
        alignment=1.0,
      )


if __name__ == '__main__':
  absltest.main()

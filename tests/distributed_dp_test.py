# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the public functions of distributed differential privacy."""

import copy
import math

from absl.testing import absltest
from absl.testing import parameterized
import dp_accounting
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests import factory_conformance
import tff_autotune_secagg as autotune

setUpModule = factory_conformance.set_up_context

_ROUNDS = dict(noise_multiplier=2.0, min_clients=100, num_rounds=10)
_VALUE_TYPE = tff.TensorType(np.float32, [500])


def _aggregator(**options):
  return autotune.distributed_dp_aggregator(
    **dict(dict(noise_multiplier=1.0, min_clients=3), **options)
  )


def _process(**options):
  return _aggregator(**options).create(_VALUE_TYPE)


class ArgumentsTest(parameterized.TestCase):
  """What `bad_arguments_test` does not show: relations, and whole messages."""

  def test_modulus_without_room_for_the_noise(self):
    with self.assertRaisesWithLiteralMatch(
      ValueError,
      '`modulus` 64 is too small for `min_clients` 100: their noise alone needs'
      ' 112. Raise `modulus`, or leave it out.',
    ):
      _aggregator(min_clients=100, modulus=64)
    _aggregator(min_clients=100, modulus=112)

  def test_one_client_hides_nobody(self):
    with self.assertRaisesWithLiteralMatch(
      ValueError,
      '`min_clients` must be an int of at least 2 and at most 1048576, found 1'
      ' (int).',
    ):
      _aggregator(min_clients=1)

  @parameterized.parameters(0, -1.0)
  def test_noise_multiplier_that_is_not_positive(self, value):
    with self.assertRaisesWithLiteralMatch(
      ValueError,
      '`noise_multiplier` must be a finite number of at least 0.0001 and at'
      f' most 1000, found {value!r} ({type(value).__name__}).',
    ):
      _aggregator(noise_multiplier=value)

  def test_noise_that_is_too_small_for_the_sampler(self):
    with self.assertRaisesRegex(
      ValueError,
      r'^`noise_multiplier` 0\.001 is too small for `min_clients` 1000:'
      r' .+ sampler takes\. Raise `noise_multiplier`\.$',
    ):
      _aggregator(noise_multiplier=0.001, min_clients=1000)

  def test_integer_leaf(self):
    value_type = tff.to_type([(np.float32, [3]), (np.int32, [2])])
    with self.assertRaisesWithLiteralMatch(
      TypeError,
      "`value_type` must hold only float tensors, found int32[2] at '1'.",
    ):
      _aggregator().create(value_type)

  def test_weighted_averaging_refuses_it(self):
    with self.assertRaisesRegex(TypeError, 'WeightedAggregationFactory'):
      tff.learning.algorithms.build_weighted_fed_avg(
        _model_fn,
        tff.learning.optimizers.build_sgdm(0.1),
        model_aggregator=_aggregator(),
      )


class StateTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('noise', dict(noise_multiplier=2.0), 'noise_multiplier', '2', '1.0'),
    ('clients', dict(min_clients=4), 'min_clients', '4', '3'),
    ('modulus', dict(modulus=512), 'modulus', '512', r'\d+'),
    ('clip', dict(l2_norm_clip=2.0), 'l2_norm_clip', '2', '1.0'),
    ('mode', dict(l2_norm_clip=None), 'adaptive_clip', '1', '0'),
  )
  def test_of_another_setting_is_refused(self, options, name, found, wanted):
    process = _process(l2_norm_clip=1.0)
    state = _process(**dict(dict(l2_norm_clip=1.0), **options)).initialize()
    message = (
      rf'^The state was written with `{name}` {found}(\.0)?, but this {{}} has'
      rf' `{name}` {wanted}: start from `initialize\(\)` or use the settings of'
      r' the checkpoint\.$'
    )
    with self.assertRaisesRegex(ValueError, message.format('process')):
      autotune.check_state(process, state)
    with self.assertRaisesRegex(
      ValueError, message.format('distributed_dp_aggregator')
    ):
      process.next(state, [np.ones([500], np.float32)] * 3)

  @parameterized.parameters(0.0, -1.0, np.nan, np.inf, 1e-30, 1e30)
  def test_unsound_clip_norm_is_refused(self, clip_norm):
    for options in (dict(l2_norm_clip=1.0), dict()):
      process = _process(**options)
      state = copy.deepcopy(process.initialize())
      state['clip_norm'] = np.float32(clip_norm)
      with self.assertRaisesRegex(
        ValueError,
        r'^The state was written with `clip_norm` [^ ]+, but this'
        r' distributed_dp_aggregator has `clip_norm` between 1e-15 and 1e15: ',
      ):
        process.next(state, [np.ones([500], np.float32)] * 3)

  @parameterized.parameters(1e-12, 1e12)
  def test_tiny_and_huge_clip_norms_come_with_their_noise(self, clip_norm):
    process = _process()
    state = copy.deepcopy(process.initialize())
    state['clip_norm'] = np.float32(clip_norm)
    output = process.next(state, [np.ones([500], np.float32)] * 3)
    noise = np.std(3.0 * output.result.astype(np.float64))
    # Twice the multiplier is an eighth more: see `count_stddev`.
    self.assertBetween(noise / clip_norm, 0.85, 1.2)


class AccountingTest(parameterized.TestCase):
  def test_event_is_that_of_all_clients_but_one(self):
    event = autotune.distributed_dp_event(dim=10**6, **_ROUNDS)
    self.assertIsInstance(event, dp_accounting.SelfComposedDpEvent)
    self.assertEqual(event.count, 10)
    self.assertAlmostEqual(event.event.noise_multiplier, 2.0 * math.sqrt(0.99))

  def test_epsilon_is_between_the_gaussian_and_an_accountant_s_bound(self):
    found = autotune.distributed_dp_epsilon(dim=10**6, delta=1e-5, **_ROUNDS)
    event = autotune.distributed_dp_event(dim=10**6, **_ROUNDS)
    accountant = dp_accounting.rdp.RdpAccountant()
    accountant.compose(event)
    bound = accountant.get_epsilon(1e-5)
    self.assertLess(found, bound)
    self.assertGreater(found, 0.8 * bound)
    with_bound = autotune.distributed_dp_epsilon(
      dim=10**6,
      delta=1e-5,
      gaussian_epsilon_fn=accountant.get_epsilon,
      **_ROUNDS,
    )
    self.assertGreater(with_bound, bound)
    self.assertLess(with_bound, 1.001 * bound)

  def test_two_clients_add_what_the_theorem_says(self):
    rounds = dict(noise_multiplier=1.0, min_clients=2, num_rounds=1)
    small, large = (
      autotune.distributed_dp_epsilon(dim=dim, delta=1e-5, **rounds)
      for dim in (1000, 2**20 - 1)
    )
    # 0.033 in epsilon, and half of that in the logarithm of delta.
    self.assertBetween(large - small, 0.033, 0.042)


class PlannerTest(parameterized.TestCase):
  @parameterized.parameters((10, 64), (100, 128), (1000, 512), (10_000, 2048))
  def test_noise_alone(self, num_clients, modulus):
    found = autotune.plan_distributed_dp_modulus(
      num_clients=num_clients,
      noise_multiplier=1.0,
      min_clients=num_clients,
      dim=2**20 - 1,
      alignment=0.0,
    )
    self.assertEqual(found, modulus)

  def test_more_clients_and_more_alignment_need_more(self):
    options = dict(noise_multiplier=1.0, min_clients=100, dim=2**16)
    found = [
      autotune.plan_distributed_dp_modulus(
        num_clients=num_clients, alignment=alignment, **options
      )
      for num_clients, alignment in ((100, 0.0), (400, 0.0), (400, 1.0))
    ]
    self.assertEqual(found, [128, 256, 512])


def _model_fn():
  spec = (
    tf.TensorSpec([None, 4], tf.float32),
    tf.TensorSpec([None, 1], tf.float32),
  )
  keras_model = tf.keras.Sequential(
    [
      tf.keras.layers.InputLayer(input_shape=(4,)),
      tf.keras.layers.Dense(1, kernel_initializer='zeros'),
    ]
  )
  return tff.learning.models.from_keras_model(
    keras_model, loss=tf.keras.losses.MeanSquaredError(), input_spec=spec
  )


@pytest.mark.slow
class TrainingTest(absltest.TestCase):
  def test_federated_averaging_learns(self):
    process = tff.learning.algorithms.build_unweighted_fed_avg(
      _model_fn,
      tff.learning.optimizers.build_sgdm(0.05),
      tff.learning.optimizers.build_sgdm(1.0),
      model_aggregator=autotune.distributed_dp_aggregator(
        noise_multiplier=0.3, min_clients=10, l2_norm_clip=0.5
      ),
    )
    rng = np.random.default_rng(1)
    wanted = np.array([[1.0], [-1.0], [0.5], [2.0]], np.float32)
    state = process.initialize()
    for _ in range(40):
      features = rng.normal(size=[10, 20, 4]).astype(np.float32)
      datasets = [
        tf.data.Dataset.from_tensor_slices((x, x @ wanted)).batch(10)
        for x in features
      ]
      output = process.next(state, datasets)
      state = output.state
    (kernel, _) = process.get_model_weights(state).trainable
    self.assertLess(np.linalg.norm(kernel - wanted), 0.5)
    measured = output.metrics['aggregator']
    self.assertEqual(measured['num_clients'], 10)
    self.assertFalse(measured['refused'])


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `distributed_dp`, through TFF's runtime."""

import copy
import functools
import os
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests import factory_conformance
from tests import stat_checks
import tff_autotune_secagg as autotune
from tff_autotune_secagg import distributed_dp
from tff_autotune_secagg.numerics import seeds

setUpModule = factory_conformance.set_up_context

_DIM = 2000
_VALUE_TYPE = tff.TensorType(np.float32, [500])


def _aggregator(**options):
  return autotune.distributed_dp_aggregator(
    **dict(dict(noise_multiplier=1.0, min_clients=3), **options)
  )


# Processes keep nothing between calls; creating and compiling them is what
# takes the time here.
@functools.lru_cache(maxsize=None)
def _public_process(**options):
  return _aggregator(**options).create(_VALUE_TYPE)


def _factory(**options):
  """The factory behind the public function, which checks its arguments."""
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


@functools.lru_cache(maxsize=None)
def _process(dim=_DIM, **options):
  return _factory(**options).create(tff.TensorType(np.float32, [dim]))


@functools.lru_cache(maxsize=None)
def _central_gaussian():
  return tff.aggregators.DifferentiallyPrivateFactory.gaussian_fixed(
    1.0, 20, 1.0
  ).create(tff.TensorType(np.float32, [_DIM]))


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

  @parameterized.named_parameters(
    ('tensor', lambda: tf.constant(np.frombuffer(os.urandom(16), np.int64))),
    ('python', lambda: np.random.default_rng().integers(9, size=[2])),
    ('drawn_with_a_seed', lambda: tf.random.uniform([2], 0, 9, tf.int64, 1)),
  )
  def test_a_seed_that_cannot_change_is_refused(self, client_seed_fn):
    with self.assertRaisesRegex(
      ValueError,
      '^`client_seed_fn` must return another seed in every call, found no'
      r' stateful TensorFlow operation .* `allow_guessable_noise=True`\.$',
    ):
      _aggregator(client_seed_fn=client_seed_fn).create(_VALUE_TYPE)

  @parameterized.named_parameters(
    ('of_tff', tff.aggregators.UnweightedMeanFactory, False),
    ('weighted_of_tff', tff.aggregators.MeanFactory, True),
    ('ours', autotune.SecureUnweightedMeanFactory, False),
    ('weighted_ours', autotune.SecureMeanFactory, True),
    (
      'of_tff_with_clipping_between',
      lambda inner: tff.aggregators.UnweightedMeanFactory(
        tff.aggregators.clipping_factory(1.0, inner)
      ),
      False,
    ),
  )
  def test_a_mean_of_the_mean_is_refused(self, mean_of, is_weighted):
    factory = mean_of(_aggregator())
    types = [_VALUE_TYPE, tff.TensorType(np.float32)][: 1 + is_weighted]
    with self.assertRaisesRegex(
      ValueError,
      '^`value_sum_factory` must not be a distributed_dp_aggregator, found one'
      r' in a \w*MeanFactory: it returns the mean, which would be divided once'
      r' more\. Pass it as it is, without a mean around it\.$',
    ):
      factory.create(*types)

  def test_modulus_without_room_for_the_expected_clients(self):
    with self.assertRaisesWithLiteralMatch(
      ValueError,
      '`modulus` 112 is too small for `expected_clients` 200: their noise alone'
      ' needs 159. Raise `modulus`, or leave it out.',
    ):
      _aggregator(min_clients=100, expected_clients=200, modulus=112)

  @parameterized.parameters(None, 1.0)
  def test_nothing_to_sum(self, l2_norm_clip):
    value_type = tff.to_type([(np.float32, [0]), (np.float32, [3, 0])])
    with self.assertRaisesWithLiteralMatch(
      ValueError,
      '`value_type` must hold at least one number, found'
      ' <float32[0],float32[3,0]>.',
    ):
      _aggregator(l2_norm_clip=l2_norm_clip).create(value_type)

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
    ('mode', dict(l2_norm_clip=None), 'l2_norm_clip', 'None', '1.0'),
  )
  def test_of_another_setting_is_refused(self, options, name, found, wanted):
    process = _public_process(l2_norm_clip=1.0)
    state = _public_process(
      **dict(dict(l2_norm_clip=1.0), **options)
    ).initialize()
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
      process = _public_process(**options)
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
    process = _public_process()
    state = copy.deepcopy(process.initialize())
    state['clip_norm'] = np.float32(clip_norm)
    output = process.next(state, [np.ones([500], np.float32)] * 3)
    noise = np.std(3.0 * output.result.astype(np.float64))
    # Twice the multiplier is an eighth more: see `count_stddev`.
    self.assertBetween(noise / clip_norm, 0.85, 1.2)


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


class EntropyTest(absltest.TestCase):
  def test_clients_without_it_fail_and_are_told_what_to_do(self):
    with mock.patch.object(seeds, '_UUID_FILE', '/no/such/file'):
      process = _factory().create(_VALUE_TYPE)
    with self.assertRaisesRegex(
      Exception,
      r'(?s)two different UUIDs from /no/such/file, found.*no such file.*Pass'
      r' `client_seed_fn` with another source or, in a simulation,'
      r' `allow_guessable_noise=True`',
    ):
      process.next(process.initialize(), [np.ones([500], np.float32)] * 4)


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
    energies = []
    for process in (_process(min_clients=20), _central_gaussian()):
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


class SampleTest(absltest.TestCase):
  """A share of the coordinates of twenty clients, 1,024 of 4,096."""

  _options = dict(
    dim=4096, min_clients=20, noise_multiplier=0.5, sampled_fraction=0.25
  )

  def test_error_is_the_predicted_one(self):
    process = _process(**self._options)
    tff.test.assert_not_contains_unsecure_aggregation(process.next)
    rng = np.random.default_rng(1)
    common = rng.normal(size=4096)
    values = 2.0 * common + rng.normal(size=[20, 4096])
    # No sample is so much longer that the clip norm trims it.
    values *= 0.85 / np.linalg.norm(values, axis=1, keepdims=True)
    values = values.astype(np.float32)
    wanted = values.sum(axis=0, dtype=np.float64)
    state, errors = process.initialize(), []
    for _ in range(4):
      output = process.next(state, list(values))
      state, measured = output.state, output.measurements
      errors.append(np.sum((20.0 * output.result - wanted) ** 2) / 4096)
      self.assertLess(measured['wrap_probability'], 1e-3)
    signal = np.sum(wanted**2) / 4096
    # The noise, and what is not sent; both are of 1,024 draws.
    expected = 0.5**2 + 3.0 * signal
    error = expected * np.sqrt(2.0 / (4 * 1024))
    # Control: the noise alone is another error.
    self.assertLess(0.5**2, expected - 10.0 * error)
    self.assertTrue(stat_checks.is_near(np.mean(errors), expected, error))
    self.assertEqual(measured['sampling_to_signal'], 3.0)
    self.assertEqual(
      measured['bytes_per_client'], 1024 * measured['bits_per_coordinate'] // 8
    )
    # Four times what was sent shows of it.
    self.assertBetween(measured['noise_to_signal'] * signal / 0.5**2, 0.6, 2.0)

  def test_clip_norm_adapts_behind_a_sample(self):
    process = _process(l2_norm_clip=None, **dict(self._options, dim=4000))
    values = np.full([20, 4000], 0.02 / np.sqrt(4000), np.float32)
    state = process.initialize()
    for _ in range(5):
      state = process.next(state, list(values)).state
    # All are within it: a tenth less in each round, but for the noise.
    self.assertBetween(state['clip_norm'], 0.055, 0.08)

  def test_state_of_another_sample_is_refused(self):
    process = _process(**self._options)
    other = dict(self._options, sampled_fraction=0.5)
    state = _process(**other).initialize()
    message = (
      r'^The state was written with `sampled_fraction` 0\.5, but this {} has'
      r' `sampled_fraction` 0\.25: start from'
    )
    with self.assertRaisesRegex(ValueError, message.format('process')):
      autotune.check_state(process, state)
    with self.assertRaisesRegex(
      ValueError, message.format('distributed_dp_aggregator')
    ):
      process.next(state, [np.ones([4096], np.float32)] * 20)
    whole = _process(**dict(self._options, sampled_fraction=1.0))
    with self.assertRaisesWithLiteralMatch(
      ValueError,
      '`state` must have the fields of `process`, found those of'
      ' `sampled_fraction` below 1 where the process has `sampled_fraction` 1.',
    ):
      autotune.check_state(whole, state)

  def test_where_all_coordinates_are_sent_state_and_bits_are_the_same(self):
    # `old_checkpoints_test` holds both to what earlier versions wrote.
    def seed_fn():
      return tf.constant([1, 2], tf.int64)  # The same for both.

    outputs, signatures = [], []
    values = [np.ones([500], np.float32)] * 3
    for options in (dict(), dict(sampled_fraction=0.1)):
      process = _aggregator(
        seed=3, client_seed_fn=seed_fn, allow_guessable_noise=True, **options
      ).create(_VALUE_TYPE)
      signatures.append(process.next.type_signature)
      outputs.append(process.next(process.initialize(), values))
    tff.test.assert_types_identical(*signatures)
    np.testing.assert_array_equal(outputs[0].result, outputs[1].result)
    self.assertNotIn('sampling_to_signal', outputs[0].measurements)


class ModulusTest(parameterized.TestCase):
  # Half a period is 1.33 standard deviations of a sum of 200 in a modulus that
  # was planned for 50: 1 - 4 h phi(h) is left.
  @parameterized.parameters((None, 0.125, True), (200, 1.0, False))
  def test_a_cohort_that_was_expected_has_room(
    self, expected_clients, recovered, wraps
  ):
    """The share that parallel updates of 200 clients keep of their sum."""
    process = _process(min_clients=50, expected_clients=expected_clients)
    value = np.full([_DIM], 1.0 / np.sqrt(_DIM), np.float32)
    output = process.next(process.initialize(), [value] * 200)
    self.assertEqual(output.measurements['modulus_too_small'], wraps)
    # Noise of 200 clients where one of 50 is 1; coordinates that wrapped are
    # about uniform in half a period of 128 bins of 1 / 9.9.
    noise = 128.0 / 9.9 / np.sqrt(12) if wraps else np.sqrt(200 / 50)
    found = float(output.result @ value)
    self.assertTrue(stat_checks.is_near(found, recovered, noise / 200), found)

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
      tff.learning.optimizers.build_sgdm(0.1),
      tff.learning.optimizers.build_sgdm(1.0),
      model_aggregator=autotune.distributed_dp_aggregator(
        noise_multiplier=0.3, min_clients=10, l2_norm_clip=0.5
      ),
    )
    rng = np.random.default_rng(1)
    wanted = np.array([[1.0], [-1.0], [0.5], [2.0]], np.float32)
    state = process.initialize()
    for _ in range(15):
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

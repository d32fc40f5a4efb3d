# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `aggregators`: the compositions, and that the parts nest freely."""

import collections

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow_federated as tff

from tests import factory_conformance
from tff_autotune_secagg import aggregators
from tff_autotune_secagg.factories import flatten
from tff_autotune_secagg.factories import mean
from tff_autotune_secagg.factories import modular_sum
from tff_autotune_secagg.factories import quantize_mod
from tff_autotune_secagg.factories import rotation
from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.tuning import tuners

setUpModule = factory_conformance.set_up_context

_DIM = 1500
_FLOAT = tff.TensorType(np.float32)
_VECTOR = tff.TensorType(np.float32, [_DIM])


def _client_values(num_clients, seed=0, scale=1.0):
  rng = np.random.default_rng(seed)
  values = scale * rng.standard_normal([num_clients, _DIM])
  return list(values.astype(np.float32))


def _nmse(result, expected):
  return np.sum((result - expected) ** 2) / np.sum(np.square(expected))


def _tuner_state(state):
  """The tuner's state inside that of the weighted aggregator with zeroing."""
  return state['inner_agg']['value']['inner']['tuner']


class AutotunedSecureSumConformanceTest(
  factory_conformance.FactoryConformanceTest
):
  atol = 0.1  # bfloat16 has steps of 1/16 at the largest entry.
  counts_rounds = False

  def factory(self):
    return aggregators.AutotunedSecureSumFactory(modulus=2**16, seed=1)

  def secure_factory(self):
    """By dither: rounding at random would differ from run to run."""
    return aggregators.AutotunedSecureSumFactory(
      modulus=256, rounding=modes.Rounding.DITHER, seed=1
    )


class AutotunedSecureSumTest(parameterized.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    factory = aggregators.AutotunedSecureSumFactory(modulus=256)
    cls._process = factory.create(_VECTOR)

  def _run(self, rounds, state=None):
    """Outputs of rounds with these client values."""
    state = state or self._process.initialize()
    outputs = []
    for values in rounds:
      outputs.append(self._process.next(state, values))
      state = outputs[-1].state
    return outputs

  @parameterized.parameters(1, 2, 7, 100)
  def test_sum_equals_the_plain_sum_within_the_predicted_error(self, clients):
    values = _client_values(clients, seed=clients)
    plain = np.sum(values, axis=0)
    first, *others = self._run([values] * 11)
    # A ladder has no guarantee but this; 1.1 for the spread of one round.
    self.assertLessEqual(_nmse(first.result, plain), 1.1)
    self.assertTrue(first.measurements['calibrating'])
    shares = []
    for output in others:
      found = output.measurements
      self.assertFalse(found['calibrating'])
      self.assertEqual(found['num_clients'], clients)
      self.assertLess(found['predicted_nmse'], 0.03)
      shares.append(_nmse(output.result, plain) / found['predicted_nmse'])
    # The median, as the tail is heavy: one wrap among 1,536 entries can be most
    # of an error (of 776 rounds with 100 clients 1 % were above 2, of 53 times
    # ten with one client one was above 50). Tables of errors test the mean.
    self.assertBetween(np.median(shares), 0.5, 1.5)
    self.assertEqual(found['bits_per_coordinate'], 8)
    self.assertEqual(found['bytes_per_client'], 1536)  # 48 * 32.

  def test_bin_size_follows_a_tenfold_change(self):
    small, large = _client_values(5), _client_values(5, scale=10.0)
    outputs = self._run([small] * 3 + [large] * 4 + [small] * 4)
    sizes = [o.state['inner']['tuner']['bin_size'] for o in outputs]
    self.assertAlmostEqual(sizes[6] / sizes[2], 10.0, delta=1.0)
    self.assertAlmostEqual(sizes[10] / sizes[2], 1.0, delta=0.1)
    for output, values in ((outputs[6], large), (outputs[10], small)):
      self.assertLess(_nmse(output.result, np.sum(values, axis=0)), 0.02)

  def test_rejects_a_client_that_is_not_finite_and_keeps_the_others(self):
    values = _client_values(4)
    state = self._run([values] * 2)[-1].state
    bad = values[3].copy()
    bad[7] = np.nan
    output = self._process.next(state, values[:3] + [bad])
    self.assertEqual(output.measurements['rejected_clients'], 1)
    self.assertEqual(output.measurements['num_clients'], 3)
    self.assertLess(_nmse(output.result, np.sum(values[:3], axis=0)), 0.02)

  def test_rounds_without_updates_keep_the_bin_size_and_move_the_seed(self):
    state = self._run([_client_values(4)] * 2)[-1].state
    before = state['inner']['tuner']['bin_size']
    for values in ([], [np.zeros(_DIM, np.float32)] * 3):
      output = self._process.next(state, values)
      np.testing.assert_array_equal(output.result, np.zeros(_DIM))
      self.assertEqual(output.state['inner']['tuner']['bin_size'], before)
      self.assertEqual(output.state['round'], state['round'] + 1)
      self.assertEqual(
        output.state['inner']['round'], state['inner']['round'] + 1
      )

  def test_bin_size_stays_finite_and_positive_and_recovers(self):
    """Whatever clients send. A sum that cannot be read makes a calibration."""
    rounds = [
      ('noise of a millionth', _client_values(3, scale=1e-6)),
      ('largest floats', _client_values(3, scale=1e37)),
      ('denormal floats', _client_values(3, scale=1e-39)),
      ('not finite', _client_values(3, scale=np.nan)),
      ('a millionfold growth', _client_values(3, scale=1e6)),
    ]
    settled = self._run([_client_values(3)] * 2)[-1].state
    for name, values in rounds:
      with self.subTest(name):
        output = self._process.next(settled, values)
        self.assertTrue(np.all(np.isfinite(output.result)))
        for value in output.measurements.values():
          if not isinstance(value, dict):
            self.assertTrue(np.isfinite(value))
        # At the worst, one entry of the noise was rounded away from 0 (in one
        # round of fifteen): an honest reading of a small sum, by which the next
        # round is blind, the one after calibrates, and the third is right.
        outputs = self._run([_client_values(3)] * 3, output.state)
        for later in [output] + outputs:
          bin_size = later.state['inner']['tuner']['bin_size']
          self.assertTrue(np.isfinite(bin_size))
          self.assertGreater(bin_size, 0.0)
        self.assertLess(outputs[-1].measurements['predicted_nmse'], 0.02)
    self.assertTrue(output.measurements['blind'])
    self.assertTrue(output.state['inner']['tuner']['calibrating'])


class SecureAggregatorTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('default', {}),
    ('zeroing', dict(clipping=False)),
    ('unweighted', dict(weighted=False)),
    ('bare', dict(weighted=False, zeroing=False, clipping=False)),
  )
  def test_contains_no_unsecure_aggregation(self, options):
    factory = aggregators.autotuned_secure_aggregator(**options)
    is_weighted = options.get('weighted', True)
    kind = (
      tff.aggregators.WeightedAggregationFactory
      if is_weighted
      else tff.aggregators.UnweightedAggregationFactory
    )
    self.assertIsInstance(factory, kind)
    # TFF's zeroing and clipping by themselves refuse bfloat16.
    value_type = tff.to_type(
      [np.float16, factory_conformance.BFLOAT16, np.float64]
    )
    process = factory.create(value_type, *([_FLOAT] if is_weighted else []))
    tff.test.assert_not_contains_unsecure_aggregation(process.next)
    if options == dict(clipping=False):
      self._check_weighted_rounds(process)

  def _check_weighted_rounds(self, process):
    """A client that is not finite is rejected, with its weight."""
    bfloat16 = factory_conformance.BFLOAT16
    values = [
      [1.0, bfloat16(2.0), 3.0],
      [2.0, bfloat16(4.0), -6.0],
      [np.nan, bfloat16(1.0), 1.0],
    ]
    weights = [300.0, 100.0, 50.0]
    state = process.initialize()
    for _ in range(3):
      output = process.next(state, values, weights)
      state = output.state
    result = np.array([float(leaf) for leaf in output.result])
    np.testing.assert_allclose(result, [1.25, 2.5, 0.75], rtol=0.1)
    found = output.measurements['zeroing']
    self.assertEqual(found['rejected_clients'], 1)
    self.assertEqual(found['weight_sum'], 400.0)
    self.assertEqual(found['value']['num_clients'], 2)
    bin_size = _tuner_state(state)['bin_size']
    # No weight at all: no mean, no change.
    output = process.next(state, values, [0.0] * 3)
    self.assertEqual([float(leaf) for leaf in output.result], [0.0] * 3)
    self.assertEqual(_tuner_state(output.state)['bin_size'], bin_size)
    for broken in (np.inf, -np.inf):
      values[2][0] = np.float16(broken)
      output = process.next(state, values, weights)
      found = output.measurements
      self.assertEqual(found['zeroed_count'], 0)
      self.assertEqual(found['zeroing']['rejected_clients'], 1)
      self.assertEqual(found['zeroing']['weight_sum'], 400.0)
    # One that is only large is zeroed and keeps its weight, as in TFF.
    values[2] = [0.0, bfloat16(1e30), 0.0]
    found = process.next(state, values, weights).measurements
    self.assertEqual(found['zeroed_count'], 1)
    self.assertEqual(found['zeroing']['weight_sum'], 450.0)


class NestingTest(absltest.TestCase):
  def test_under_factories_of_tff(self):
    """Clipping around a mean around the autotuned sum."""
    factory = tff.aggregators.clipping_factory(
      1e3,
      tff.aggregators.MeanFactory(
        aggregators.AutotunedSecureSumFactory(modulus=2**12)
      ),
    )
    process = factory.create(_VECTOR, _FLOAT)
    values, weights = _client_values(3), np.array([1.0, 2.0, 5.0], np.float32)
    state = process.initialize()
    for _ in range(2):
      output = process.next(state, values, list(weights))
      state = output.state
    expected = weights @ np.array(values) / 8
    self.assertLess(_nmse(output.result, expected), 1e-3)

  def test_in_another_order(self):
    """A mean around a rotation around a vector at a fixed bin size."""
    modulus = 2**16
    factory = mean.SecureUnweightedMeanFactory(
      rotation.HadamardRotationFactory(
        flatten.FlattenFactory(
          quantize_mod.QuantizeModFactory(
            modular_sum.ExactModularSumFactory(modulus=modulus),
            tuner=tuners.FixedBinSize(bin_size=0.001, modulus=modulus),
          )
        ),
        num_rotations=2,
      )
    )
    value_type = collections.OrderedDict(
      a=tff.TensorType(np.float64, [3, 5]), b=np.float32
    )
    process = factory.create(tff.to_type(value_type))
    tff.test.assert_not_contains_unsecure_aggregation(process.next)
    rng = np.random.default_rng(0)
    values = [
      collections.OrderedDict(a=rng.standard_normal([3, 5]), b=float(i))
      for i in range(3)
    ]
    output = process.next(process.initialize(), values)
    expected = np.mean(
      [factory_conformance.vector_of(v) for v in values], axis=0
    )
    np.testing.assert_allclose(
      factory_conformance.vector_of(output.result), expected, atol=0.01
    )


class ErrorTest(parameterized.TestCase):
  @parameterized.parameters('zeroing', 'clipping', 'weighted')
  def test_rejects_what_is_no_bool(self, name):
    with self.assertRaisesWithLiteralMatch(
      TypeError, f'`{name}` must be True or False, found 1 (int).'
    ):
      aggregators.autotuned_secure_aggregator(**{name: 1})

  def test_rejects_modulus_too_small_for_num_clients(self):
    with self.assertRaisesRegex(
      ValueError,
      r'^`modulus` 64 is too small for `num_clients` 1000: the predicted error'
      r' is [0-9.]+ of the squared norm of the sum, above 0\.\d+\. Raise'
      r' `modulus` to \d+ or more, or lower `num_clients`\.$',
    ):
      aggregators.AutotunedSecureSumFactory(modulus=64, num_clients=1000)
    with self.assertRaisesRegex(
      ValueError,
      r'^`modulus` 256 is too small for `num_clients` 10: the predicted error'
      r' .* No modulus will do: lower `wrap_probability` or leave it out\.$',
    ):
      aggregators.AutotunedSecureSumFactory(
        modulus=256,
        num_clients=10,
        wrap_probability=0.03,
        decoding=modes.Decoding.CENTRED,
      )
    with self.assertRaisesRegex(
      ValueError,
      r'^`modulus` 16 is too small for `num_clients` 20: they may differ by'
      r' less than a bin, where dither lets their errors add\. Raise `modulus`'
      r' to \d+ or more, or lower `num_clients`\. If 16 was meant in bits,'
      r' write `modulus=2\*\*16`\.$',
    ):
      aggregators.autotuned_secure_aggregator(
        modulus=16, num_clients=20, rounding=modes.Rounding.DITHER
      )
    aggregators.AutotunedSecureSumFactory(modulus=1024, num_clients=1000)

  @parameterized.named_parameters(
    (
      'modulus',
      dict(modulus=True),
      TypeError,
      '`modulus` must be an int of at least 2 and at most 1073741824, found'
      ' True (bool).',
    ),
    (
      'num_clients',
      dict(num_clients=0),
      ValueError,
      '`num_clients` must be an int of at least 1 and at most'
      ' 1000000000000000, found 0 (int).',
    ),
    (
      'num_rotations',
      dict(num_rotations=0),
      ValueError,
      '`num_rotations` must be an int of at least 1 and at most 8, found 0'
      ' (int).',
    ),
    (
      'wrap_probability',
      dict(wrap_probability=1.0),
      ValueError,
      '`wrap_probability` must be a finite number above 0 and below 1, found'
      ' 1.0 (float).',
    ),
    (
      'seed',
      dict(seed=-1),
      ValueError,
      '`seed` must be an int of at least 0 and at most 9223372036854775807,'
      ' found -1 (int).',
    ),
  )
  def test_rejects_argument(self, options, error, message):
    with self.assertRaisesWithLiteralMatch(error, message):
      aggregators.autotuned_secure_aggregator(**options)


if __name__ == '__main__':
  absltest.main()

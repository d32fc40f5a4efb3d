# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `quantize_mod`.

Stochastic rounding draws from the system's entropy, so that a statistical test
is a new draw in every run, with false alarm rates of 6e-7 per comparison.
"""

import collections

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests import doubles
from tests import factory_conformance
from tests import reference
from tests import stat_checks
from tff_autotune_secagg import modulus_planning
from tff_autotune_secagg.factories import modular_sum
from tff_autotune_secagg.factories import quantize_mod
from tff_autotune_secagg.numerics.reading import stripes
from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.rounding import quantization
from tff_autotune_secagg.numerics.tuning import tuners
from tff_autotune_secagg.numerics.tuning import wrapped_normal_tuner

setUpModule = factory_conformance.set_up_context

_BIN_SIZE = 0.1
_DIM = 4000
_DITHER = modes.Rounding.DITHER
_POSTERIOR = modes.Decoding.POSTERIOR_MEAN


def _factory(tuner, seed=None):
  """Over the secure modular sum."""
  return quantize_mod.QuantizeModFactory(
    modular_sum.ExactModularSumFactory(modulus=tuner.modulus),
    tuner=tuner,
    seed=seed,
  )


def _fixed(bin_size=_BIN_SIZE, modulus=2**16, **options):
  return tuners.FixedBinSize(bin_size=bin_size, modulus=modulus, **options)


class QuantizeModConformanceTest(factory_conformance.FactoryConformanceTest):
  """All values are multiples of the bin size, 1/2, and come back exactly."""

  def factory(self):
    return quantize_mod.QuantizeModFactory(
      doubles.SumPlusOneFactory(modulus=64), tuner=_fixed(0.5, 64)
    )

  def secure_factory(self):
    return _factory(_fixed(0.5, 64), seed=1)

  def expected(self, values):
    return np.sum(values, axis=0) + 0.5  # The double's 1 is one bin.

  def inner_state(self, state):
    return state['inner']


class StochasticRoundingTest(parameterized.TestCase):
  """A structure of two vectors, at one fixed bin size."""

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    # Would freeze the seeds of TensorFlow's stateful operations.
    tf.random.set_seed(3)
    vector = tff.TensorType(np.float32, [_DIM])
    cls._process = _factory(_fixed()).create(
      tff.to_type(collections.OrderedDict(a=vector, b=vector))
    )
    cls._state = cls._process.initialize()

  def _errors(self, values, state=None):
    """Errors of the sum in bins, of both vectors in a row."""
    output = self._process.next(state or self._state, values)
    result = factory_conformance.vector_of(output.result)
    plain = np.sum([factory_conformance.vector_of(v) for v in values], axis=0)
    return (result - plain) / _BIN_SIZE

  @parameterized.parameters(1, 2, 7, 100)
  def test_sum_is_unbiased_and_its_variance_as_stated(self, num_clients):
    rng = np.random.default_rng(num_clients)
    values = [
      collections.OrderedDict(
        a=rng.standard_normal(_DIM).astype(np.float32),
        b=rng.standard_normal(_DIM).astype(np.float32),
      )
      for _ in range(num_clients)
    ]
    errors = self._errors(values)
    # Fractions are uniform: 1/6 of the possible 1/4.
    variance, size = num_clients / 6, errors.size
    error = stat_checks.mean_error(np.sqrt(variance), size)
    self.assertTrue(stat_checks.is_near(np.mean(errors), 0.0, error))
    error = stat_checks.variance_error(variance, size)
    self.assertTrue(
      stat_checks.is_near(np.var(errors, ddof=1), variance, error)
    )
    self.assertLess(np.var(errors), num_clients / 4)

  def test_rounding_differs_between_clients_tensors_and_rounds(self):
    """Clients at exactly half a bin: variance 5, or 100 with a shared seed."""
    half = np.full([_DIM], _BIN_SIZE / 2, np.float32)
    values = [collections.OrderedDict(a=half, b=half)] * 20
    errors = self._errors(values)
    expected, tolerance = 5.0, stat_checks.variance_error(5.0, errors.size)
    self.assertTrue(
      stat_checks.is_near(np.var(errors, ddof=1), expected, tolerance)
    )
    again = self._errors(values)  # Of the same state, as far as TFF knows.
    limit = stat_checks.Z * stat_checks.correlation_error(_DIM)
    for other in (errors[_DIM:], again[:_DIM]):
      self.assertLess(abs(np.corrcoef(errors[:_DIM], other)[0, 1]), limit)

    # The negative control: one seed for all clients.
    residues = quantization.encode(
      tf.constant(half),
      tf.fill([stripes.NUM_STRIPES], _BIN_SIZE),
      tf.constant([1, 2]),
      modulus=2**16,
    )
    shared = 20 * residues.numpy()
    self.assertGreater(np.var(shared), 90)
    self.assertFalse(
      stat_checks.is_near(np.var(shared, ddof=1), expected, tolerance)
    )

  @parameterized.named_parameters(
    ('nan', np.nan), ('infinite', np.inf), ('minus_infinite', -np.inf)
  )
  def test_client_with_a_bad_entry_is_rejected_and_counted(self, bad):
    good = np.full([_DIM], _BIN_SIZE, np.float32)
    spoilt = good.copy()
    spoilt[_DIM - 1] = bad
    values = [
      collections.OrderedDict(a=good, b=good),
      collections.OrderedDict(a=good, b=spoilt),
    ]
    output = self._process.next(self._state, values)
    np.testing.assert_allclose(output.result['a'], good, rtol=1e-6)
    np.testing.assert_allclose(output.result['b'], good, rtol=1e-6)
    self.assertEqual(output.measurements['rejected_clients'], 1)
    self.assertEqual(output.measurements['num_clients'], 1)

  def test_without_clients_the_sum_is_zero_and_the_round_counted(self):
    output = self._process.next(self._state, [])
    np.testing.assert_array_equal(output.result['a'], np.zeros(_DIM))
    self.assertEqual(output.measurements['num_clients'], 0)
    self.assertEqual(output.state['round'], 1)
    self.assertFalse(output.measurements['blind'])

  def test_state_of_another_modulus_is_refused_in_one_sentence(self):
    state = self._process.initialize()
    state['settings']['modulus'] = np.int64(256)
    with self.assertRaisesWithLiteralMatch(
      ValueError,
      'The state was written with `modulus` 256, but this QuantizeModFactory'
      ' has `modulus` 65536: start from `initialize()` or use the settings of'
      ' the checkpoint.',
    ):
      self._process.next(state, [])


class ResiduesTest(parameterized.TestCase):
  @parameterized.parameters((257, 9), (2**30, 30))
  def test_inner_factory_gets_residues_and_payload_is_measured(
    self, modulus, bits
  ):
    process = quantize_mod.QuantizeModFactory(
      doubles.SumPlusOneFactory(modulus), tuner=_fixed(1.0, modulus)
    ).create(tff.TensorType(np.float64, [7]))
    value = np.array([0.5, -0.5, -1, 1e6, -1e6, 1e300, -1e300])
    output = process.next(process.initialize(), [value])
    residues = output.measurements['inner']
    self.assertEqual(residues.dtype, np.int32)
    self.assertAllInRange(residues, 0, modulus - 1)
    self.assertIn(residues[0], [0, 1])
    self.assertIn(residues[1], [0, modulus - 1])
    self.assertEqual(residues[2], modulus - 1)
    self.assertEqual(residues[3], 10**6 % modulus)
    self.assertEqual(residues[4], -(10**6) % modulus)
    self.assertEqual(output.measurements['bits_per_coordinate'], bits)
    self.assertEqual(output.measurements['bytes_per_client'], -(-7 * bits // 8))

  def assertAllInRange(self, values, low, high):
    self.assertGreaterEqual(np.min(values), low)
    self.assertLessEqual(np.max(values), high)


class DitherTest(absltest.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    tuner = _fixed(modulus=999, rounding=_DITHER)
    cls._process = _factory(tuner, seed=7).create(
      tff.TensorType(np.float32, [_DIM])
    )
    rng = np.random.default_rng(0)
    cls._values = list(rng.standard_normal([7, _DIM]).astype(np.float32))

  def test_repeats_bit_for_bit_and_changes_with_the_round(self):
    state = self._process.initialize()
    first = self._process.next(state, self._values)
    again = self._process.next(self._process.initialize(), self._values)
    np.testing.assert_array_equal(first.result, again.result)
    later = self._process.next(first.state, self._values)
    np.testing.assert_array_equal(later.state['seed'], state['seed'])
    self.assertEqual(later.state['round'], 2)
    plain = np.sum(self._values, axis=0)
    correlation = np.corrcoef(first.result - plain, later.result - plain)[0, 1]
    self.assertLess(
      abs(correlation), stat_checks.Z * stat_checks.correlation_error(_DIM)
    )

  def test_error_variance_is_a_twelfth_of_a_bin_per_client(self):
    output = self._process.next(self._process.initialize(), self._values)
    errors = (output.result - np.sum(self._values, axis=0)) / _BIN_SIZE
    variance = 7 / 12
    self.assertTrue(
      stat_checks.is_near(
        np.var(errors, ddof=1),
        variance,
        stat_checks.variance_error(variance, _DIM),
      )
    )

  def test_a_fixed_bin_size_stays_centred_and_unbiased_when_blind(self):
    rng = np.random.default_rng(4)
    values = rng.uniform(-1e3, 1e3, [3, _DIM]).astype(np.float32)
    output = self._process.next(self._process.initialize(), list(values))
    self.assertTrue(output.measurements['blind'])
    self.assertEqual(output.measurements['predicted_nmse'], 1.0)
    bins = output.result / _BIN_SIZE
    self.assertLessEqual(np.max(np.abs(bins)), 999 / 2)
    # Centred, not dropped: off by whole periods and the rounding.
    total = values.sum(axis=0, dtype=np.float64) / _BIN_SIZE
    off = bins - total
    off -= 999 * np.round(off / 999)
    variance = 3 / 12
    error = stat_checks.mean_error(np.sqrt(variance), _DIM)
    self.assertTrue(stat_checks.is_near(np.mean(off), 0.0, error))
    error = stat_checks.variance_error(variance, _DIM)
    self.assertTrue(stat_checks.is_near(np.var(off), variance, error))
    # The negative control: a decoder that drops the round is told apart.
    dropped = -total
    dropped -= 999 * np.round(dropped / 999)
    self.assertFalse(stat_checks.is_near(np.var(dropped), variance, error))


class DitheredTunerTest(absltest.TestCase):
  def test_calibrates_with_offsets_of_each_client(self):
    """Bit for bit the same again, and right although bins start coarse."""
    tuner = wrapped_normal_tuner.WrappedNormalTuner(
      modulus=256, rounding=_DITHER
    )
    process = _factory(tuner, seed=7).create(
      tff.to_type(
        collections.OrderedDict(
          a=tff.TensorType(np.float32, [_DIM]), b=tff.TensorType(np.float64)
        )
      )
    )
    rng = np.random.default_rng(0)
    rows = rng.standard_normal([20, _DIM]).astype(np.float32)
    values = [collections.OrderedDict(a=row, b=0.0) for row in rows]
    histories = []
    for _ in range(2):
      state, outputs = process.initialize(), []
      for _ in range(2):
        outputs.append(process.next(state, values))
        state = outputs[-1].state
      histories.append(outputs)
    for one, other in zip(*histories):
      np.testing.assert_array_equal(one.result['a'], other.result['a'])
      self.assertEqual(
        one.measurements['sum_stddev'], other.measurements['sum_stddev']
      )
    first, second = histories[0]
    # Equal clients could not be told: nothing is decoded, and it is said so.
    self.assertTrue(first.measurements['calibrating'])
    np.testing.assert_array_equal(first.result['a'], np.zeros(_DIM))
    self.assertEqual(first.measurements['predicted_nmse'], 1.0)
    total = rows.sum(axis=0, dtype=np.float64)
    spread = np.sqrt(np.mean(total**2))
    # Five standard errors if a single stripe told the spread.
    tolerance = 5 / np.sqrt(2 * _DIM / stripes.NUM_STRIPES)
    ratio = first.measurements['sum_stddev'] / spread
    self.assertLess(abs(ratio - 1), tolerance)
    error = np.mean((second.result['a'] - total) ** 2)
    bin_size = float(second.measurements['bin_size'])
    expected, error_of_mean = reference.decoding_error(
      total, 256, bin_size, 20 / 12
    )
    self.assertTrue(stat_checks.is_near(error, expected, error_of_mean))
    # The negative control: rounding at random.
    other, _ = reference.decoding_error(total, 256, bin_size, 20 / 6)
    self.assertFalse(stat_checks.is_near(error, other, 2 * error_of_mean))
    # And the bin is near the best: one by a fifth off would cost a quarter.
    predicted = modulus_planning.predicted_nmse(
      num_clients=20, modulus=256, rounding=_DITHER
    )
    self.assertLess(expected, 1.25 * predicted * np.mean(total**2))


class TunerTest(absltest.TestCase):
  """A tuner of modulus 256 and the posterior mean."""

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    tuner = wrapped_normal_tuner.WrappedNormalTuner(modulus=256)
    cls._process = _factory(tuner).create(tff.TensorType(np.float32, [_DIM]))
    rng = np.random.default_rng(0)
    cls._values = list(rng.standard_normal([3, _DIM]).astype(np.float32))

  def _run(self, rounds):
    """The last of the rounds: a list of client values each."""
    state = self._process.initialize()
    for values in rounds:
      output = self._process.next(state, values)
      state = output.state
    return output

  def test_signature(self):
    process_type = self._process.next.type_signature
    self.assertEqual(
      process_type.result.measurements,
      tff.FederatedType(
        collections.OrderedDict(
          bin_size=np.float32,
          calibrating=np.bool_,
          blind=np.bool_,
          zero_sum=np.bool_,
          modulus_too_small=np.bool_,
          sum_stddev=np.float32,
          size_forecast=np.float32,
          size_uncertainty=np.float32,
          wrap_probability=np.float32,
          predicted_nmse=np.float32,
          num_clients=np.int32,
          rejected_clients=np.int32,
          bits_per_coordinate=np.int32,
          bytes_per_client=np.int64,
          inner=collections.OrderedDict(),
        ),
        tff.SERVER,
      ),
    )
    state_type = process_type.parameter[0].member
    self.assertSequenceEqual(
      tff.structure.name_list(state_type),
      ['settings', 'seed', 'round', 'tuner', 'inner'],
    )
    self.assertEqual(
      state_type['settings'],
      tff.to_type(
        collections.OrderedDict(
          state_format=np.int64, modulus=np.int64, dither=np.int64
        )
      ),
    )

  def test_calibrates_first_then_runs_at_the_fitted_bin_size(self):
    plain = np.sum(self._values, axis=0)
    first = self._run([self._values])
    self.assertTrue(first.measurements['calibrating'])
    self.assertLess(np.sum((first.result - plain) ** 2), 1.1 * np.sum(plain**2))
    second = self._process.next(first.state, self._values)
    found = second.measurements
    self.assertFalse(found['calibrating'])
    self.assertEqual(found['bin_size'], first.state['tuner']['bin_size'])
    self.assertFalse(found['blind'] or found['modulus_too_small'])
    self.assertAlmostEqual(found['sum_stddev'], np.sqrt(3), delta=0.1)
    error = np.sum((second.result - plain) ** 2) / np.sum(plain**2)
    self.assertLess(error, 0.01)
    self.assertBetween(error / found['predicted_nmse'], 0.5, 2.0)
    self.assertEqual(found['num_clients'], 3)

  def test_round_without_updates_keeps_the_bin_size_and_advances(self):
    settled = self._run([self._values] * 2)
    bin_size = settled.state['tuner']['bin_size']
    zeros = np.zeros(_DIM, np.float32)
    bad = np.full(_DIM, np.nan, np.float32)
    for values, rejected in [([], 0), ([zeros] * 2, 0), ([bad] * 2, 2)]:
      output = self._process.next(settled.state, values)
      np.testing.assert_array_equal(output.result, zeros)
      self.assertEqual(output.state['tuner']['bin_size'], bin_size)
      self.assertEqual(output.state['round'], settled.state['round'] + 1)
      found = output.measurements
      self.assertEqual(found['num_clients'], 0)
      self.assertEqual(found['rejected_clients'], rejected)
      self.assertTrue(found['zero_sum'])
      for name in ('bin_size', 'sum_stddev', 'predicted_nmse'):
        self.assertTrue(np.isfinite(found[name]), name)
      # And the round after serves a cohort as before.
      output = self._process.next(output.state, self._values)
      output = self._process.next(output.state, self._values)
      self.assertLess(output.measurements['predicted_nmse'], 0.01)


class QuantizeModErrorTest(parameterized.TestCase):
  def test_rejects_tuner_inner_factory_and_seed(self):
    for tuner, found in (
      (None, 'None (NoneType)'),
      (0.1, '0.1 (float)'),
      (
        tuners.FixedBinSize,
        "<class 'tff_autotune_secagg.numerics.tuning.tuners.FixedBinSize'>"
        ' (ABCMeta)',
      ),
    ):
      with self.assertRaisesWithLiteralMatch(
        TypeError, f'`tuner` must be a `Tuner`, found {found}.'
      ):
        quantize_mod.QuantizeModFactory(
          modular_sum.ExactModularSumFactory(modulus=256), tuner=tuner
        )
    with self.assertRaisesWithLiteralMatch(
      TypeError,
      '`inner_factory` must be an unweighted aggregation factory, found 256'
      ' (int).',
    ):
      quantize_mod.QuantizeModFactory(256, tuner=_fixed())
    with self.assertRaisesRegex(ValueError, '^`seed` must be an int of at'):
      _factory(_fixed(), seed=-1)


if __name__ == '__main__':
  absltest.main()

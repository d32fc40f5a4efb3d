# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What bad clients may do: nothing to the others, and not without a count.

The modulus is 2**20 where the sum of the good clients is compared: wrapped
entries have a probability of 1e-12 and the error is rounding alone, within a
few per cent of `predicted_nmse`.
"""

import collections
import functools

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests import factory_conformance
import tff_autotune_secagg as autotune

_WIDE = 2**20
# Twice the prediction is 30 standard errors of an error of 1024 entries.
_SLACK = 2.0

setUpModule = factory_conformance.set_up_context

_STRUCTURE = collections.OrderedDict(
  half=((300,), np.float16),
  single=((20, 50), np.float32),
  double=((), np.float64),
)
_STRUCTURE_TYPE = tff.to_type(
  collections.OrderedDict(
    (name, tff.TensorType(dtype, shape))
    for name, (shape, dtype) in _STRUCTURE.items()
  )
)
_WEIGHT_TYPE = tff.TensorType(np.float32)


def _good_structure(rng):
  return collections.OrderedDict(
    (name, np.asarray(0.1 * rng.normal(size=shape), dtype))
    for name, (shape, dtype) in _STRUCTURE.items()
  )


def _filled(number):
  with np.errstate(over='ignore'):
    return collections.OrderedDict(
      (name, np.full(shape, number).astype(dtype))
      for name, (shape, dtype) in _STRUCTURE.items()
    )


def _one_entry(name, number):
  def change(rng):
    value = _good_structure(rng)
    flat = value[name].reshape([-1]).copy()
    flat[-1] = number
    value[name] = flat.reshape(value[name].shape)
    return value

  return change


def _vector(value):
  """A structure, or an array, as one float64 vector."""
  leaves = value.values() if isinstance(value, dict) else [value]
  return np.concatenate([np.ravel(leaf).astype(np.float64) for leaf in leaves])


def _sum(values, dim):
  return sum((_vector(v) for v in values), np.zeros(dim))


def _nmse(result, truth):
  return np.sum((_vector(result) - truth) ** 2) / np.sum(truth**2)


@functools.lru_cache(maxsize=None)
def _sum_process():
  factory = autotune.AutotunedSecureSumFactory(modulus=_WIDE, seed=1)
  return factory.create(_STRUCTURE_TYPE)


@functools.lru_cache(maxsize=None)
def _settled_sum_state():
  """State of `_sum_process` that knows the size of 5 good clients."""
  process, rng = _sum_process(), np.random.default_rng(1)
  state = process.initialize()
  for _ in range(2):
    state = process.next(state, [_good_structure(rng) for _ in range(5)]).state
  return state


def _tuner(state):
  """The tuner's state, wherever the processes of this file have it."""
  if 'tuner' in state:
    return state['tuner']
  (inner,) = {'inner', 'inner_agg', 'value'} & set(state)
  return _tuner(state[inner])


def _assert_same(state, other):
  """Asserts that two tuner states are equal, leaf by leaf."""
  tf.nest.map_structure(np.testing.assert_array_equal, state, other)


class _StateChecks(parameterized.TestCase):
  def assert_bin_size_usable(self, state):
    bin_size = _tuner(state)['bin_size']
    self.assertTrue(np.isfinite(bin_size))
    self.assertGreater(bin_size, 0)

  def assert_clean_round(self, process, state, rng):
    """Runs a round of five good clients, which must be read well."""
    values = [_good_structure(rng) for _ in range(5)]
    output = process.next(state, values)
    measured = output.measurements
    self.assertFalse(measured['calibrating'])
    self.assertFalse(measured['blind'])
    self.assertEqual(measured['rejected_clients'], 0)
    self.assertEqual(measured['num_clients'], 5)
    truth = _sum(values, _vector(values[0]).size)
    limit = _SLACK * measured['predicted_nmse'] + 1e-6  # float16 leaves round.
    self.assertLess(_nmse(output.result, truth), limit)
    return output


_NONFINITE = (
  ('nan', lambda rng: _filled(np.nan)),
  ('inf', lambda rng: _filled(np.inf)),
  ('minus_inf', lambda rng: _filled(-np.inf)),
  ('one_nan_half', _one_entry('half', np.nan)),
  ('one_inf_single', _one_entry('single', np.inf)),
  ('one_nan_double', _one_entry('double', np.nan)),
)


class RejectedClientsTest(_StateChecks):
  """A client with an entry that is not finite adds nothing and is counted."""

  @parameterized.named_parameters(*_NONFINITE)
  def test_good_clients_are_summed_and_bad_ones_counted(self, make_bad):
    rng = np.random.default_rng(2)
    process = _sum_process()
    for num_bad in (1, 4, 5):
      values = [_good_structure(rng) for _ in range(5)]
      for index in range(num_bad):
        values[index] = make_bad(rng)
      output = process.next(_settled_sum_state(), values)
      measured = output.measurements
      self.assertEqual(measured['rejected_clients'], num_bad)
      self.assertEqual(measured['num_clients'], 5 - num_bad)
      self.assert_bin_size_usable(output.state)
      truth = _sum(values[num_bad:], _vector(values[0]).size)
      if num_bad == 5:
        np.testing.assert_array_equal(_vector(output.result), truth)
        _assert_same(_tuner(output.state), _tuner(_settled_sum_state()))
      else:
        limit = _SLACK * measured['predicted_nmse'] + 1e-6
        self.assertLess(_nmse(output.result, truth), limit)
      self.assert_clean_round(process, output.state, rng)

  def test_a_first_round_of_rejected_clients_calibrates_again(self):
    process, rng = _sum_process(), np.random.default_rng(3)
    output = process.next(process.initialize(), [_filled(np.nan)] * 2)
    self.assertTrue(_tuner(output.state)['calibrating'])
    output = process.next(output.state, [_good_structure(rng)] * 5)
    self.assertTrue(output.measurements['calibrating'])
    self.assert_clean_round(process, output.state, rng)

  def test_no_clients_change_nothing_but_the_round(self):
    process, rng = _sum_process(), np.random.default_rng(4)
    before = _settled_sum_state()
    output = process.next(before, [])
    self.assertEqual(output.measurements['num_clients'], 0)
    self.assertFalse(output.measurements['blind'])
    self.assertFalse(np.any(_vector(output.result)))
    _assert_same(_tuner(output.state), _tuner(before))
    self.assertEqual(output.state['round'], before['round'] + 1)
    self.assert_clean_round(process, output.state, rng)


class UnusualClientsTest(_StateChecks):
  """Clients that look odd and are none the worse for it."""

  @parameterized.named_parameters(
    ('zeros', 0.0, False),
    ('denormal', 1e-42, False),
    ('constant', 0.1, True),
  )
  def test_all_clients_are_summed(self, number, contributes):
    rng = np.random.default_rng(5)
    process = _sum_process()
    for num_odd in (1, 4):
      values = [_good_structure(rng) for _ in range(5)]
      values[:num_odd] = [_filled(number)] * num_odd
      output = process.next(_settled_sum_state(), values)
      measured = output.measurements
      self.assertEqual(measured['rejected_clients'], 0)
      if contributes or not number:
        expected = 5 if contributes else 5 - num_odd
        self.assertEqual(measured['num_clients'], expected)
      truth = _sum(values, _vector(values[0]).size)
      limit = _SLACK * measured['predicted_nmse'] + 1e-6
      self.assertLess(_nmse(output.result, truth), limit)
      self.assert_clean_round(process, output.state, rng)

  def test_zeros_of_all_clients_are_a_sum_of_zeros(self):
    process, rng = _sum_process(), np.random.default_rng(6)
    before = _settled_sum_state()
    state = before
    for _ in range(3):
      output = process.next(state, [_filled(0.0)] * 5)
      state = output.state
      self.assertTrue(output.measurements['zero_sum'])
      self.assertFalse(output.measurements['blind'])
      self.assertFalse(np.any(_vector(output.result)))
      _assert_same(_tuner(state), _tuner(before))
    self.assert_clean_round(process, state, rng)

  def test_denormals_of_all_clients_leave_a_usable_state(self):
    process, rng = _sum_process(), np.random.default_rng(7)
    state = _settled_sum_state()
    state = process.next(state, [_filled(1e-42)] * 5).state
    self.assert_bin_size_usable(state)
    state = process.next(state, [_good_structure(rng)] * 5).state
    self.assert_clean_round(process, state, rng)


class OverwhelmingClientTest(_StateChecks):
  """A finite client that drowns the others costs its round and the next."""

  @parameterized.named_parameters(
    ('million', lambda rng: _scaled(_good_structure(rng), 1e6)),
    ('single_1e38', _one_entry('single', 1e38)),
    ('double_1e300', _one_entry('double', 1e300)),
  )
  def test_is_flagged_and_recovered_from_within_two_rounds(self, make_bad):
    process, rng = _sum_process(), np.random.default_rng(8)
    values = [_good_structure(rng) for _ in range(4)] + [make_bad(rng)]
    output = process.next(_settled_sum_state(), values)
    self.assertTrue(output.measurements['blind'])
    # Blind rounds are dropped, rather than random.
    self.assertFalse(np.any(_vector(output.result)))
    self.assert_bin_size_usable(output.state)
    values = [_good_structure(rng) for _ in range(5)]
    output = process.next(output.state, values)
    self.assertTrue(output.measurements['calibrating'])
    truth = _sum(values, _vector(values[0]).size)
    self.assertLess(_nmse(output.result, truth), 1)
    self.assert_clean_round(process, output.state, rng)

  def test_in_a_calibration_round_is_recovered_from_within_three_rounds(self):
    process, rng = _sum_process(), np.random.default_rng(9)
    values = [_good_structure(rng) for _ in range(4)]
    huge = collections.OrderedDict(
      half=np.zeros(300, np.float16),
      single=np.float32(1e5) * values[0]['single'],
      double=np.float64(0),
    )
    output = process.next(process.initialize(), values + [huge])
    self.assertFalse(output.measurements['blind'])
    state = output.state
    for _ in range(2):
      state = process.next(state, [_good_structure(rng)] * 5).state
      self.assert_bin_size_usable(state)
    self.assert_clean_round(process, state, rng)


def _scaled(value, factor):
  """The float32 leaf times `factor`, the others as they are."""
  value['single'] = value['single'] * np.float32(factor)
  return value


@functools.lru_cache(maxsize=None)
def _mean_process(zeroing):
  factory = autotune.autotuned_secure_aggregator(
    modulus=_WIDE, zeroing=zeroing, clipping=False, seed=1
  )
  half = tff.TensorType(np.float16, [512])
  single = tff.TensorType(np.float32, [512])
  return factory.create(tff.to_type((half, single)), _WEIGHT_TYPE)


def _good_pair(rng):
  half = rng.normal(size=512).astype(np.float16)
  return half, rng.normal(size=512).astype(np.float32)


@functools.lru_cache(maxsize=None)
def _settled_mean_state(zeroing):
  process, rng = _mean_process(zeroing), np.random.default_rng(10)
  state = process.initialize()
  for _ in range(2):
    values = [_good_pair(rng) for _ in range(5)]
    state = process.next(state, values, [np.float32(10)] * 5).state
  return state


def _pair_vector(pair):
  return np.concatenate([np.asarray(x, np.float64) for x in pair])


class BadWeightsTest(_StateChecks):
  """Weights that are out of range are refused with their value."""

  def _run(self, weights, values=None):
    rng = np.random.default_rng(11)
    values = values or [_good_pair(rng) for _ in range(len(weights))]
    output = _mean_process(False).next(
      _settled_mean_state(False), values, [np.float32(w) for w in weights]
    )
    self.assert_bin_size_usable(output.state)
    return values, output

  def _assert_mean(self, output, values, weights):
    total = sum(weights)
    truth = sum(_pair_vector(v) * w for v, w in zip(values, weights)) / total
    predicted = output.measurements['value']['predicted_nmse']
    error = np.sum((_pair_vector(output.result) - truth) ** 2)
    self.assertLess(error / np.sum(truth**2), _SLACK * predicted + 1e-6)
    np.testing.assert_allclose(
      output.measurements['weight_sum'], total, rtol=1e-6
    )

  @parameterized.named_parameters(
    ('negative', -3.0),
    ('tiny_negative', -1e-30),
    ('nan', np.nan),
    ('inf', np.inf),
    ('minus_inf', -np.inf),
    ('above_limit', 2.0**40 * 1.001),
    ('largest_float', 3e38),
  )
  def test_are_rejected_and_counted(self, weight):
    values, output = self._run([10, weight, 20, 10])
    self.assertEqual(output.measurements['rejected_clients'], 1)
    self.assertEqual(output.measurements['value']['num_clients'], 3)
    good = [values[0], values[2], values[3]]
    self._assert_mean(output, good, [10, 20, 10])

  @parameterized.named_parameters(
    ('zero', (0.0, 10, 10, 10)),
    ('fractional', (0.3, 0.7, 0.2, 0.9)),
    ('hundreds', (700.0, 900.0, 300.0, 500.0)),
  )
  def test_usual_ones_count(self, weights):
    values, output = self._run(weights)
    self.assertEqual(output.measurements['rejected_clients'], 0)
    if max(weights) > 100:  # Another size than before: maybe no good round yet.
      output = _mean_process(False).next(
        _settle(output.state, values, weights),
        values,
        [np.float32(w) for w in weights],
      )
    weights = [float(np.float32(w)) for w in weights]
    self._assert_mean(output, values, weights)

  def test_all_zero_give_a_mean_of_zero(self):
    _, output = self._run([0.0] * 4)
    self.assertFalse(np.any(_pair_vector(output.result)))
    self.assertEqual(output.measurements['weight_sum'], 0)
    self.assertEqual(output.measurements['rejected_clients'], 0)

  def test_all_rejected_give_a_mean_of_zero(self):
    _, output = self._run([-1.0, np.nan])
    self.assertFalse(np.any(_pair_vector(output.result)))
    self.assertEqual(output.measurements['rejected_clients'], 2)

  @parameterized.named_parameters(
    ('nan_half', 0, np.nan), ('inf_single', 1, np.inf), ('1e38', 1, 1e38)
  )
  def test_a_bad_value_does_not_count_in_the_denominator(self, leaf, number):
    rng = np.random.default_rng(12)
    values = [_good_pair(rng) for _ in range(4)]
    values[0][leaf][:] = number
    values, output = self._run([40, 10, 20, 10], values)
    self.assertEqual(output.measurements['rejected_clients'], 1)
    self._assert_mean(output, values[1:], [10, 20, 10])


def _settle(state, values, weights):
  """The state after a calibration for these clients."""
  process = _mean_process(False)
  weights = [np.float32(w) for w in weights]
  for _ in range(2):
    state = process.next(state, values, weights).state
  return state


class ZeroingTest(_StateChecks):
  """A client far larger than the others becomes zeros and keeps its weight.

  A client that is not finite is rejected, and its weight with it.
  """

  @parameterized.named_parameters(
    ('million', 1e6, 0),
    ('1e38', 1e38, 0),
    ('inf', np.inf, 1),
    ('minus_inf', -np.inf, 1),
    ('nan', np.nan, 1),
  )
  def test_others_are_averaged_and_the_next_round_is_normal(
    self, number, num_rejected
  ):
    process, rng = _mean_process(True), np.random.default_rng(13)
    values = [_good_pair(rng) for _ in range(5)]
    values[0][1][:] = number
    weights = [np.float32(10)] * 5
    output = process.next(_settled_mean_state(True), values, weights)
    # The layers from outside: zeroing, mean, sum.
    measured = output.measurements
    mean = measured['zeroing']
    self.assertEqual(mean['rejected_clients'], num_rejected)
    self.assertEqual(measured['zeroed_count'], 1 - num_rejected)
    self.assertEqual(mean['value']['num_clients'], 4)
    total = 10.0 * (5 - num_rejected)
    self.assertEqual(mean['weight_sum'], total)
    truth = 10 * sum(_pair_vector(v) for v in values[1:]) / total
    error = np.sum((_pair_vector(output.result) - truth) ** 2)
    limit = _SLACK * mean['value']['predicted_nmse'] + 1e-6
    self.assertLess(error / np.sum(truth**2), limit)

    values = [_good_pair(rng) for _ in range(5)]
    output = process.next(output.state, values, weights)
    mean = output.measurements['zeroing']
    self.assertFalse(mean['value']['calibrating'])
    truth = sum(_pair_vector(v) for v in values) / 5
    error = np.sum((_pair_vector(output.result) - truth) ** 2)
    limit = _SLACK * mean['value']['predicted_nmse'] + 1e-6
    self.assertLess(error / np.sum(truth**2), limit)


class DefaultTest(_StateChecks):
  """As it is by default, with zeroing and clipping."""

  @parameterized.named_parameters(
    ('inf', np.inf), ('minus_inf', -np.inf), ('nan', np.nan)
  )
  def test_who_is_not_finite_is_rejected_with_its_weight(self, number):
    process, rng = _default_process(), np.random.default_rng(15)
    state = process.initialize()
    for _ in range(2):
      state = process.next(state, _small_pairs(rng), [np.float32(10)] * 5).state
    values = _small_pairs(rng)
    values[0][1][-1:] = number
    output = process.next(state, values, [np.float32(10)] * 5)
    measured = autotune.round_measurements(output.measurements)
    self.assertEqual(measured['rejected_clients'], 1)
    self.assertEqual(measured['weight_sum'], 40)
    self.assertEqual(measured['num_clients'], 4)
    self.assertEqual(measured['zeroed_count'], 0)
    self.assertEqual(measured['clipped_count'], 0)
    truth = sum(_pair_vector(v) for v in values[1:]) / 4
    error = np.sum((_pair_vector(output.result) - truth) ** 2)
    limit = _SLACK * measured['predicted_nmse'] + 1e-6
    self.assertLess(error / np.sum(truth**2), limit)
    self.assert_bin_size_usable(output.state)


@functools.lru_cache(maxsize=None)
def _default_process():
  factory = autotune.autotuned_secure_aggregator(modulus=_WIDE, seed=1)
  half = tff.TensorType(np.float16, [512])
  single = tff.TensorType(np.float32, [512])
  return factory.create(tff.to_type((half, single)), _WEIGHT_TYPE)


def _small_pairs(rng):
  """Five clients of a norm near 0.6, below the first limit of the clipping."""
  pairs = [_good_pair(rng) for _ in range(5)]
  return [
    (half / np.float16(50), single / np.float32(50)) for half, single in pairs
  ]


class ScalarTest(_StateChecks):
  def test_bad_scalars_do_not_touch_the_mean_of_good_ones(self):
    factory = autotune.autotuned_secure_aggregator(
      modulus=_WIDE, zeroing=False, clipping=False, weighted=False, seed=1
    )
    process = factory.create(tff.TensorType(np.float32))
    state = process.initialize()
    for bad in (1.0, 1.0, np.nan, -np.inf, 1e38, 0.0, 1e-42):
      values = [np.float32(bad)] + [np.float32(3)] * 3
      output = process.next(state, values)
      state = output.state
      self.assert_bin_size_usable(state)
    # The last: zero counts as a value.
    np.testing.assert_allclose(output.result, 9 / 4, rtol=1e-3)
    output = process.next(state, [np.float32(np.nan)] + [np.float32(3)] * 3)
    self.assertEqual(output.measurements['rejected_clients'], 1)
    np.testing.assert_allclose(output.result, 3, rtol=1e-3)


class DitherTest(_StateChecks):
  """Dither is taken off for those clients only who added it."""

  def test_rejected_and_silent_clients_leave_no_dither(self):
    factory = autotune.autotuned_secure_aggregator(
      zeroing=False,
      clipping=False,
      seed=1,
      rounding=autotune.Rounding.DITHER,
    )
    process = factory.create(tff.TensorType(np.float32, [1024]), _WEIGHT_TYPE)
    rng = np.random.default_rng(14)
    state = process.initialize()
    for _ in range(3):
      values = [rng.normal(size=1024).astype(np.float32) for _ in range(30)]
      weights = [np.float32(1)] * 2
      weights += [np.float32(0), np.float32(-1)] * 14
      output = process.next(state, values, weights)
      state = output.state
    self.assertEqual(output.measurements['value']['num_clients'], 2)
    truth = (values[0] + values[1]) / 2
    # Dither of 30 clients on 2 would be off by 28**2 / 12 = 65 bins**2, more
    # than the sum itself has at times: 2 to 40 times the limit.
    error = np.sum((output.result - truth) ** 2) / np.sum(truth**2)
    self.assertLess(
      error, _SLACK * output.measurements['value']['predicted_nmse']
    )


if __name__ == '__main__':
  tf.test.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
import functools
import inspect
import math

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow_federated as tff

from experiments.common import aggregator_factories
from experiments.common import aggregators
from experiments.common.baselines import kashin
from experiments.common.baselines import levels as levels_lib
from tests import stat_checks
import tff_autotune_secagg as autotune
from tff_autotune_secagg import simulation

_NUM_VALUES = 1000
_TWO_BITS = 'autotuned:modulus=4,zeroing=false,clipping=false'


def setUpModule():
  simulation.set_local_context()


def tearDownModule():
  simulation.close()


def _info(num_clients, weighted=False, leaf_sizes=(_NUM_VALUES,)):
  return aggregator_factories.Round(
    num_clients, leaf_sizes, seed=7, weighted=weighted
  )


def _run(factory, values, rounds=1):
  """The last result of a mean of float32 vectors, state threaded."""
  process = factory.create(tff.TensorType(np.float32, [np.shape(values)[1]]))
  return _run_process(process, values, rounds)


def _run_process(process, values, rounds):
  state = process.initialize()
  for _ in range(rounds):
    output = process.next(state, list(np.float32(values)))
    state = output.state
  return output.result


def _nmse(result, values):
  wanted = np.mean(values, axis=0, dtype=np.float64)
  return np.sum((result - wanted) ** 2) / np.sum(wanted**2)


class ParseTest(parameterized.TestCase):
  def test_settings_and_defaults(self):
    scheme = aggregators.parse('autotuned:modulus=16,wrap_probability=0.01')
    self.assertEqual(scheme.name, 'autotuned')
    self.assertEqual(scheme.settings['modulus'], 16)
    self.assertEqual(scheme.settings['wrap_probability'], 0.01)
    self.assertEqual(scheme.settings['rounding'], 'stochastic')

  def test_defaults_of_autotuned_are_those_of_the_package(self):
    arguments = inspect.signature(
      autotune.autotuned_secure_aggregator
    ).parameters
    settings = aggregators.parse('autotuned').settings
    for name in (
      'modulus',
      'wrap_probability',
      'zeroing',
      'num_rotations',
    ):
      self.assertEqual(settings[name], arguments[name].default, name)
    self.assertEqual(settings['prediction'], arguments['predict_sum'].default)

  @parameterized.named_parameters(
    (
      'name',
      'autotune',
      r'`aggregator` must be one of plain_mean, '
      r"clipped_mean, .*autotuned, found 'autotune'\.",
    ),
    (
      'setting',
      'plain_mean:bits=3',
      "Settings of the aggregator 'plain_mean' must be among zeroing=..., "
      r"clipping=...; found 'bits=3'\.",
    ),
    (
      'bits',
      'kashin:bits=8',
      "Settings of the aggregator 'kashin' must be among modulus=..., "
      r"wrap_probability=...; found 'bits=8'\. The modulus is 2\*\*bits: write "
      r'modulus=256 for 8 bits\.',
    ),
    (
      'no_value',
      'kashin:modulus',
      "Settings of the aggregator 'kashin' must "
      r"be among modulus=..., wrap_probability=...; found 'modulus'\.",
    ),
    (
      'value',
      'autotuned:modulus=many',
      "Setting 'modulus' of the aggregator "
      r"'autotuned' must be an int, found 'many'\.",
    ),
    (
      'choice',
      'autotuned:rounding=up',
      "Setting 'rounding' of the aggregator "
      r"'autotuned' must be stochastic or dither, found 'up'\.",
    ),
    (
      'probability',
      'autotuned:wrap_probability=1',
      'Setting '
      "'wrap_probability' of the aggregator 'autotuned' must be auto or a "
      r"number between 0 and 1, found '1'\.",
    ),
    (
      'not_finite',
      'fixed_range:clip_range=nan',
      "Setting 'clip_range' of the "
      "aggregator 'fixed_range' must be auto or a positive number, "
      r"found 'nan'\.",
    ),
    (
      'boolean',
      'fixed_range:clip_range=1,rotate=1',
      "Setting 'rotate' of the "
      r"aggregator 'fixed_range' must be true or false, found '1'\.",
    ),
    (
      'share',
      'fixed_range:clip_range=1,rotate=true,sampled_fraction=0',
      "Setting 'sampled_fraction' of the aggregator 'fixed_range' must be above"
      r" 0 and at most 1, found '0'\.",
    ),
    (
      'sample_without_rotation',
      'fixed_range:clip_range=1,sampled_fraction=0.5',
      "Setting 'sampled_fraction' of the aggregator 'fixed_range' must be 1 "
      'without rotate=true, found 0.5: a few large coordinates could be left '
      r'out\. Write rotate=true\.',
    ),
    (
      'required',
      'fixed_range',
      "The aggregator 'fixed_range' must be given "
      "the setting 'clip_range', found 'fixed_range'. Write for instance "
      r'fixed_range:clip_range=1\.',
    ),
    (
      'empty',
      'rotated_secure_sum:',
      "Settings of the aggregator 'rotated_secure_sum' must be among none; "
      r"found ''\.",
    ),
    (
      'twice',
      'autotuned:modulus=8,modulus=16',
      "Settings of the aggregator 'autotuned' must be given once each, found"
      r" 'modulus' again in 'autotuned:modulus=8,modulus=16'\.",
    ),
  )
  def test_wrong_text_says_what_is_right(self, text, message):
    with self.assertRaisesRegex(ValueError, f'^{message}$'):
      aggregators.parse(text)

  def test_description_names_every_aggregator(self):
    for name in aggregators.NAMES:
      self.assertIn(name, aggregators.describe())


class PayloadTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('plain_mean', 'plain_mean', 32, 4000, False),
    ('fixed_range', 'fixed_range:bits=8,clip_range=1', 8, 1000, True),
    # 36 bits: 32-bit numbers, and room for the sum of 10.
    ('secure', 'secure_aggregator', 36, 4500, True),
    # Order 1008 is the next after 1000.
    ('rotated_secure', 'rotated_secure_sum', 36, 4536, True),
    # No tensor is above the threshold of 20,000 values.
    ('compression', 'compression_aggregator', 32, 4000, False),
    ('ddp', 'ddp_secure_aggregator:bits=16', 16, 2048, True),
    ('central_dp', 'central_dp', 32, 4000, False),
    # Of 1,024 coordinates; parallel updates of ten clients have room.
    ('distributed_dp', 'distributed_dp', 6, 768, True),
    ('distributed_dp_k', 'distributed_dp:modulus=128', 7, 896, True),
    # Of so few all are sent; `test_bytes_of_a_sample` has more.
    ('distributed_dp_p', 'distributed_dp:sampled_fraction=0.5', 6, 768, True),
    # Order 1008 is the next after 1000; 8 bytes for the client's range.
    ('suresh', 'rotated_quantization:bits=4', 4, 512, False),
    ('kashin', 'kashin:modulus=256', 8, 2048, True),
  )
  def test_bits_and_bytes(self, text, bits, num_bytes, secure):
    built = aggregator_factories.build(text, _info(10))
    self.assertEqual(built.bits_per_coordinate, bits)
    self.assertEqual(built.bytes_per_client, num_bytes)
    self.assertEqual(aggregators.parse(text).secure, secure)

  def test_bytes_of_a_sample(self):
    for fraction, bits in ((1, 7), (0.25, 8), (0.1, 8)):
      built = aggregator_factories.build(
        f'distributed_dp:clip_norm=1,sampled_fraction={fraction}',
        _info(100, leaf_sizes=(2**15,)),
      )
      self.assertEqual(built.bits_per_coordinate, bits)
      num_sent = math.ceil(fraction * 2**15)
      self.assertEqual(built.bytes_per_client, math.ceil(num_sent * bits / 8))

  @parameterized.parameters((0.5, 2**14, 3.5), (0.3, 9831, 7 * 9831 / 2**15))
  def test_bytes_and_bits_of_a_sampled_range(self, fraction, num_sent, bits):
    built = aggregator_factories.build(
      f'fixed_range:bits=7,clip_range=1,rotate=true,sampled_fraction={fraction}',
      _info(100, leaf_sizes=(2**15,)),
    )
    self.assertAlmostEqual(built.bits_per_coordinate, bits)
    self.assertEqual(built.bytes_per_client, math.ceil(num_sent * 7 / 8))

  def test_compression_counts_only_large_tensors_at_eight_bits(self):
    built = aggregator_factories.build(
      'compression_aggregator', _info(10, leaf_sizes=(30000, 10000))
    )
    self.assertEqual(built.bytes_per_client, 30000 + 4 * 10000)
    self.assertEqual(built.bits_per_coordinate, 14)

  @parameterized.parameters(1, 2, 3, 7, 10, 100, 128)
  def test_fixed_range_uses_its_bits_up(self, num_clients):
    # The largest sum is that of clients at their last level, and fits; with
    # one level more it would not.
    least = num_clients.bit_length()
    for bits in range(least, least + 4):
      built = aggregator_factories.build(
        f'fixed_range:bits={bits},clip_range=1', _info(num_clients)
      )
      self.assertEqual(built.bits_per_coordinate, bits)
      built = aggregator_factories.build(
        f'fixed_range:bits={bits},clip_range=1,rotate=true', _info(num_clients)
      )
      self.assertEqual(built.bits_per_coordinate, bits)
      levels = levels_lib.most_levels(bits, num_clients)
      self.assertGreaterEqual(levels, 2)
      self.assertLess(num_clients * (levels - 1), 2**bits)
      self.assertGreaterEqual(num_clients * levels, 2**bits)

  @parameterized.parameters(
    ('fixed_range:clip_range=1,', 4), ('ddp_secure_aggregator:', 4)
  )
  def test_too_few_bits_say_how_many_are_needed(self, text, least):
    name = text.partition(':')[0]
    with self.assertRaisesRegex(
      aggregator_factories.TooFewBitsError,
      f"^`bits` of the aggregator '{name}' must be at least {least} for 10 "
      f'clients per round, found {least - 1}[.]$',
    ):
      aggregator_factories.build(f'{text}bits={least - 1}', _info(10))
    # Negative control: one more bit will do.
    aggregator_factories.build(f'{text}bits={least}', _info(10))


class FillInTest(absltest.TestCase):
  def test_replaces_what_is_in_braces(self):
    text = aggregators.fill_in(
      'a:{bits},{modulus},{max},{max/10},{max/0}', 3, np.float32(0.5)
    )
    self.assertEqual(text, 'a:3,8,0.5,0.05,{max/0}')

  def test_replaces_deviations_and_no_other_multiples(self):
    text = aggregators.fill_in(
      'a:{3*rms},{12*rms},{0*rms},{rms}', 3, 1.0, deviation=np.float32(0.5)
    )
    self.assertEqual(text, 'a:1.5,6.0,{0*rms},{rms}')


def _levels(bits, num_clients):
  """As many as fit, less one where that puts a level at 0."""
  most = (2**bits - 1) // num_clients + 1
  return most if most == 2 or most % 2 else most - 1


class FixedRangeTest(parameterized.TestCase):
  @parameterized.parameters(1, 33)
  def test_grid_points_are_summed_exactly_for_every_client_count(
    self, num_clients
  ):
    levels = _levels(10, num_clients)
    rng = np.random.default_rng(num_clients)
    # Ends of the range included: their sum is the largest possible one.
    numbers = rng.integers(0, levels, (num_clients, 50))
    numbers[:, 0], numbers[:, 1] = 0, levels - 1
    values = -0.5 + numbers / (levels - 1)
    built = aggregator_factories.build(
      'fixed_range:bits=10,clip_range=0.5', _info(num_clients)
    )
    result = _run(built.factory, values)
    # A position may be a float32 rounding off its level, and then goes to the
    # neighbour with that small probability; the tolerance is for the decoding.
    np.testing.assert_allclose(result, values.mean(axis=0), atol=1e-5)

  def test_fewer_clients_than_planned_decode_right(self):
    built = aggregator_factories.build(
      'fixed_range:bits=16,clip_range=0.5', _info(20)
    )
    values = np.random.default_rng(0).uniform(-0.5, 0.5, (3, 50))
    # Levels are 1 / 3276 apart.
    np.testing.assert_allclose(
      _run(built.factory, values), values.mean(axis=0), atol=1 / 3276
    )

  def test_rounding_is_unbiased_and_independent_between_clients(self):
    num_clients, size = 16, 20000
    built = aggregator_factories.build(
      'fixed_range:bits=8,clip_range=1', _info(num_clients)
    )
    levels = _levels(8, num_clients)
    step = 2 / (levels - 1)
    process = built.factory.create(tff.TensorType(np.float32, [size]))
    for fraction in (0.2, 0.3, 0.4):
      value = -1 + (3 + fraction) * step
      result = _run_process(process, np.full((num_clients, size), value), 1)
      # Of each client: variance fraction * (1 - fraction) step^2. Were the
      # clients' draws the same, the spread of the mean would be four times
      # this.
      stddev = step * math.sqrt(fraction * (1 - fraction) / num_clients)
      self.assertAlmostEqual(
        np.mean(result), value, delta=5 * stddev / math.sqrt(size)
      )
      # Standard error of a standard deviation of nearly normal draws.
      self.assertAlmostEqual(
        np.std(result), stddev, delta=5 * stddev / math.sqrt(2 * size)
      )

  @parameterized.parameters((8, 10), (9, 100))
  def test_zeros_stay_zeros(self, bits, num_clients):
    built = aggregator_factories.build(
      f'fixed_range:bits={bits},clip_range=1', _info(num_clients)
    )
    values = np.zeros([num_clients, 50], np.float32)
    # The sum of the levels is exact, its place in units of values is not.
    np.testing.assert_allclose(_run(built.factory, values), 0.0, atol=1e-6)

  def test_values_beyond_the_range_are_clipped_and_do_not_wrap(self):
    built = aggregator_factories.build(
      'fixed_range:bits=10,clip_range=0.5', _info(4)
    )
    values = np.full((4, 10), 3.0)
    np.testing.assert_allclose(_run(built.factory, values), 0.5, rtol=1e-5)


class SampledRangeTest(parameterized.TestCase):
  """Half of 2,048 rotated coordinates, of three clients that are alike."""

  _CLIENTS, _DIM, _ROUNDS, _RANGE = 3, 2048, 40, 5.5

  def _means(self, bits):
    value = np.random.default_rng(11).normal(size=self._DIM)
    built = aggregator_factories.build(
      f'fixed_range:bits={bits},clip_range={self._RANGE},rotate=true,'
      'sampled_fraction=0.5',
      _info(self._CLIENTS, leaf_sizes=(self._DIM,)),
    )
    process = built.factory.create(tff.TensorType(np.float32, [self._DIM]))
    state, means = process.initialize(), []
    for _ in range(self._ROUNDS):
      output = process.next(state, [np.float32(value)] * self._CLIENTS)
      state = output.state
      means.append(output.result)
    return value, np.array(means, np.float64)

  # With 2 bits there are two levels, with 8 there are 86.
  @parameterized.parameters((2, 2), (8, 86))
  def test_is_unbiased_with_the_error_of_sample_and_levels(
    self, bits, num_levels
  ):
    value, means = self._means(bits)
    # Along the value.
    along = means @ value / np.sum(value**2)
    error = stat_checks.mean_error(np.std(along, ddof=1), self._ROUNDS)
    self.assertTrue(stat_checks.is_near(np.mean(along), 1.0, error))
    # Negative control: without the scaling half of it is left.
    self.assertFalse(stat_checks.is_near(np.mean(along / 2), 1.0, 2 * error))
    # Blocks of two: half of the coordinates come back doubled, half as 0, and
    # what rounding adds to the former is doubled. A value between two levels at
    # distances u and v of it has the variance u v. Of more levels than two, it
    # is a sixth of the squared step in the mean.
    energies = np.sum((means - value) ** 2, axis=1)
    left_out = np.sum(value**2)
    if num_levels == 2:
      rounding = self._DIM * self._RANGE**2 - np.sum(value**2)
    else:
      rounding = self._DIM * (2 * self._RANGE / (num_levels - 1)) ** 2 / 6
    wanted = left_out + 2 * rounding / self._CLIENTS
    error = stat_checks.mean_error(np.std(energies, ddof=1), self._ROUNDS)
    self.assertTrue(stat_checks.is_near(np.mean(energies), wanted, error))
    # The negative control: the larger term is far above the tolerance. That is
    # the levels' one with two, and the sample's one with many.
    self.assertGreater(max(left_out, rounding), 10 * error)

  def test_each_round_draws_anew(self):
    _, means = self._means(bits=8)
    self.assertGreater(np.sum((means[0] - means[1]) ** 2), self._DIM)


class LimitsTest(parameterized.TestCase):
  """TFF's limits begin at a norm of 1 and at a coordinate of 21."""

  def _result(self, text, values):
    info = _info(len(values), weighted=True, leaf_sizes=(4,))
    process = aggregator_factories.build(text, info).factory.create(
      tff.TensorType(np.float32, [4]), tff.TensorType(np.float32)
    )
    return process.next(
      process.initialize(), list(np.float32(values)), [3.0, 1.0]
    ).result

  # The range is of updates times weights.
  @parameterized.parameters('plain_mean:', 'fixed_range:bits=24,clip_range=50,')
  def test_norms_are_clipped_and_large_values_are_zeroed(self, text):
    values = np.array([[0.3, 0.0, -0.4, 0.0], [0.0, 6.0, 0.0, 8.0]])
    # Levels are 100 / 2**23 apart; the sum is divided by 4.
    is_near = functools.partial(np.testing.assert_allclose, atol=2e-5)
    plain = (3 * values[0] + values[1]) / 4
    clipped = (3 * values[0] + values[1] / 10) / 4
    is_near(self._result(f'{text}clipping=true', values), clipped)
    is_near(self._result(f'{text}zeroing=true', values), plain)
    # The negative control.
    is_near(self._result(f'{text}zeroing=false', values), plain)
    self.assertGreater(np.abs(plain - clipped).max(), 1)
    # An update that is zeroed keeps its weight.
    large = np.array([values[0], [0.0, 0.0, 22.0, 0.0]])
    is_near(self._result(f'{text}zeroing=true', large), 3 * values[0] / 4)
    is_near(
      self._result(f'{text}zeroing=false', large),
      (3 * values[0] + large[1]) / 4,
    )

  def test_defaults_have_no_limits(self):
    for text in ('plain_mean', 'fixed_range:clip_range=1'):
      settings = aggregators.parse(text).settings
      self.assertIs(settings['zeroing'], False)
      self.assertIs(settings['clipping'], False)

  def test_sends_only_sums(self):
    built = aggregator_factories.build(
      'fixed_range:clip_range=1,rotate=true,sampled_fraction=0.5,zeroing=true,'
      'clipping=true',
      _info(4, leaf_sizes=(2048,)),
    )
    tff.test.assert_not_contains_unsecure_aggregation(
      built.factory.create(tff.TensorType(np.float32, [2048])).next
    )


class AdaptiveRangeTest(parameterized.TestCase):
  """The range begins at 100 and grows e^0.95 in a round that it clips."""

  _SIGMA = 1e4

  def _error(self, text):
    values = np.random.default_rng(3).normal(0, self._SIGMA, (10, _NUM_VALUES))
    built = aggregator_factories.build(text, _info(10))
    return _nmse(_run(built.factory, values, rounds=10), values)

  @parameterized.parameters('', ',rotate=true')
  def test_finds_a_range(self, rotate):
    # Largest of 1,000 normal numbers: 3.2 sigma. The range is twice what may be
    # e^0.95 above that, in 24 steps; the variance of a step is a sixth.
    step = 2 * 2 * 3.2 * math.exp(0.95) / 24
    self.assertLess(
      self._error(f'fixed_range:bits=8,clip_range=auto{rotate}'),
      1.3 * step**2 / 6,
    )

  def test_a_constant_range_as_small_as_the_first_loses_all(self):
    self.assertGreater(self._error('fixed_range:bits=8,clip_range=100'), 0.9)

  def test_sends_only_sums(self):
    built = aggregator_factories.build(
      'fixed_range:clip_range=auto', _info(4, leaf_sizes=(16,))
    )
    tff.test.assert_not_contains_unsecure_aggregation(
      built.factory.create(tff.TensorType(np.float32, [16])).next
    )


class ClippedMeanTest(absltest.TestCase):
  def test_clips_what_is_larger_than_usual(self):
    built = aggregator_factories.build(
      'clipped_mean:factor=2', _info(2, weighted=True, leaf_sizes=(2, 1))
    )
    process = built.factory.create(
      tff.to_type([(np.float32, (2,)), (np.float32, (1,))]),
      tff.TensorType(np.float32),
    )
    state = process.initialize()
    usual = None  # Of the logarithm of the norm of the sum, by hand.
    # The usual sum, more than twice it, none at all, less; a usual mean whose
    # weights are large, and the other way round.
    rounds = ((1.0, 4), (4.0, 4), (0.0, 4), (0.5, 4), (1.0, 32), (8.0, 0.5))
    for scale, weights in rounds:
      update = [np.float32([2 * scale, 0.0]), np.float32([2 * scale])]
      output = process.next(
        state, [update, update], [0.25 * weights, 0.75 * weights]
      )
      state = output.state
      norm = scale * math.sqrt(8) * weights
      if usual is None:
        usual = math.log(norm)
      most = 2 * math.exp(usual)
      self.assertEqual(output.measurements['is_clipped'], norm > most, scale)
      found = np.concatenate([np.ravel(leaf) for leaf in output.result])
      np.testing.assert_allclose(
        found,
        np.array([2.0, 0.0, 2.0]) * scale * min(1, most / max(norm, 1e-9)),
        rtol=1e-5,
      )
      if scale:
        usual = 0.9 * usual + 0.1 * math.log(norm)

  def test_has_no_unweighted_form(self):
    with self.assertRaisesRegex(ValueError, 'clipped_mean must be given weigh'):
      aggregator_factories.build('clipped_mean', _info(2))


class ErrorTest(parameterized.TestCase):
  """Every aggregator averages normal updates to the accuracy of its bits."""

  def _values(self, num_clients=10):
    rng = np.random.default_rng(5)
    return rng.normal(0, 0.01, (num_clients, _NUM_VALUES))

  # Bounds: predicted error energy over that of the mean, 1e-5 here, per entry
  # and client, times 1.3 for the 1,000 entries, over which it averages.
  @parameterized.named_parameters(
    ('plain_mean', 'plain_mean', 1e-12),
    # step 0.1 / 24, variance step^2 / 6 against 1e-4.
    ('fixed_range', 'fixed_range:bits=8,clip_range=0.05', 1.3 * 0.029),
    (
      'fixed_range_rotated',
      'fixed_range:bits=8,clip_range=0.05,rotate=true',
      1.3 * 0.029,
    ),
    ('secure', 'secure_aggregator:zeroing=false,clipping=false', 1e-9),
    ('rotated_secure', 'rotated_secure_sum', 1e-9),
    ('compression', 'compression_aggregator', 1e-12),
    # Ranges of about 6.5 sigma in 255 steps: step^2 / 6 against sigma^2.
    (
      'suresh',
      'rotated_quantization:bits=8',
      1.3 * 6.5**2 / 255**2 / 6 * 1.5,
    ),
    ('kashin', 'kashin:modulus=256', 0.005),
    # Of the package's aggregator, only that its settings arrive.
    (
      'autotuned_dither',
      'autotuned:modulus=256,rounding=dither,zeroing=false,clipping=false',
      0.003,
    ),
  )
  def test_error_of_the_third_round(self, text, bound):
    values = self._values()
    built = aggregator_factories.build(text, _info(10))
    self.assertLess(_nmse(_run(built.factory, values, 3), values), bound)

  @parameterized.parameters(
    ('central_dp', 1.0),
    ('ddp_secure_aggregator:bits=20,zeroing=false,', 1.0),
    ('distributed_dp', 3.0),
  )
  def test_private_ones_have_their_noise(self, name, noise_multiplier):
    values = self._values(num_clients=100)
    start = name if ':' in name else f'{name}:'
    built = aggregator_factories.build(
      f'{start}noise_multiplier={noise_multiplier}', _info(100)
    )
    # The first clip norm is 0.1, and a hundredth of the sum is returned. The
    # budget of the clip norm adds at most 11 % to the noise's variance.
    noise = np.var(100 * _run(built.factory, values)) / 0.1**2
    self.assertBetween(noise / noise_multiplier**2, 0.75, 1.4)

  @parameterized.named_parameters(
    ('kashin', 'kashin:modulus=4'),
    ('autotuned', _TWO_BITS),
  )
  def test_means_at_two_bits_are_no_worse_than_nothing(self, text):
    # Dropping a round costs exactly 1, as happens to ten clients here: they may
    # be rounding alone. The error of a round that is read is at most 1 in the
    # mean over normal coordinates. A calibration finds two clients' sum in
    # about nine of ten cases, and the rounds are enough for six.
    sampling = 5 * math.sqrt(2 / _NUM_VALUES)
    built = aggregator_factories.build(text, _info(10))
    process = built.factory.create(tff.TensorType(np.float32, [_NUM_VALUES]))
    for num_clients, most in ((10, 1 + sampling), (2, 0.9)):
      values = self._values(num_clients)
      error = _nmse(_run_process(process, values, 12), values)
      self.assertLess(error, most)

  def test_centred_decoding_at_two_bits_is_worse_than_nothing(self):
    # The negative control: what Kashin coefficients were once decoded with. The
    # bin size is 3.5 times the size of a coefficient's sum, where the posterior
    # mean errs least.
    factory = kashin.KashinFactory(
      autotune.QuantizeModFactory(
        autotune.ExactModularSumFactory(modulus=4),
        tuner=autotune.FixedBinSize(
          bin_size=0.08, modulus=4, decoding=autotune.Decoding.CENTRED
        ),
      ),
      seed=7,
    )
    factory = aggregator_factories.mean_of(factory, weighted=False)
    values = self._values()
    self.assertGreater(_nmse(_run(factory, values, 5), values), 2)

  def test_secure_ones_contain_no_plain_sum(self):
    value_type = tff.TensorType(np.float32, [16])
    for text in ('fixed_range:clip_range=1,rotate=true', 'kashin'):
      built = aggregator_factories.build(text, _info(4, leaf_sizes=(16,)))
      self.assertTrue(aggregators.parse(text).secure)
      tff.test.assert_not_contains_unsecure_aggregation(
        built.factory.create(value_type).next
      )

  def test_weighted_means_weigh(self):
    values = np.float32([[1, 0], [0, 1]])
    for text in ('fixed_range:bits=16,clip_range=4', 'plain_mean'):
      built = aggregator_factories.build(
        text, _info(2, weighted=True, leaf_sizes=(2,))
      )
      process = built.factory.create(
        tff.TensorType(np.float32, [2]), tff.TensorType(np.float32)
      )
      output = process.next(process.initialize(), list(values), [3.0, 1.0])
      np.testing.assert_allclose(output.result, [0.75, 0.25], atol=1e-3)


if __name__ == '__main__':
  absltest.main()

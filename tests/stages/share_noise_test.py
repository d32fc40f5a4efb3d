# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `share_noise`, on plain tensors."""

import collections
import functools
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests import stat_checks
from tff_autotune_secagg.numerics import seeds
from tff_autotune_secagg.numerics.rounding import quantization
from tff_autotune_secagg.stages import clip
from tff_autotune_secagg.stages import share_noise
from tff_autotune_secagg.stages import stage

_DIM = 2**14
_MODULUS = 2**10
_MIN_CLIENTS = 20


def _stage(seed_fn=None, dim=_DIM, dtype=tf.float32, **options):
  settings = dict(
    noise_multiplier=1.0,
    min_clients=_MIN_CLIENTS,
    max_norm=1.0,
    modulus=_MODULUS,
    client_seed_fn=seed_fn,
  )
  settings.update(options)
  return share_noise.ShareNoiseStage([tf.TensorSpec([dim], dtype)], **settings)


def _seed_fn(number):
  return lambda: tf.constant([5, number], tf.int64)


def _bins(made, vector):
  (residues,), _ = made.encode([vector], ())
  return quantization.centre(residues, _MODULUS).numpy().astype(np.float64)


@functools.lru_cache(maxsize=None)
def _traced_bins(dim):
  """The bins of a vector by a numbered seed: eager draws take far longer."""

  def bins(vector, number):
    made = _stage(
      lambda: tf.stack([5, number]), dim=dim, allow_guessable_noise=True
    )
    (residues,), _ = made.encode([vector], ())
    return quantization.centre(residues, _MODULUS)

  return tf.function(bins, autograph=False)


def _round(made, num_clients, vector):
  encode = tf.function(lambda: made.encode([vector], ())[0][0], autograph=False)
  total = sum(encode() for _ in range(num_clients))
  total = quantization.reduce_modulo(total, _MODULUS)
  signals = collections.OrderedDict(num_clients=tf.constant(num_clients))
  return made.decode([total], signals, made.initial_state())


class EncodeTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('zero', 0.0),
    ('nan', np.nan),
    ('infinite', np.inf),
    ('too_long', 1e30),
    ('tiny', 1e-40),
  )
  def test_every_client_sends_the_same_noise(self, value):
    vector = np.zeros([_DIM], np.float32)
    vector[0] = value
    for seed in (1, 2, 3):
      made = _stage(_seed_fn(seed))
      bins = _bins(made, tf.constant(vector))[1:]
      error = stat_checks.variance_error(1.96, _DIM)
      self.assertTrue(stat_checks.is_near(bins.var(ddof=1), 1.96, error))
      mean_error = stat_checks.mean_error(1.4, _DIM)
      self.assertTrue(stat_checks.is_near(bins.mean(), 0.0, mean_error))

  def test_every_client_counts_itself(self):
    made = _stage()
    self.assertEqual(dict(made.signal_limits), dict(num_clients=1))
    for value in (0.0, np.nan, 1.0):
      vector = tf.fill([_DIM], tf.constant(value, tf.float32))
      _, signals = made.encode([vector], made.parameters(made.initial_state()))
      self.assertEqual(dict(signals), dict(num_clients=1))

  @parameterized.parameters(0.5, 1.0, 50.0)
  def test_the_norm_is_limited(self, length):
    """Seen without noise: of two draws with the same words, the difference."""
    direction = np.random.default_rng(1).normal(size=_DIM)
    direction /= np.linalg.norm(direction)
    vector = tf.constant(direction * length, tf.float32)
    numbers = tf.range(100, dtype=tf.int64)
    mean = np.mean([_traced_bins(_DIM)(vector, x) for x in numbers], axis=0)
    limit = 1.4 * _MIN_CLIENTS**0.5  # c / b.
    error = 5.0 * 1.4 / 10.0
    self.assertAlmostEqual(
      mean @ direction, min(length, 1.0) * limit, delta=error
    )

  def test_nothing_comes_from_the_state(self):
    self.assertEmpty(_stage().parameters(_stage().initial_state()))

  @parameterized.parameters(
    (tf.int32, [5, 1], 'int32 of shape (2,)'),
    (tf.float32, [5, 1], 'float32 of shape (2,)'),
    (tf.int64, [5, 1, 2], 'int64 of shape (3,)'),
    (tf.int64, 5, 'int64 of shape ()'),
  )
  def test_a_seed_of_another_kind_is_refused(self, dtype, seed, found):
    made = _stage(lambda: tf.constant(seed, dtype))
    with self.assertRaisesWithLiteralMatch(
      TypeError,
      '`client_seed_fn` must be a function that returns an int64 tensor of'
      f' shape [2], found {found}.',
    ):
      made.encode([tf.zeros([_DIM])], ())

  def test_no_seed_is_refused_in_the_same_words(self):
    with self.assertRaisesWithLiteralMatch(
      TypeError,
      '`client_seed_fn` must be a function that returns an int64 tensor of'
      ' shape [2], found None (NoneType).',
    ):
      _stage(lambda: None).encode([tf.zeros([_DIM])], ())

  def test_own_seeds_are_the_system_s(self):
    with mock.patch.object(seeds, '_UUID_FILE', '/no/such/file'):
      with self.assertRaisesRegex(
        tf.errors.InvalidArgumentError, 'must have entropy of the operating'
      ):
        _stage().encode([tf.zeros([_DIM])], ())
      # A simulation may do without.
      made = _stage(allow_guessable_noise=True)
      first, second = (_bins(made, tf.zeros([_DIM])) for _ in range(2))
      self.assertFalse(np.array_equal(first, second))

  def test_a_traced_constant_is_refused_but_for_tests(self):
    def trace(**options):
      made = _stage(_seed_fn(1), **options)
      with tf.Graph().as_default():
        made.encode([tf.zeros([_DIM])], ())

    with self.assertRaisesRegex(
      ValueError, '^`client_seed_fn` must return another seed in every call, '
    ):
      trace()
    trace(allow_guessable_noise=True)

  def test_own_seeds_give_each_call_other_noise(self):
    made = _stage()
    first, second = (_bins(made, tf.zeros([_DIM])) for _ in range(2))
    correlation = np.corrcoef(first, second)[0, 1]
    error = stat_checks.correlation_error(_DIM)
    self.assertTrue(stat_checks.is_near(correlation, 0.0, error))


class DecodeTest(parameterized.TestCase):
  @parameterized.product(dtype=[tf.float32, tf.float64], num_clients=[20, 30])
  def test_mean_has_the_noise_of_the_clients(self, dtype, num_clients):
    made = _stage(dtype=dtype)
    (mean,), _, measured = _round(made, num_clients, tf.zeros([_DIM], dtype))
    self.assertEqual(mean.dtype, dtype)
    # Standard deviation z c of `min_clients`, in the sum.
    expected = num_clients / _MIN_CLIENTS / num_clients**2
    error = stat_checks.variance_error(expected, _DIM)
    variance = np.var(mean.numpy().astype(np.float64), ddof=1)
    self.assertTrue(stat_checks.is_near(variance, expected, error))
    self.assertEqual(measured['num_clients'], num_clients)
    self.assertFalse(measured['refused'])
    self.assertEqual(measured['bits_per_coordinate'], 10)
    self.assertEqual(measured['bytes_per_client'], _DIM * 10 // 8)

  def test_mean_is_unbiased(self):
    vector = tf.constant(
      np.sin(np.arange(_DIM)) * (0.9 / np.sqrt(_DIM / 2)), tf.float32
    )
    (mean,), _, _ = _round(_stage(), 40, vector)
    direction = vector / tf.norm(vector)
    along = float(tf.tensordot(mean, direction, 1))
    error = np.sqrt(40 / _MIN_CLIENTS) / 40
    self.assertTrue(stat_checks.is_near(along, 0.9, error))

  @parameterized.parameters(0, 1, 19)
  def test_too_few_clients_give_zeros_and_say_so(self, num_clients):
    made = _stage()
    total = tf.ones([_DIM], tf.int32)
    signals = collections.OrderedDict(num_clients=tf.constant(num_clients))
    (mean,), _, measured = made.decode([total], signals, made.initial_state())
    self.assertEqual(np.count_nonzero(mean), 0)
    self.assertTrue(measured['refused'])
    for name in ('wrap_probability', 'noise_to_signal', 'alignment'):
      self.assertEqual(measured[name], 0.0)

  def test_nothing_is_read_from_a_refused_sum(self):
    made = _stage()
    signals = collections.OrderedDict(num_clients=tf.constant(19))
    outputs = [
      made.decode([tf.fill([_DIM], value)], signals, made.initial_state())
      for value in (0, 7)
    ]
    tf.nest.map_structure(np.testing.assert_array_equal, *outputs)

  @parameterized.named_parameters(
    ('noise', dict(noise_multiplier=2.0), '`noise_multiplier` 2, but'),
    ('clients', dict(min_clients=21), '`min_clients` 21, but'),
    ('modulus', dict(modulus=2**11), '`modulus` 2048, but'),
  )
  def test_a_state_of_other_settings_is_refused(self, options, message):
    state = stage.initial_state(_stage(**options), ())
    with self.assertRaisesRegex(tf.errors.InvalidArgumentError, message):
      stage.unnest_state(_stage(), state)


class TamperedClipNormTest(parameterized.TestCase):
  """Both stages: whatever norm clients are told, their noise is the same."""

  @parameterized.product(
    clip_norm=[-1.0, -np.inf, np.nan], l2_norm_clip=[1.0, None]
  )
  def test_centre_is_0_for_a_norm_that_is_no_positive_number(
    self, clip_norm, l2_norm_clip
  ):
    """Along the update, in the mean of draws; a sound norm is the control."""
    dim = 2**8
    first = clip.ClipStage(
      [tf.TensorSpec([dim], tf.float32)],
      l2_norm_clip=l2_norm_clip,
      noise_multiplier=1.0,
      count_stddev=2.0,
    )
    update = np.random.default_rng(1).normal(size=dim)
    direction = update / np.linalg.norm(update)
    num = 20
    numbers = tf.range(num, dtype=tf.int64)
    found = {}
    for norm in (clip_norm, 1e-3):
      (told,), _ = first.encode(
        [tf.constant(update, tf.float32)], tf.constant(norm, tf.float32)
      )
      found[norm] = np.mean(
        [_traced_bins(len(told))(told, x)[:dim] for x in numbers], axis=0
      )
    error = 1.4 / np.sqrt(num)
    along = found[clip_norm] @ direction
    self.assertTrue(stat_checks.is_near(along, 0.0, error), along)
    # With a bit in the vector the update has less of the norm.
    self.assertGreater(found[1e-3] @ direction, 0.8 * 1.4 * _MIN_CLIENTS**0.5)

  @parameterized.product(
    clip_norm=[0.0, -1.0, np.nan, np.inf, -np.inf, 1e-40, 1e-10, 1e10, 3e38],
    l2_norm_clip=[1.0, None],
  )
  def test_noise_is_that_of_a_share(self, clip_norm, l2_norm_clip):
    first = clip.ClipStage(
      [tf.TensorSpec([_DIM - 1], tf.float32)],
      l2_norm_clip=l2_norm_clip,
      noise_multiplier=1.0,
      count_stddev=2.0,
    )
    (spec,) = first.out_specs
    make = functools.partial(_stage, dim=spec.shape[0])
    update = tf.constant(
      np.random.default_rng(1).normal(size=_DIM - 1), tf.float32
    )
    (told,), _ = first.encode([update], tf.constant(clip_norm, tf.float32))
    bins = _bins(make(_seed_fn(1)), told)
    # The noise, and a centre whose squared norm is 1.96 * 20 at most.
    error = stat_checks.variance_error(1.96, _DIM)
    variance = np.var(bins, ddof=1)
    self.assertTrue(stat_checks.is_near(variance, 1.96, error), variance)
    self.assertLess(1.96 * _MIN_CLIENTS / _DIM, 0.2 * error)


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import collections

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests import stat_checks
from tff_autotune_secagg.numerics import measurements
from tff_autotune_secagg.numerics import round_codec
from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.tuning import tuners
from tff_autotune_secagg.numerics.tuning import wrapped_normal_tuner

_STOCHASTIC = modes.Rounding.STOCHASTIC
_DITHER = modes.Rounding.DITHER
_CENTRED = modes.Decoding.CENTRED
_UNBIASED = modes.Decoding.UNBIASED
_POSTERIOR = modes.Decoding.POSTERIOR_MEAN
_SPECS = (
  tf.TensorSpec([], tf.float16),
  tf.TensorSpec([0, 3], tf.float32),
  tf.TensorSpec([5, 40], tf.float64),
  tf.TensorSpec([37], tf.bfloat16),
)


def _seed(*numbers):
  return tf.constant(numbers, tf.int64)


def _fixed(bin_size=0.5, modulus=256, rounding=_STOCHASTIC, decoding=_CENTRED):
  return tuners.FixedBinSize(
    bin_size=bin_size,
    modulus=modulus,
    rounding=rounding,
    decoding=decoding,
  )


class _Round:
  """A codec with its tuner, and clients whose private seeds are numbered."""

  def __init__(self, tuner, specs=_SPECS):
    self.tuner = tuner
    self._codec = round_codec.RoundCodec(tuner, specs)
    self._specs = specs

  def encode(self, leaves, private=(1, 1), shared=(8, 9), state=None):
    if state is None:
      state = self.tuner.initial_state()
    return self._codec.encode(
      [tf.cast(x, spec.dtype) for x, spec in zip(leaves, self._specs)],
      self.tuner.bin_sizes(state),
      _seed(*shared),
      _seed(*private),
    )

  def decode(self, residues, contributing, shared=(8, 9), state=None):
    if state is None:
      state = self.tuner.initial_state()
    counts = collections.OrderedDict(
      contributing=tf.constant(contributing), rejected=tf.constant(0)
    )
    return self._codec.decode(residues, counts, state, _seed(*shared))

  def run(self, clients, shared=(8, 9), state=None):
    """Sums lists of leaves; returns what `decode` does."""
    if state is None:
      state = self.tuner.initial_state()
    encoded = [
      self.encode(leaves, (3, number), shared, state)
      for number, leaves in enumerate(clients)
    ]
    residues = [
      tf.constant(np.sum(leaf, axis=0) % self.tuner.modulus, tf.int32)
      for leaf in zip(*(leaves for leaves, _ in encoded))
    ]
    contributing = sum(int(counts['contributing']) for _, counts in encoded)
    return self.decode(residues, contributing, shared, state)


def _leaves(rng, scale=1.0):
  return [scale * rng.standard_normal(spec.shape) for spec in _SPECS]


class EncodeTest(parameterized.TestCase):
  @parameterized.parameters(_STOCHASTIC, _DITHER)
  def test_counts_and_residues(self, rounding):
    one = _Round(_fixed(modulus=1000, rounding=rounding))
    good = _leaves(np.random.default_rng(1), scale=100.0)
    residues, counts = one.encode(good)
    for residue, spec in zip(residues, _SPECS):
      self.assertEqual(residue.dtype, tf.int32)
      self.assertEqual(residue.shape, spec.shape)
      self.assertTrue(np.all((residue >= 0) & (residue < 1000)))
    self.assertEqual([int(c) for c in counts.values()], [1, 0])
    self.assertSequenceEqual(list(counts), ['contributing', 'rejected'])

  @parameterized.product(
    rounding=(_STOCHASTIC, _DITHER),
    case=((0.0, 0), (np.nan, 1), (np.inf, 1), (-np.inf, 1)),
  )
  def test_zeros_and_what_is_not_finite_send_zeros(self, rounding, case):
    value, rejected = case
    one = _Round(_fixed(rounding=rounding))
    bad = [np.zeros(spec.shape) for spec in _SPECS]
    bad[2][3, 7] = value
    residues, counts = one.encode(bad)
    for residue in residues:
      np.testing.assert_array_equal(residue, np.zeros(residue.shape))
    self.assertEqual([int(c) for c in counts.values()], [0, rejected])

  def test_leaves_and_clients_round_apart(self):
    # Two leaves at half a bin; private seeds of two clients.
    specs = [tf.TensorSpec([4096], tf.float32)] * 2
    half = [np.full(4096, 0.25)] * 2
    one = _Round(_fixed(), specs)
    (a, b), _ = one.encode(half, private=(1, 1))
    (c, _), _ = one.encode(half, private=(1, 2))
    limit = stat_checks.Z * stat_checks.correlation_error(4096)
    for other in (b, c):
      self.assertLess(abs(np.corrcoef(a, other)[0, 1]), limit)
    # The negative control: the same seed gives the same bits.
    (again, _), _ = one.encode(half, private=(1, 1))
    np.testing.assert_array_equal(a, again)

  def test_each_rounding_uses_its_own_seed_only(self):
    values = _leaves(np.random.default_rng(2))

    def encode(rounding, private, shared):
      residues, _ = _Round(_fixed(rounding=rounding)).encode(
        values, private, shared
      )
      return [r.numpy().tolist() for r in residues]

    for rounding, changed in ((_STOCHASTIC, 0), (_DITHER, 1)):
      first = encode(rounding, (1, 2), (3, 4))
      for index in (0, 1):
        seeds = [(1, 2), (3, 4)]
        seeds[index] = (5, 6)
        other = encode(rounding, *seeds)
        self.assertEqual(other != first, index == changed)


class IsTooShortTest(parameterized.TestCase):
  @parameterized.parameters(
    (256, 192, True), (256, 193, False), (256, 0, False), (2, 400, True)
  )
  def test_a_calibration_reads_thirteen_of_a_stripe(self, modulus, size, found):
    tuner = wrapped_normal_tuner.WrappedNormalTuner(modulus=modulus)
    self.assertEqual(self._is_too_short(tuner, size), found)

  @parameterized.parameters(
    (modes.Decoding.UNBIASED, 12, True),
    (modes.Decoding.UNBIASED, 13, False),
    (modes.Decoding.POSTERIOR_MEAN, 12, True),
    (modes.Decoding.POSTERIOR_MEAN, 13, False),
    (modes.Decoding.CENTRED, 1, False),
  )
  def test_a_fixed_bin_size_reads_all_stripes(self, decoding, size, found):
    tuner = tuners.FixedBinSize(modulus=256, bin_size=0.1, decoding=decoding)
    self.assertEqual(self._is_too_short(tuner, size), found)

  def _is_too_short(self, tuner, size):
    specs = [tf.TensorSpec([size], tf.float32)]
    return bool(round_codec.RoundCodec(tuner, specs).is_too_short)


class DecodeTest(parameterized.TestCase):
  @parameterized.product(
    rounding=(_STOCHASTIC, _DITHER), decoding=tuple(modes.Decoding)
  )
  def test_leaves_have_the_dtypes_and_shapes_of_the_specs(
    self, rounding, decoding
  ):
    rng = np.random.default_rng(3)
    clients = [_leaves(rng) for _ in range(4)]
    tuner = _fixed(2.0**-8, 2**20, rounding, decoding)
    leaves, state, measured = _Round(tuner).run(clients)
    self.assertEmpty(state)
    self.assertSequenceEqual(list(measured), measurements.NAMES)
    for leaf, spec, values in zip(leaves, _SPECS, zip(*clients)):
      self.assertEqual((leaf.dtype, leaf.shape), (spec.dtype, spec.shape))
      # bfloat16 keeps 8 bits; clients' values were cast to the dtype as well.
      np.testing.assert_allclose(
        tf.cast(leaf, tf.float64), np.sum(values, axis=0), atol=0.08
      )

  def test_stochastic_decoding_ignores_seed_and_client_count(self):
    residues = [tf.constant([0, 1, 127, 128, 255])]
    one = _Round(_fixed(1.0), [tf.TensorSpec([5], tf.float32)])
    found = [
      one.decode(residues, contributing, shared)[0][0].numpy()
      for shared, contributing in (((1, 0), 1), ((2, 0), 50))
    ]
    np.testing.assert_array_equal(found[0], [0, 1, 127, -128, -1])
    np.testing.assert_array_equal(found[0], found[1])

  def test_dither_is_subtracted_with_the_shared_seed(self):
    rng = np.random.default_rng(4)
    specs = [tf.TensorSpec([5000], tf.float64), tf.TensorSpec([3], tf.float32)]
    clients = [
      [rng.standard_normal(5000), rng.standard_normal(3)] for _ in range(7)
    ]
    one = _Round(_fixed(0.1, 999, _DITHER), specs)
    total = np.sum([leaves[0] for leaves in clients], axis=0)

    def error_bins(leaves):
      return (leaves[0].numpy() - total) / 0.1

    leaves, _, _ = one.run(clients)
    tolerance = stat_checks.Z * stat_checks.variance_error(7 / 12, 5000)
    self.assertLess(abs(np.var(error_bins(leaves)) - 7 / 12), tolerance)
    again, _, _ = one.run(clients)
    np.testing.assert_array_equal(leaves[0], again[0])
    # Negative control: what another shared seed subtracts.
    encoded = [one.encode(leaves)[0] for leaves in clients]
    residues = [
      tf.constant(np.sum(leaf, axis=0) % 999, tf.int32)
      for leaf in zip(*encoded)
    ]
    wrong, _, _ = one.decode(residues, 7, shared=(8, 10))
    self.assertGreater(np.var(error_bins(wrong)) - 7 / 12, tolerance)

  @parameterized.product(rounding=(_STOCHASTIC, _DITHER), modulus=(16, 1000))
  def test_a_fixed_bin_size_stays_centred_in_blind_rounds(
    self, rounding, modulus
  ):
    # Sums of many periods: uniform residues, which the other modes drop.
    rng = np.random.default_rng(1)
    values = rng.uniform(-1e4, 1e4, 4096)
    specs = [tf.TensorSpec([4096], tf.float64)]

    def run(decoding):
      tuner = _fixed(1.0, modulus, rounding, decoding)
      leaves, _, measured = _Round(tuner, specs).run([[values]])
      self.assertTrue(measured['blind'])
      return leaves[0].numpy()

    for decoding in (_UNBIASED, _POSTERIOR):
      np.testing.assert_array_equal(run(decoding), np.zeros(4096))
    found = run(_CENTRED)
    self.assertLessEqual(np.max(np.abs(found)), modulus / 2)
    off = found - values
    off -= modulus * np.round(off / modulus)
    self.assertLess(np.max(np.abs(off)), 1.0)  # Whole periods, and rounding.
    # So that no value is favoured: unbiased modulo the period.
    variance = 1 / 6 if rounding is _STOCHASTIC else 1 / 12
    error = stat_checks.mean_error(np.sqrt(variance), 4096)
    self.assertTrue(stat_checks.is_near(np.mean(off), 0.0, error))

  @parameterized.parameters(_STOCHASTIC, _DITHER)
  def test_a_tuner_decodes_lost_rounds_as_unbiased_ones(self, rounding):
    options = dict(modulus=16, rounding=rounding)
    specs = [tf.TensorSpec([4096], tf.float32)]
    values = np.random.default_rng(5).standard_normal(4096)

    def run(decoding, calibrating, scale):
      tuner = wrapped_normal_tuner.WrappedNormalTuner(
        decoding=decoding, **options
      )
      state = tuner.initial_state()
      state['calibrating'] = tf.constant(calibrating)
      leaves, _, _ = _Round(tuner, specs).run([[scale * values]], state=state)
      return leaves[0].numpy()

    for calibrating, scale in ((True, 1.0), (False, 1e4)):
      np.testing.assert_array_equal(
        run(_CENTRED, calibrating, scale), run(_UNBIASED, calibrating, scale)
      )
    # The negative control: an ordinary round shows the difference.
    self.assertGreater(
      np.max(np.abs(run(_CENTRED, False, 2.0) - run(_UNBIASED, False, 2.0))),
      0.1,
    )

  def test_a_ladder_and_its_next_round(self):
    tuner = wrapped_normal_tuner.WrappedNormalTuner(modulus=256)
    one = _Round(tuner, [tf.TensorSpec([4096], tf.float32)])
    rng = np.random.default_rng(6)
    clients = [[1e-3 * rng.standard_normal(4096)] for _ in range(10)]
    total = np.sum(clients, axis=0)[0]
    _, state, measured = one.run(clients)
    self.assertTrue(measured['calibrating'])
    ratio = float(measured['sum_stddev']) / np.std(total)
    # Five standard errors if one stripe, a sixteenth, told it.
    self.assertLess(abs(ratio - 1), 5 / np.sqrt(2 * 4096 / 16))
    leaves, _, measured = one.run(clients, state=state)
    self.assertFalse(measured['calibrating'])
    error = np.mean((leaves[0] - total) ** 2) / np.mean(total**2)
    self.assertLess(error, 0.01)

  @parameterized.parameters(_STOCHASTIC, _DITHER)
  def test_without_coordinates_or_leaves(self, rounding):
    for specs in ([], [tf.TensorSpec([0], tf.float32)]):
      one = _Round(_fixed(rounding=rounding), specs)
      clients = [[np.zeros(0)] * len(specs)] * 2
      residues, counts = one.encode(clients[0])
      self.assertLen(residues, len(specs))
      self.assertEqual(int(counts['contributing']), 0)
      leaves, _, measured = one.decode(residues, 0)
      self.assertLen(leaves, len(specs))
      self.assertEqual(int(measured['bytes_per_client']), 0)
      self.assertTrue(measured['zero_sum'])


if __name__ == '__main__':
  absltest.main()

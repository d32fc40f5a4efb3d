# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import collections
import math

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
from scipy import stats
import tensorflow as tf

from tests import fits
from tff_autotune_secagg import modulus_planning
from tff_autotune_secagg.numerics import measurements
from tff_autotune_secagg.numerics.reading import decoding
from tff_autotune_secagg.numerics.reading import stripes
from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.tuning import operating_point
from tff_autotune_secagg.numerics.tuning import wrapped_normal_tuner

_UNBIASED = modes.Decoding.UNBIASED
_POSTERIOR = modes.Decoding.POSTERIOR_MEAN
_CENTRED = modes.Decoding.CENTRED


def _finished(
  fitted,
  bin_sizes=1.0,
  modulus=256,
  mode=_UNBIASED,
  contributing=10,
  num_coordinates=1000,
):
  tuner = wrapped_normal_tuner.WrappedNormalTuner(
    modulus=modulus, decoding=mode
  )
  bin_sizes = tf.constant(np.broadcast_to(bin_sizes, [16]), tf.float64)
  decoder = decoding.Decoder(
    fitted,
    bin_sizes,
    modulus=modulus,
    decoding=mode,
    centres_lost_rounds=tuner.centres_lost_rounds,
  )
  return measurements.FinishedRound(
    tuner=tuner,
    tuner_state=tuner.initial_state(),
    bin_sizes=bin_sizes,
    fitted=fitted,
    predicted_nmse=decoder.nmse,
    contributing=tf.constant(contributing),
    rejected=tf.constant(2),
    num_coordinates=num_coordinates,
    size_forecast=tuner.size_forecast(tuner.initial_state()),
  )


class ReportTest(parameterized.TestCase):
  def test_wrap_probability_is_the_mean_tail(self):
    bins = np.linspace(0.01, 0.03, 16)
    found = measurements.fitted_wrap_probability(
      _finished(fits.fitted(1.0), bins)
    )
    expected = np.mean(2 * stats.norm.sf(128 * bins))
    np.testing.assert_allclose(float(found), expected, rtol=1e-9)
    blind = measurements.fitted_wrap_probability(
      _finished(fits.fitted(0.0, is_blind=True), bins)
    )
    self.assertEqual(float(blind), 1.0)

  def test_a_calibration_is_decoded_as_unbiased_and_so_is_its_error(self):
    ladder = 8.0 ** np.arange(-8, 8)
    unbiased, posterior, centred = (
      float(
        measurements.round_nmse(
          _finished(fits.fitted(1.0, 1.3), ladder, mode=mode)
        )
      )
      for mode in (_UNBIASED, _POSTERIOR, _CENTRED)
    )
    self.assertEqual(unbiased, centred)
    self.assertLess(posterior, unbiased)
    self.assertLess(unbiased, 1.0)

  @parameterized.parameters(*modes.Decoding)
  def test_round_error_is_the_planners_at_the_planned_bin(self, mode):
    best = operating_point.best_operating_point(
      tf.constant(10.0, tf.float64),
      256,
      modes.Rounding.STOCHASTIC,
      mode,
      *operating_point.normal_nodes(0.0),
    )
    size = float(best.bin_per_stddev)
    observed = math.sqrt(1.0 + 10 / 6 * size**2)
    found = measurements.round_nmse(
      _finished(fits.fitted(1.0, observed), size, mode=mode)
    )
    # Of a finished round the size is known.
    expected = modulus_planning.predicted_nmse(
      num_clients=10, modulus=256, decoding=mode, size_uncertainty=0.0
    )
    np.testing.assert_allclose(float(found), expected, rtol=1e-3)

  def test_round_error_of_blind_and_zero_rounds(self):
    for fitted, expected in (
      (fits.fitted(0.0, is_blind=True), 1.0),
      (fits.fitted(0.0, is_zero=True), 1.0),  # Whatever it was, it is lost.
      (fits.fitted(0.0, 2.0), 1.0),  # Residues that rounding alone explains.
    ):
      for mode in modes.Decoding:
        found = measurements.round_nmse(_finished(fitted, mode=mode))
        self.assertEqual(float(found), expected)
        # Without clients there was nothing to lose.
        empty = _finished(fitted, mode=mode, contributing=0)
        self.assertEqual(float(measurements.round_nmse(empty)), 0.0)


class MeasureTest(parameterized.TestCase):
  def test_names_in_order_and_dtypes(self):
    found = measurements.measure(_finished(fits.fitted()))
    self.assertIsInstance(found, collections.OrderedDict)
    self.assertSequenceEqual(list(found), measurements.NAMES)
    dtypes = {name: value.dtype for name, value in found.items()}
    bools = ('calibrating', 'blind', 'zero_sum', 'modulus_too_small')
    floats = (
      'bin_size',
      'sum_stddev',
      'size_forecast',
      'size_uncertainty',
      'wrap_probability',
      'predicted_nmse',
    )
    counts = ('num_clients', 'rejected_clients', 'bits_per_coordinate')
    expected = {
      **dict.fromkeys(bools, tf.bool),
      **dict.fromkeys(floats, tf.float32),
      **dict.fromkeys(counts, tf.int32),
      'bytes_per_client': tf.int64,
    }
    self.assertEqual(dtypes, expected)
    self.assertEqual({value.shape.rank for value in found.values()}, {0})

  @parameterized.parameters((2, 1, 125), (257, 9, 1125), (2**30, 30, 3750))
  def test_payload(self, modulus, bits, num_bytes):
    found = measurements.measure(_finished(fits.fitted(), modulus=modulus))
    self.assertEqual(int(found['bits_per_coordinate']), bits)
    self.assertEqual(int(found['bytes_per_client']), num_bytes)
    # Whole bytes; and more than int32 holds.
    for coordinates in (7, 2**31):
      finished = _finished(
        fits.fitted(), modulus=modulus, num_coordinates=coordinates
      )
      expected = -(-coordinates * bits // 8)
      found = measurements.measure(finished)
      self.assertEqual(int(found['bytes_per_client']), expected)

  def test_flags(self):
    ladder = stripes.ladder(tf.constant(0)).numpy()
    found = measurements.measure(_finished(fits.fitted(), ladder))
    self.assertTrue(found['calibrating'])
    self.assertFalse(found['blind'] or found['zero_sum'])
    lost = fits.fitted(0.0, is_blind=True)
    found = measurements.measure(_finished(lost))
    self.assertFalse(found['calibrating'])
    self.assertTrue(found['blind'])
    # Without clients there is nothing to be blind to.
    found = measurements.measure(_finished(lost, contributing=0))
    self.assertFalse(found['blind'])
    self.assertFalse(found['modulus_too_small'])
    found = measurements.measure(
      _finished(fits.fitted(), modulus=4, contributing=1000)
    )
    self.assertTrue(found['modulus_too_small'])
    self.assertEqual(int(found['num_clients']), 1000)
    self.assertEqual(int(found['rejected_clients']), 2)


if __name__ == '__main__':
  absltest.main()

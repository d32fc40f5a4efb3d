# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests import fits
from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.tuning import tuners
from tff_autotune_secagg.numerics.tuning import wrapped_normal_tuner

_DITHER = modes.Rounding.DITHER
_CENTRED = modes.Decoding.CENTRED


class FixedBinSizeTest(parameterized.TestCase):
  def test_has_one_bin_size_and_no_state(self):
    tuner = tuners.FixedBinSize(bin_size=0.25, modulus=17, rounding=_DITHER)
    self.assertEqual(
      (tuner.modulus, tuner.rounding, tuner.decoding), (17, _DITHER, _CENTRED)
    )
    state = tuner.initial_state()
    self.assertEmpty(state)
    for fitted in (fits.fitted(300.0), fits.fitted(0.0, is_blind=True)):
      state = tuner.next_state(state, fitted, tf.constant(3.0, tf.float64))
      self.assertEmpty(state)
      bins = tuner.bin_sizes(state)
      self.assertEqual(bins.dtype, tf.float32)
      np.testing.assert_array_equal(bins, np.full(16, 0.25))
      self.assertEqual(float(tuner.reported_bin_size(state)), 0.25)

  @parameterized.named_parameters(
    ('zero', 0.0, ValueError, '0.0 (float)'),
    ('negative', -1.0, ValueError, '-1.0 (float)'),
    ('nan', float('nan'), ValueError, 'nan (float)'),
    ('infinite', float('inf'), ValueError, 'inf (float)'),
    ('too_small', 1e-31, ValueError, '1e-31 (float)'),
    ('bool', True, TypeError, 'True (bool)'),
    ('text', '0.1', TypeError, "'0.1' (str)"),
    ('none', None, TypeError, 'None (NoneType)'),
  )
  def test_rejects_bin_size(self, bin_size, error, found):
    with self.assertRaisesWithLiteralMatch(
      error,
      '`bin_size` must be a finite number of at least 1e-30 and at most 1e+30,'
      f' found {found}.',
    ):
      tuners.FixedBinSize(bin_size=bin_size, modulus=16)

  def test_a_constructor_that_forgets_the_base_class_is_told_so(self):
    class Mine(tuners.FixedBinSize):
      def __init__(self):
        pass

    with self.assertRaisesWithLiteralMatch(
      AttributeError,
      'The constructor of `Mine` must call `super().__init__(modulus=...)`,'
      ' found no modulus.',
    ):
      _ = Mine().modulus

  def test_rejects_rounding_and_decoding(self):
    for tuner_class, arguments in (
      (tuners.FixedBinSize, dict(bin_size=1.0)),
      (wrapped_normal_tuner.WrappedNormalTuner, {}),
    ):
      with self.assertRaisesWithLiteralMatch(
        TypeError,
        '`rounding` must be one of Rounding.STOCHASTIC, Rounding.DITHER, found'
        " 'dither' (str).",
      ):
        tuner_class(**arguments, modulus=16, rounding='dither')
      with self.assertRaisesWithLiteralMatch(
        TypeError,
        '`decoding` must be one of Decoding.UNBIASED, Decoding.POSTERIOR_MEAN,'
        ' Decoding.CENTRED, found None (NoneType).',
      ):
        tuner_class(**arguments, modulus=16, decoding=None)

  def test_only_a_fixed_bin_size_centres_lost_rounds(self):
    self.assertTrue(
      tuners.FixedBinSize(bin_size=1.0, modulus=4).centres_lost_rounds
    )
    tuner = wrapped_normal_tuner.WrappedNormalTuner(
      modulus=4, decoding=_CENTRED
    )
    self.assertFalse(tuner.centres_lost_rounds)


if __name__ == '__main__':
  absltest.main()

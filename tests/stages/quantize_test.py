# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `quantize` on plain tensors; its arithmetic: `round_codec_test`."""

import collections
from unittest import mock

from absl import logging
from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.tuning import tuners
from tff_autotune_secagg.numerics.tuning import wrapped_normal_tuner
from tff_autotune_secagg.stages import quantize
from tff_autotune_secagg.stages import stage

_SPECS = [tf.TensorSpec([50], tf.float32), tf.TensorSpec([2, 3], tf.float64)]
_STOCHASTIC, _DITHER = modes.Rounding.STOCHASTIC, modes.Rounding.DITHER


def _stage(rounding=_STOCHASTIC, modulus=256, seed=7):
  tuner = tuners.FixedBinSize(bin_size=0.5, modulus=modulus, rounding=rounding)
  return quantize.QuantizeStage(_SPECS, tuner=tuner, seed=seed)


def _leaves(value=0.3):
  return [tf.fill(spec.shape, tf.cast(value, spec.dtype)) for spec in _SPECS]


def _flat(leaves):
  return np.concatenate([np.ravel(leaf) for leaf in leaves])


class TooShortTest(absltest.TestCase):
  def test_values_that_cannot_be_read_are_warned_of(self):
    tuner = wrapped_normal_tuner.WrappedNormalTuner(modulus=256)
    specs = [tf.TensorSpec([size], tf.float32) for size in (100, 80)]
    with mock.patch.object(logging, 'warning') as warning:
      quantize.QuantizeStage(specs + specs, tuner=tuner, seed=None)
      warning.assert_not_called()
      quantize.QuantizeStage(specs, tuner=tuner, seed=None)
    ((template, sentence),) = warning.call_args_list[0][0:1]
    self.assertEqual(template, '%s')
    self.assertStartsWith(
      sentence, 'The values have too few coordinates to read a sum by: '
    )


class EncodeTest(parameterized.TestCase):
  def test_sends_residues_of_the_tuners_modulus(self):
    made = _stage(modulus=10)
    self.assertEqual(made.out_modulus, 10)
    leaves, _ = made.encode(
      _leaves(-0.7), made.parameters(made.initial_state())
    )
    # -1.4 bins are -1 or -2, that is 9 or 8.
    self.assertEqual(set(_flat(leaves)), {8, 9})

  @parameterized.named_parameters(
    ('stochastic', _STOCHASTIC, True), ('dither', _DITHER, False)
  )
  def test_a_client_rounds_by_itself_unless_it_is_told_how(
    self, rounding, differs
  ):
    made = _stage(rounding)
    parameters = made.parameters(made.initial_state())
    first, second = (
      _flat(made.encode(_leaves(), parameters)[0]) for _ in range(2)
    )
    self.assertEqual(bool(np.any(first != second)), differs)

  @parameterized.parameters(
    (0.3, 1, 0), (0.0, 0, 0), (np.nan, 0, 1), (np.inf, 0, 1)
  )
  def test_signals_count_the_client(self, value, contributing, rejected):
    made = _stage()
    leaves, signals = made.encode(
      _leaves(value), made.parameters(made.initial_state())
    )
    self.assertEqual(
      {name: int(signal) for name, signal in signals.items()},
      dict(contributing=contributing, rejected=rejected),
    )
    self.assertEqual(bool(np.any(_flat(leaves))), bool(contributing))


class StateTest(parameterized.TestCase):
  def _decode(self, made, state, num_clients=1):
    residues = [tf.zeros(spec.shape, tf.int32) for spec in _SPECS]
    signals = collections.OrderedDict(
      contributing=tf.constant(num_clients), rejected=tf.constant(0)
    )
    return made.decode(residues, signals, state)

  def test_each_round_has_dither_of_its_own(self):
    made = _stage(_DITHER)
    state = made.initial_state()
    _, later, _ = self._decode(made, state)
    self.assertEqual([int(s['round']) for s in (state, later)], [0, 1])
    first, second = (
      _flat(made.encode(_leaves(), made.parameters(s))[0])
      for s in (state, later)
    )
    self.assertTrue(np.any(first != second))

  def test_a_given_seed_is_kept_and_none_is_drawn(self):
    first, second = (_stage(seed=None).initial_state() for _ in range(2))
    self.assertTrue(np.any(first['seed'] != second['seed']))
    np.testing.assert_array_equal(
      _stage().initial_state()['seed'], _stage().initial_state()['seed']
    )

  @parameterized.named_parameters(
    ('modulus', dict(modulus=16), '`modulus` 16, but'),
    (
      'rounding',
      dict(rounding=_DITHER),
      '`rounding` Rounding.DITHER, but',
    ),
  )
  def test_a_state_of_other_settings_is_refused(self, options, message):
    state = stage.initial_state(_stage(**options), ())
    with self.assertRaisesRegex(
      tf.errors.InvalidArgumentError,
      f'The state was written with {message} this QuantizeModFactory has',
    ):
      stage.unnest_state(_stage(), state)


if __name__ == '__main__':
  absltest.main()

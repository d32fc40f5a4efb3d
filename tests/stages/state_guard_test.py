# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `_settings`; how users see a refusal is in the factories' tests."""

import collections

from absl.testing import absltest
import tensorflow as tf

from tff_autotune_secagg.stages import state_guard

_SETTINGS = collections.OrderedDict(modulus=256, dither=0)


@tf.function
def _assert_settings(state):
  return state_guard.assert_settings(state, _SETTINGS, 'Factory')


class SettingsTest(absltest.TestCase):
  def test_state_is_named_int64_scalars_and_passes_its_own_check(self):
    state = state_guard.as_state(_SETTINGS)
    self.assertSequenceEqual(list(state), ['modulus', 'dither'])
    for result in (state, _assert_settings(state)):
      self.assertEqual([int(x) for x in result.values()], [256, 0])
      self.assertEqual({x.dtype for x in result.values()}, {tf.int64})

  def test_refuses_any_other_setting_when_run(self):
    for name, found, told, wanted in (
      ('modulus', 16, '`modulus` 16', '`modulus` 256'),
      (
        'dither',
        1,
        '`rounding` Rounding.DITHER',
        '`rounding` Rounding.STOCHASTIC',
      ),
    ):
      state = state_guard.as_state(dict(_SETTINGS, **{name: found}))
      with self.assertRaisesRegex(
        tf.errors.InvalidArgumentError,
        rf'The state was written with {told}, but this Factory has {wanted}:'
        r' start from `initialize\(\)` or use the settings of the checkpoint\.',
      ):
        _assert_settings(state)

  def test_floats_are_told_apart_to_the_last_bit(self):
    settings = collections.OrderedDict(noise_multiplier=0.1)
    state = state_guard.as_state(settings)
    self.assertEqual(state['noise_multiplier'].dtype, tf.float64)
    state_guard.assert_settings(state, settings, 'Factory')
    other = dict(noise_multiplier=0.1 + 2**-56)
    with self.assertRaises(tf.errors.InvalidArgumentError):
      state_guard.assert_settings(state, other, 'Factory')


if __name__ == '__main__':
  absltest.main()

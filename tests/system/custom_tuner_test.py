# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""A tuner that a user writes, under the public names alone."""

import collections

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests import factory_conformance
from tests import stat_checks
import tff_autotune_secagg as autotune

setUpModule = factory_conformance.set_up_context

_DIM = 4000


class _SixteenthTuner(autotune.Tuner):
  """A tuner in ten lines: bins of a sixteenth of the last sum's deviation."""

  def initial_state(self):
    return collections.OrderedDict(bin=tf.constant(1e-3))

  def bin_sizes(self, state):
    return tf.fill([16], state['bin'])

  def reported_bin_size(self, state):
    return state['bin']

  def next_state(self, state, fitted, num_clients):
    size = tf.cast(fitted.sum_stddev / 16, tf.float32)
    return collections.OrderedDict(bin=tf.where(size > 0, size, state['bin']))


class CustomTunerTest(parameterized.TestCase):
  @parameterized.parameters(*autotune.Rounding)
  def test_sets_the_bins_of_every_round(self, rounding):
    tuner = _SixteenthTuner(modulus=2**12, rounding=rounding)
    process = autotune.QuantizeModFactory(
      autotune.ExactModularSumFactory(modulus=tuner.modulus),
      tuner=tuner,
      seed=1,
    ).create(tff.TensorType(np.float32, [_DIM]))
    state_type = process.initialize.type_signature.result.member
    self.assertEqual(
      state_type['tuner'], tff.to_type(collections.OrderedDict(bin=np.float32))
    )
    rng = np.random.default_rng(2)
    state = process.initialize()
    bin_size = 1e-3
    for scale in (0.1, 1.0, 10.0, 0.0):
      values = (scale * rng.standard_normal([5, _DIM])).astype(np.float32)
      output = process.next(state, list(values))
      state, found = output.state, output.measurements
      self.assertAlmostEqual(found['bin_size'] / bin_size, 1.0, places=6)
      self.assertFalse(found['calibrating'])
      total = values.sum(axis=0)
      if not scale:
        np.testing.assert_array_equal(output.result, total)
        break
      # Where half a period is at least 12 standard deviations, nothing wraps.
      variance = 1 / 12 if rounding is autotune.Rounding.DITHER else 1 / 6
      expected = 5 * variance * bin_size**2
      tolerance = stat_checks.Z * stat_checks.variance_error(expected, _DIM)
      error = np.mean((output.result - total) ** 2)
      # The posterior mean shrinks by the noise's share, which is small.
      self.assertLess(abs(error / expected - 1), tolerance / expected + 0.01)
      bin_size = float(state['tuner']['bin'])
      # The fit's standard error, and float32.
      ratio = 16 * bin_size / np.std(total)
      self.assertLess(abs(ratio - 1), stat_checks.Z / np.sqrt(2 * _DIM))
    # A round of zeros says nothing of the size.
    self.assertEqual(state['tuner']['bin'], np.float32(bin_size))


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import math

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests import reference
from tests import traced
from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.tuning import forecasting
from tff_autotune_secagg.numerics.tuning import operating_point


def _float64(x):
  return tf.constant(x, tf.float64)


class BinSizeTest(parameterized.TestCase):
  def _forecast(self, stddev, mean=0.0):
    nodes, weights = np.polynomial.hermite_e.hermegauss(45)
    return forecasting.Forecast(
      _float64(mean + stddev * nodes),
      _float64(weights / weights.sum()),
      _float64(mean),
      _float64(stddev),
    )

  @parameterized.product(
    modulus=(16, 256, 65536), stddev=(0.05, 0.4, 1.5), mean=(0.0, -20.0)
  )
  def test_has_the_least_expected_error(self, modulus, stddev, mean):
    predicted = self._forecast(stddev, mean)
    found, error = traced.best_bin_size(modulus)(predicted, _float64(10.0))
    nodes = predicted.log_sizes.numpy()
    log_bins = mean + math.log(2 / modulus) + np.linspace(-0.7, 5, 800)
    expected = reference.posterior_nmse(
      log_bins[:, np.newaxis] - nodes, modulus
    )
    expected = expected @ predicted.weights.numpy()
    mine = reference.posterior_nmse(math.log(float(found)) - nodes, modulus)
    mine = float(mine @ predicted.weights.numpy())
    # A factor: tables are interpolated. An error of a round that costs nothing
    # is of no interest.
    self.assertLess(mine, 1.01 * expected.min() + 1e-9)
    np.testing.assert_allclose(float(error), mine, rtol=0.02, atol=1e-9)

  def test_a_narrow_forecast_gives_the_bin_of_before(self):
    for rounding in modes.Rounding:
      for decoding in modes.Decoding:
        best = operating_point.best_operating_point(
          _float64(10.0),
          256,
          rounding,
          decoding,
          *operating_point.normal_nodes(0.1),
        )
        found, _ = traced.best_bin_size(256, rounding, decoding)(
          self._forecast(0.1), _float64(10.0)
        )
        np.testing.assert_allclose(
          float(found), float(best.bin_per_stddev), rtol=0.02
        )

  def test_a_wide_forecast_reaches_beyond_sixty_standard_deviations(self):
    found, error = traced.best_bin_size(2**20)(
      self._forecast(1.5), _float64(10.0)
    )
    self.assertGreater(float(found) * 2**19, 60.0)
    # Half periods that end at 9, as before, lose far more.
    nodes, weights = self._forecast(1.5)[:2]
    before = reference.posterior_nmse(
      math.log(9.0 / 2**19) - nodes.numpy(), 2**20
    )
    self.assertGreater(float(before @ weights.numpy()), 30 * float(error))


if __name__ == '__main__':
  absltest.main()

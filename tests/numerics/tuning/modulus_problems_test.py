# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import functools
import math

from absl.testing import absltest
from absl.testing import parameterized
from scipy import stats
import tensorflow as tf

from tff_autotune_secagg import modulus_planning
from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.tuning import modulus_problems
from tff_autotune_secagg.numerics.tuning import operating_point

_STOCHASTIC = modes.Rounding.STOCHASTIC
_DITHER = modes.Rounding.DITHER
_UNBIASED = modes.Decoding.UNBIASED


def _float64(x):
  return tf.constant(x, tf.float64)


@functools.lru_cache(maxsize=None)
def _modulus_problems(wrap_probability, rounding):
  """`modulus_problems.find`, traced once for all counts and moduli."""
  return tf.function(
    lambda n, k: modulus_problems.find(
      n, k, wrap_probability, rounding, _UNBIASED
    ),
    autograph=False,
  )


class ModulusProblemsTest(parameterized.TestCase):
  def _reasons(self, num_clients, modulus, alpha=None, rounding=_STOCHASTIC):
    found = _modulus_problems(alpha, rounding)(
      _float64(float(num_clients)), _float64(float(modulus))
    )
    return tuple(bool(reason) for reason in found)

  def test_error(self):
    self.assertEqual(self._reasons(10, 256), (False, False, False))
    self.assertEqual(self._reasons(100, 16)[0], True)
    self.assertEqual(self._reasons(0, 256), (False, False, False))

  @parameterized.parameters(1e-2, 1e-3, 1e-4)
  def test_rule_diverges_at_the_stated_modulus(self, alpha):
    for num_clients in (1, 10, 1000):
      for rounding, variance in ((_STOCHASTIC, 1 / 6), (_DITHER, 1 / 12)):
        z = stats.norm.isf(alpha / 2)
        limit = 1 + 2 * z * math.sqrt(num_clients * variance)
        for modulus in (math.floor(limit), math.floor(limit) + 1):
          found = self._reasons(num_clients, modulus, alpha, rounding)[1]
          self.assertEqual(found, modulus <= limit)

  def test_dither_needs_clients_a_bin_wide(self):
    self.assertFalse(self._reasons(1, 4, rounding=_DITHER)[2])
    for num_clients in (2, 10, 100):
      r = operating_point.normal_quantile(
        modulus_planning.optimal_wrap_probability(
          num_clients=num_clients,
          modulus=64,
          rounding=_DITHER,
          size_uncertainty=0.0,
        )
      )
      expected = 64 < 2 * r * math.sqrt(num_clients)
      found = self._reasons(num_clients, 64, rounding=_DITHER)[2]
      self.assertEqual(found, expected)
    self.assertTrue(self._reasons(100, 64, rounding=_DITHER)[2])


if __name__ == '__main__':
  absltest.main()

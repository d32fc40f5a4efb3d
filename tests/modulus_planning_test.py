# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import functools
import math

from absl.testing import absltest
from absl.testing import parameterized
import tensorflow as tf

from tff_autotune_secagg import modulus_planning
from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.tuning import modulus_problems

_STOCHASTIC = modes.Rounding.STOCHASTIC
_DITHER = modes.Rounding.DITHER


class PlanTest(parameterized.TestCase):
  @parameterized.product(
    num_clients=(1, 10, 1000),
    target=(0.4, 1e-2, 1e-6),
    rounding=(_STOCHASTIC, _DITHER),
  )
  def test_is_the_smallest_that_meets_the_target(
    self, num_clients, target, rounding
  ):
    modulus = modulus_planning.plan_modulus(
      num_clients, target, rounding=rounding
    )
    self.assertEqual(modulus & (modulus - 1), 0)

    def is_good(k):
      error = modulus_planning.predicted_nmse(
        num_clients=num_clients, modulus=k, rounding=rounding
      )
      problems = modulus_problems.find(
        tf.constant(num_clients, tf.float64),
        k,
        None,
        rounding,
        modes.Decoding.UNBIASED,
      )
      return error <= target and not any(bool(x) for x in problems)

    self.assertTrue(is_good(modulus))
    self.assertTrue(modulus == 4 or not is_good(modulus // 2))

  def test_uncertain_sizes_cost_bits(self):
    for num_clients in (10, 1000):
      moduli = [
        modulus_planning.plan_modulus(num_clients, 1e-3, size_uncertainty=u)
        for u in (0.0, 0.4, 1.0)
      ]
      self.assertEqual(moduli, sorted(set(moduli)))

  def test_a_prediction_saves_bits_but_sums_must_be_read(self):
    plan = functools.partial(modulus_planning.plan_modulus, 100)
    self.assertEqual(plan(1e-3, prediction_gain=1.0), plan(1e-3))
    self.assertEqual(4 * plan(1e-3, prediction_gain=1 / 16), plan(1e-3))
    # A round that reads nothing has an error of `prediction_gain`, and leaves
    # nothing to predict by.
    least = plan(0.999)
    for target in (0.3, 0.1, 0.01):
      self.assertEqual(plan(target, prediction_gain=1e-3), least)
    self.assertGreater(plan(0.1), least)  # The negative control.

  def test_never_plans_what_a_fixed_alpha_diverges_at(self):
    modulus = modulus_planning.plan_modulus(100, 0.49, wrap_probability=1e-4)
    self.assertGreater(modulus - 1, 2 * 3.89 * math.sqrt(100 / 6))

  def test_says_what_is_out_of_reach(self):
    with self.assertRaisesRegex(
      ValueError,
      r'^`target_nmse` 1e-30 is out of reach for 5 clients: 30 bits give'
      r' [0-9.e-]+\. Raise `target_nmse`\.$',
    ):
      modulus_planning.plan_modulus(5, 1e-30)
    with self.assertRaisesRegex(
      ValueError, 'or leave out `wrap_probability`.$'
    ):
      modulus_planning.plan_modulus(5, 1e-3, wrap_probability=1e-2)

  @parameterized.parameters(
    (dict(num_clients=0, modulus=4), ValueError, '`num_clients` must be an'),
    (dict(num_clients=True, modulus=4), TypeError, '`num_clients` must be an'),
    (dict(num_clients=1.5, modulus=4), TypeError, '`num_clients` must be an'),
    (dict(num_clients=1, modulus=1), ValueError, '`modulus` must be an int'),
    (
      dict(num_clients=1, modulus=4, size_uncertainty=-0.1),
      ValueError,
      '`size_uncertainty` must',
    ),
    (
      dict(num_clients=1, modulus=4, size_uncertainty=math.nan),
      ValueError,
      '`size_uncertainty`',
    ),
    (
      dict(num_clients=1, modulus=4, prediction_gain=1.1),
      ValueError,
      '`prediction_gain` must be a finite number above 0 and at most 1',
    ),
    (
      dict(num_clients=1, modulus=4, wrap_probability=1.0),
      ValueError,
      '`wrap_probability` must be a finite number above 0 and below 1',
    ),
    (
      dict(num_clients=1, modulus=4, rounding='dither'),
      TypeError,
      '`rounding` must be one of',
    ),
  )
  def test_rejects(self, arguments, error, message):
    with self.assertRaisesRegex(error, '^' + message):
      modulus_planning.predicted_nmse(**arguments)
    for target in (0, 1, -1, math.nan):
      with self.assertRaisesRegex(ValueError, '^`target_nmse` must be'):
        modulus_planning.plan_modulus(10, target)


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `privacy`."""

import math
import sys

from absl.testing import absltest
from absl.testing import parameterized
import dp_accounting
import mpmath

from tff_autotune_secagg.numerics.privacy import accounting
from tff_autotune_secagg.numerics.privacy import distributed_noise


def _delta_by_integration(epsilon, separation):
  """The divergence that defines delta, by 50 digits of quadrature."""
  with mpmath.workdps(50):
    edge = mpmath.mpf(epsilon) / separation + mpmath.mpf(separation) / 2

    def excess(x):
      return mpmath.npdf(x, separation) - mpmath.exp(epsilon) * mpmath.npdf(x)

    points = [edge, edge + 1, edge + 3, edge + 6, edge + 20]
    return float(mpmath.quad(excess, points))


class GaussianTest(parameterized.TestCase):
  @parameterized.product(
    epsilon=[0.0, 0.3, 3.0, 30.0], separation=[0.1, 1.0, 10.0]
  )
  def test_delta_is_the_integral(self, epsilon, separation):
    expected = _delta_by_integration(epsilon, separation)
    found = accounting.gaussian_delta(epsilon, separation)
    self.assertAlmostEqual(found, expected, delta=1e-7 * expected + 1e-16)

  @parameterized.product(delta=[1e-9, 1e-5, 0.1], separation=[0.01, 1.0, 20.0])
  def test_epsilon_is_the_least_for_its_delta(self, delta, separation):
    epsilon = accounting.gaussian_epsilon(delta, separation)
    self.assertLessEqual(accounting.gaussian_delta(epsilon, separation), delta)
    if epsilon:
      lower = epsilon * (1.0 - 1e-6)
      self.assertGreater(accounting.gaussian_delta(lower, separation), delta)

  def test_epsilon_agrees_with_an_accountant(self):
    accountant = dp_accounting.pld.PLDAccountant()
    accountant.compose(dp_accounting.GaussianDpEvent(2.0))
    expected = accountant.get_epsilon(1e-5)
    found = accounting.gaussian_epsilon(1e-5, 0.5)
    self.assertAlmostEqual(found / expected, 1.0, delta=1e-3)

  def test_what_is_not_private_is_infinite(self):
    self.assertEqual(accounting.gaussian_epsilon(1e-5, 1e4), math.inf)

  @parameterized.parameters(0.0, 5e-324, 1e-310)
  def test_no_delta_has_no_epsilon(self, delta):
    """Exponentials become 0 there, and 38.9 would look like enough."""
    self.assertEqual(accounting.gaussian_delta(39.0, 1.0), 0.0)
    self.assertEqual(accounting.gaussian_epsilon(delta, 1.0), math.inf)

  def test_the_smallest_delta_that_floats_hold_has_one(self):
    delta = sys.float_info.min
    found = accounting.gaussian_epsilon(delta, 1.0)
    with mpmath.workdps(50):
      # phi(x) / x bounds a normal's tail, and half of it is exp(epsilon)'s.
      edge = mpmath.findroot(lambda x: mpmath.ncdf(-x) - delta, 37.0)
    self.assertBetween(found, float(edge) - 1.0, float(edge) + 1.0)


class TotalTest(parameterized.TestCase):
  _ROUNDS = dict(parts=[accounting.Rounds(2.0, 100, 100)], dim=2**20)

  def test_adds_each_term(self):
    asked = []

    def epsilon_at(delta):
      asked.append(delta)
      return 1.0

    found = accounting.total_epsilon(epsilon_at, 1e-9, **self._ROUNDS)
    added = 100 * 2**20 * distributed_noise.privacy_loss_per_coordinate(100)
    self.assertGreater(added, 1e-6)
    self.assertAlmostEqual(found, 1.0 + added, delta=3e-6)
    self.assertGreaterEqual(found, 1.0 + added)
    distance = 100 * distributed_noise.sampling_distance(100, 2**20)
    left = (1e-9 - (1.0 + math.exp(found)) * distance) * math.exp(-added / 2)
    self.assertLess(left, 1e-9)
    self.assertAlmostEqual(asked[-1] / left, 1.0, delta=1e-9)

  def test_few_clients_cost_more(self):
    """The term that is small otherwise: T D tau is 0.33 in ten rounds."""
    found = accounting.total_epsilon(
      lambda _: 1.0,
      1e-6,
      parts=[accounting.Rounds(1.0, 2, 10)],
      dim=2**20,
    )
    self.assertBetween(found, 1.3, 1.4)

  def test_parts_add_up(self):
    """Rounds of two kinds cost what they cost alone, and equal ones the sum."""

    def added(delta, *parts):
      # So large that the distance of the table's noise costs less as a factor.
      found = accounting.total_epsilon(
        lambda _: 100.0, delta, parts=parts, dim=2**20
      )
      return found - 100.0

    full = accounting.Rounds(2.0, 100, 50)
    whole = accounting.Rounds(2.0, 100, 100)
    self.assertAlmostEqual(
      added(1e-9, full, full), added(1e-9, whole), delta=1e-12
    )
    short = accounting.short_rounds(2.0, 100, 3, 50)
    both, alone = added(1e-6, full, short), added(1e-6, short)
    # With two kinds of rounds the rare sums of each get half of their share.
    self.assertGreater(both, alone)
    self.assertBetween(both / alone, 1.0, 2.0)
    self.assertGreater(alone, 1e3 * added(1e-6, full))

  def test_a_single_share_is_no_mechanism(self):
    found = accounting.short_rounds(2.0, 100, 1, 1).separation()
    self.assertEqual(found, math.inf)

  @parameterized.parameters(1e-16, 1e-30)
  def test_delta_below_the_table_is_not_reached(self, delta):
    found = accounting.total_epsilon(lambda _: 1.0, delta, **self._ROUNDS)
    self.assertEqual(found, math.inf)

  @parameterized.parameters(30.0, 1e4)
  def test_large_epsilon_costs_no_more(self, epsilon):
    """The distance between drawn and ideal noise counts once at any epsilon."""
    found = accounting.total_epsilon(lambda _: epsilon, 1e-9, **self._ROUNDS)
    self.assertBetween(found, epsilon, epsilon + 1e-5)

  def test_what_is_infinite_stays_so(self):
    found = accounting.total_epsilon(lambda _: math.inf, 1e-9, **self._ROUNDS)
    self.assertEqual(found, math.inf)

  def test_two_clients_count_the_distance_where_that_is_less(self):
    """What the table costs as a factor is more than 1 for them."""
    rounds = dict(parts=[accounting.Rounds(2.0, 2, 20)], dim=2**20)
    found = accounting.total_epsilon(lambda _: 1.0, 1e-6, **rounds)
    added = 20 * 2**20 * distributed_noise.privacy_loss_per_coordinate(2)
    self.assertBetween(found, 1.0 + added, 1.001 + added)
    self.assertGreater(
      accounting.total_epsilon(lambda _: 30.0, 1e-6, **rounds), 30.5 + added
    )

  @parameterized.parameters((2, 3e-8, 1.001), (100, 1e-6, 1.00001))
  def test_an_epsilon_that_falls_with_delta_is_solved_for(
    self, min_clients, delta, least
  ):
    def epsilon_at(delta):
      return accounting.gaussian_epsilon(delta, 2.5)

    rounds = dict(parts=[accounting.Rounds(2.0, min_clients, 20)], dim=2**20)
    found = accounting.total_epsilon(epsilon_at, delta, **rounds)
    added = 20 * 2**20
    added *= distributed_noise.privacy_loss_per_coordinate(min_clients)
    without = epsilon_at(delta) + added
    self.assertBetween(found, least * without, 1.03 * without)


if __name__ == '__main__':
  absltest.main()

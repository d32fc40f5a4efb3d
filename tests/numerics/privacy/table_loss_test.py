# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `table_loss`: its lemma and theorem by exact convolution."""

import functools
import math

from absl.testing import absltest
from absl.testing import parameterized
import mpmath

from tff_autotune_secagg.numerics.privacy import accounting
from tff_autotune_secagg.numerics.privacy import discrete_gaussian
from tff_autotune_secagg.numerics.privacy import distributed_noise
from tff_autotune_secagg.numerics.privacy import table_loss

_ONE = 2**discrete_gaussian.PROBABILITY_BITS
_DIGITS = 60


@functools.lru_cache(maxsize=None)
def _rows():
  return discrete_gaussian.probabilities()


def _drawn(point, least=1):
  """Law of a draw around point / GRID; without probabilities below `least`."""
  floor, row = divmod(point, discrete_gaussian.GRID)
  first = floor + discrete_gaussian.FIRST_OFFSET
  weights = enumerate(_rows()[row], first)
  return {j: mpmath.mpf(w) / _ONE for j, w in weights if w >= least}


def _ideal(point):
  centre = mpmath.mpf(point) / discrete_gaussian.GRID
  variance = mpmath.mpf(49) / 25
  weights = {
    j: mpmath.exp(-((j - centre) ** 2) / (2 * variance))
    for j in range(math.floor(centre) - 35, math.floor(centre) + 36)
  }
  total = mpmath.fsum(weights.values())
  return {j: weight / total for j, weight in weights.items()}


def _sum(laws):
  found = {0: mpmath.mpf(1)}
  for law in laws:
    added = {}
    for i, p in found.items():
      for j, q in law.items():
        added[i + j] = added.get(i + j, 0) + p * q
    found = added
  return found


def _excess(one, two, epsilon):
  """The least delta of two laws, one way."""
  factor = mpmath.exp(epsilon)
  return mpmath.fsum(max(p - factor * two.get(j, 0), 0) for j, p in one.items())


def _log_bound(stddevs, num):
  exponents = (k / 20 for k in range(1, 21))
  return min(table_loss.log_missing(stddevs, num, e) for e in exponents)


class LemmaTest(parameterized.TestCase):
  @parameterized.product(num=[2, 3, 5], fractions=[(0,), (2048,), (9, 4095)])
  def test_sums_from_the_table_lack_no_more_than_is_stated(
    self, num, fractions
  ):
    points = [fractions[i % len(fractions)] for i in range(num)]
    centre = sum(points) / discrete_gaussian.GRID

    def gaps(least):
      with mpmath.workdps(_DIGITS):
        drawn = _sum([_drawn(point, least) for point in points])
        ideal = _sum([_ideal(point) for point in points])
        for j, p in ideal.items():
          stddevs = abs(j - centre) / (1.4 * math.sqrt(num))
          missing = 1 - drawn.get(j, 0) / p
          if stddevs < 13 and missing > 0:
            yield float(mpmath.log(missing)) - _log_bound(stddevs, num)

    found = list(gaps(1))
    self.assertNotEmpty(found)
    self.assertLess(max(found), 0)
    self.assertGreater(max(found), -5)  # It is not far from it either.
    # Negative control: a table that leaves out what is below 2**-73.
    self.assertGreater(max(gaps(2**10)), 0)


class TheoremTest(parameterized.TestCase):
  @parameterized.product(num=[3, 5], multiplier=[0.3, 1.0])
  def test_neighbours_have_the_stated_delta(self, num, multiplier):
    """One coordinate, one round, a client that is as long as it may be."""
    squared = distributed_noise.max_squared_grid_norm(multiplier, num)
    rare = 1e-12
    loss = table_loss.table_loss(
      noise_multiplier=multiplier,
      min_clients=num,
      num_rounds=1,
      dim=1,
      rare=rare,
    )
    self.assertLess(loss, 1e-3)
    added = loss + distributed_noise.privacy_loss_per_coordinate(num)
    effective = distributed_noise.effective_noise_multiplier(multiplier, num)
    fixed = rare + distributed_noise.sampling_distance(num, 1)
    with mpmath.workdps(_DIGITS):
      others = [_drawn(777)] * (num - 1)
      one = _sum([*others, _drawn(math.isqrt(squared))])
      two = _sum([*others, _drawn(0)])
      for epsilon in (0.0, 1.0, 5.0, 20.0, 40.0):
        claimed = fixed + accounting.gaussian_delta(epsilon, 1 / effective)
        for law, other in ((one, two), (two, one)):
          self.assertLess(_excess(law, other, epsilon + added), claimed)
      # Negative control: the noise of a multiplier that is larger.
      claimed = fixed + accounting.gaussian_delta(1.0, 0.7 / multiplier)
      self.assertGreater(_excess(one, two, 1.0 + added), claimed)


class LossTest(parameterized.TestCase):
  _ROUNDS = dict(num_rounds=100, dim=2**20, rare=1e-9)

  @parameterized.parameters(
    (2, 5.0, 50.0), (3, 0.3, 0.6), (5, 3e-3, 6e-3), (10, 1e-5, 3e-5)
  )
  def test_is_what_the_guide_says(self, num, low, high):
    found = table_loss.table_loss(
      noise_multiplier=1.0, min_clients=num, **self._ROUNDS
    )
    self.assertBetween(found, low, high)

  @parameterized.parameters(100, 10_000, 2**20)
  def test_is_nothing_for_many_clients(self, num):
    found = table_loss.table_loss(
      noise_multiplier=0.3, min_clients=num, **self._ROUNDS
    )
    self.assertLess(found, 1e-6)

  def test_grows_with_the_length_of_an_update(self):
    small, large = (
      table_loss.table_loss(
        noise_multiplier=multiplier, min_clients=5, **self._ROUNDS
      )
      for multiplier in (10.0, 0.3)
    )
    self.assertLess(small, large)

  def test_is_infinite_where_the_lemma_says_nothing(self):
    found = table_loss.table_loss(
      noise_multiplier=0.05, min_clients=2, **self._ROUNDS
    )
    self.assertEqual(found, math.inf)


if __name__ == '__main__':
  absltest.main()

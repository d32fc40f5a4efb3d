# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the pooled differences, against formulas and simulated runs."""

import math

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
from scipy import stats

from experiments.common import two_way


def _table(effects, blocks, sigma, rng):
  return {
    (name, b): effect + block + sigma * rng.normal()
    for name, effect in effects.items()
    for b, block in enumerate(blocks)
  }


class BalancedTest(absltest.TestCase):
  def test_equals_the_textbook(self):
    rng = np.random.default_rng(0)
    values = _table(
      dict(ref=1.0, a=2.0, b=0.5), [5.0, -3.0, 8.0, 1.0], 0.3, rng
    )
    table = np.array(
      [[values[name, b] for b in range(4)] for name in ('ref', 'a', 'b')]
    )
    residual = (
      table
      - table.mean(axis=0)
      - table.mean(axis=1, keepdims=True)
      + table.mean()
    )
    deviation = math.sqrt(np.sum(residual**2) / 6 * 2 / 4)
    found = two_way.differences(values, 'ref')
    self.assertEqual(found['ref'], two_way.Difference(found['ref'].mean))
    self.assertAlmostEqual(found['ref'].mean, 0.0)
    for row, name in ((1, 'a'), (2, 'b')):
      mean = np.mean(table[row] - table[0])
      self.assertAlmostEqual(found[name].mean, mean)
      self.assertAlmostEqual(
        found[name].half_width, stats.t.ppf(0.975, 6) * deviation
      )
      self.assertAlmostEqual(
        found[name].lower_bound, mean - stats.t.ppf(0.95, 6) * deviation
      )

  def test_two_treatments_are_the_paired_t_interval(self):
    values = _table(
      dict(ref=0.0, a=1.0), [1, 2, 3, 4], 1, np.random.default_rng(1)
    )
    pairs = [values['a', b] - values['ref', b] for b in range(4)]
    low, high = stats.t.interval(0.95, 3, np.mean(pairs), stats.sem(pairs))
    found = two_way.differences(values, 'ref')['a']
    self.assertAlmostEqual(found.mean - found.half_width, low)
    self.assertAlmostEqual(found.mean + found.half_width, high)


class PairedTest(absltest.TestCase):
  def test_is_the_t_interval_of_the_pairs_alone(self):
    rng = np.random.default_rng(2)
    values = _table(dict(ref=0.0, a=1.0, b=5.0), [1, 2, 3, 4], 1, rng)
    del values['ref', 3]
    pairs = [values['a', b] - values['ref', b] for b in range(3)]
    low, high = stats.t.interval(0.95, 2, np.mean(pairs), stats.sem(pairs))
    found = two_way.paired(values, 'a', 'ref')
    self.assertAlmostEqual(found.mean - found.half_width, low)
    self.assertAlmostEqual(found.mean + found.half_width, high)
    # The negative control: the other one's scatter is in the pooled interval.
    pooled = two_way.differences(values, 'ref')['a']
    self.assertNotAlmostEqual(pooled.half_width, found.half_width)

  def test_needs_two_pairs(self):
    values = {('ref', 1): 1.0, ('a', 1): 2.0, ('a', 2): 3.0, ('ref', 3): 1.0}
    self.assertIsNone(two_way.paired(values, 'a', 'ref'))
    self.assertIsNone(two_way.paired(values, 'ref', 'ref'))
    self.assertIsNone(two_way.paired(values, 'a', 'nobody'))


class GapsTest(parameterized.TestCase):
  def test_a_single_run_has_an_interval_by_the_scatter_of_the_others(self):
    rng = np.random.default_rng(2)
    values = _table(dict(ref=0.0, a=1.0, b=1.0), range(5), 0.1, rng)
    for block in range(1, 5):
      del values['b', block]
    found = two_way.differences(values, 'ref')
    self.assertGreater(found['b'].half_width, 1.5 * found['a'].half_width)

  def test_without_anything_left_over_there_is_no_interval(self):
    found = two_way.differences({('ref', 1): 3.0, ('a', 1): 5.0}, 'ref')
    self.assertAlmostEqual(found['a'].mean, 2.0)
    self.assertIsNone(found['a'].half_width)
    self.assertIsNone(found['a'].lower_bound)

  def test_what_shares_no_block_is_left_out(self):
    found = two_way.differences(
      {('ref', 1): 3.0, ('a', 1): 5.0, ('b', 2): 5.0}, 'ref'
    )
    self.assertEqual(list(found), ['ref', 'a'])
    # Negative control: a bridge, by which its block can be compared.
    found = two_way.differences(
      {('ref', 1): 3.0, ('a', 1): 5.0, ('b', 2): 5.0, ('a', 2): 4.0}, 'ref'
    )
    self.assertAlmostEqual(found['b'].mean, 3.0)

  @parameterized.parameters(0, 1, 2)
  def test_covers_the_truth_as_often_as_it_says(self, seed):
    rng = np.random.default_rng(seed)
    trials, hits, bounds = 400, 0, 0
    for _ in range(trials):
      blocks = 3 * rng.normal(size=5)
      values = _table(dict(ref=0.0, a=0.7, b=-2.0), blocks, 0.5, rng)
      del values['b', 4], values['a', 0]
      found = two_way.differences(values, 'ref')['a']
      hits += abs(found.mean - 0.7) <= found.half_width
      bounds += found.lower_bound <= 0.7
    # Of a binomial share of 0.95 among 400: 0.0109 is a standard error.
    self.assertAlmostEqual(hits / trials, 0.95, delta=3.5 * 0.0109)
    self.assertAlmostEqual(bounds / trials, 0.95, delta=3.5 * 0.0109)


if __name__ == '__main__':
  absltest.main()

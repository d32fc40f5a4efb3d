# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sums whose size changes, through whole rounds; the control is the old rule.

The control, `last_round_tuner`, sets the bin for the last round's size with a
margin of 0.1. Each test would fail with it.
"""

import functools

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from experiments.common import sum_simulation
from tests import last_round_tuner
from tff_autotune_secagg.numerics.rounding import modes

_STOCHASTIC = modes.Rounding.STOCHASTIC
_POSTERIOR = modes.Decoding.POSTERIOR_MEAN
_CLIENTS = 10
_DIM = 4096
# Each rounding and each decoding.
_MODES = (
  (_STOCHASTIC, _POSTERIOR),
  (_STOCHASTIC, modes.Decoding.CENTRED),
  (modes.Rounding.DITHER, modes.Decoding.UNBIASED),
)


@functools.lru_cache(maxsize=None)
def _simulation(is_control, modulus, rounding, decoding, dim):
  """A simulation, traced once for each setting."""
  options = dict(modulus=modulus, rounding=rounding, decoding=decoding)
  tuner = None
  if is_control:
    tuner = last_round_tuner.LastRoundTuner(**options)
  return sum_simulation.SumSimulation(dim=dim, tuner=tuner, **options)


def _run(
  sizes,
  *,
  is_control=False,
  modulus=256,
  rounding=_STOCHASTIC,
  decoding=_POSTERIOR,
  dim=_DIM,
):
  """The rounds of ten orthogonal clients whose sums have these sizes."""
  simulation = _simulation(is_control, modulus, rounding, decoding, dim)
  simulation.reset(seed=0)
  rng = np.random.default_rng(1)
  found = []
  for size in sizes:
    rows = sum_simulation.orthogonal_clients(rng, _CLIENTS, dim)
    # In float64: float32 rounds a size of 1e-38 away.
    found.append(simulation.run_round(np.float64(size) * rows))
  return found


def _mean_error(found, first_round):
  return np.mean([f.nmse for f in found[first_round:]])


class LevelTest(parameterized.TestCase):
  @parameterized.parameters(*_MODES)
  def test_noise_around_a_level_costs_a_third_of_the_old_rule(
    self, rounding, decoding
  ):
    noise = np.random.default_rng(5).standard_normal(60)
    options = dict(rounding=rounding, decoding=decoding)
    found = _mean_error(_run(np.exp(0.4 * noise), **options), 8)
    old = _mean_error(_run(np.exp(0.4 * noise), is_control=True, **options), 8)
    self.assertLess(found, old / 3)

  @parameterized.parameters(*_MODES)
  def test_constant_sizes_cost_what_the_old_rule_did(self, rounding, decoding):
    sizes, options = np.ones(40), dict(rounding=rounding, decoding=decoding)
    found = _mean_error(_run(sizes, **options), 8)
    old = _mean_error(_run(sizes, is_control=True, **options), 8)
    self.assertLess(found, 1.1 * old)

  @parameterized.parameters((6.0, 0.1), (10.0, 0.3))
  def test_two_levels_are_one_wide_level(self, ratio, limit):
    sizes = np.tile([1.0, ratio], 25)
    self.assertLess(_mean_error(_run(sizes), 10), limit)
    self.assertGreater(_mean_error(_run(sizes, is_control=True), 10), limit)

  def test_at_sixteen_bits_a_tenfold_alternation_loses_nothing(self):
    sizes = np.tile([1.0, 10.0], 12)
    found = _run(sizes, modulus=2**16)
    self.assertLess(max(f.nmse for f in found[10:]), 0.01)
    old = _run(sizes, is_control=True, modulus=2**16)
    self.assertGreater(max(f.nmse for f in old[10:]), 0.8)


class RangeTest(parameterized.TestCase):
  # float32 ends at 3.4e38; a client has a third of the sum's size.
  @parameterized.parameters(3e36, 1e30, 1e20, 1e7, 1e-15, 1e-30, 1e-35)
  def test_a_first_sum_of_any_size_is_found_within_four_rounds(self, size):
    found = _run([size] * 5)
    self.assertLess(found[4].nmse, 0.01)
    # Whatever is not known is reported as an error of 1.
    for f in found:
      self.assertLess(f.nmse, 1.05)
      self.assertGreater(f.predicted_nmse, f.nmse / 1.3)
    old = _run([size] * 5, is_control=True)
    self.assertGreater(old[4].nmse, 0.95)

  @parameterized.parameters(1e25, 1e12, 1e3, 1e-5, 1e-15, 1e-25)
  def test_a_size_that_jumps_is_found_within_four_rounds(self, factor):
    found = _run([1.0] * 6 + [factor] * 5)
    self.assertLess(found[-1].nmse, 0.01)
    for f in found:
      self.assertLess(f.nmse, 1.05)
      self.assertGreater(f.predicted_nmse, f.nmse / 1.3)

  @parameterized.parameters(1e25, 1e12, 1e-15, 1e-25)
  def test_the_old_rule_does_not_find_it(self, factor):
    found = _run([1.0] * 6 + [factor] * 5, is_control=True)
    self.assertGreater(found[-1].nmse, 0.95)


class LostTest(absltest.TestCase):
  def test_a_sum_that_shrank_to_nothing_reports_an_error_of_1(self):
    found = _run([1.0] * 4 + [1e-12])[-1]
    np.testing.assert_array_equal(found.result, np.zeros(_DIM))
    self.assertEqual((found.nmse, found.predicted_nmse), (1.0, 1.0))

  def test_a_round_without_clients_reports_no_error(self):
    simulation = _simulation(False, 256, _STOCHASTIC, _POSTERIOR, _DIM)
    simulation.reset(seed=0)
    found = simulation.run_round(np.zeros((0, _DIM)))
    self.assertEqual(found.predicted_nmse, 0.0)


if __name__ == '__main__':
  absltest.main()

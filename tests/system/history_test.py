# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Many rounds in a row through the factories' own TensorFlow functions."""

import collections
import functools

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from experiments.common import sum_simulation
from tests import reference
from tests import stat_checks
from tff_autotune_secagg import modulus_planning
from tff_autotune_secagg.numerics.rotation import randomized_hadamard
from tff_autotune_secagg.numerics.rounding import modes

_STOCHASTIC = modes.Rounding.STOCHASTIC
_DITHER = modes.Rounding.DITHER
_POSTERIOR = modes.Decoding.POSTERIOR_MEAN
_DIM = 4096
_SCALES = 10.0 ** np.linspace(-9, 4, 14)


@functools.lru_cache(maxsize=None)
def _traced(modulus, rounding, dim, decoding, **options):
  return sum_simulation.SumSimulation(
    modulus=modulus, dim=dim, rounding=rounding, decoding=decoding, **options
  )


def _simulation(
  modulus,
  rounding=_STOCHASTIC,
  dim=_DIM,
  decoding=modes.Decoding.UNBIASED,
  **options,
):
  """A fresh simulation; servers of one setting are traced once."""
  simulation = _traced(modulus, rounding, dim, decoding, **options)
  simulation.reset(seed=0)
  return simulation


@functools.lru_cache(maxsize=None)
def _clients(num_clients, dim=_DIM, seed=1):
  """Orthogonal normal clients whose sum has unit variance, and their sum."""
  rows = sum_simulation.orthogonal_clients(
    np.random.default_rng(seed), num_clients, dim
  )
  return rows, rows.sum(axis=0, dtype=np.float64)


# Five standard errors of the NMSE of a result that is nearly noise: the error's
# energy is a sum of squares, the energy of the true sum is exact.
_SAMPLING_ERROR = 5 * np.sqrt(2 / _DIM)


class ColdStartTest(parameterized.TestCase):
  @parameterized.parameters(
    (4, 1, _STOCHASTIC, 2**14),
    (16, 10, _STOCHASTIC, _DIM),
    (256, 10, _STOCHASTIC, _DIM),
    (65536, 10, _STOCHASTIC, _DIM),
    (16, 1, _DITHER, _DIM),
    (256, 10, _DITHER, _DIM),
    (256, 100, _DITHER, _DIM),
  )
  def test_a_scale_in_each_of_thirteen_decades(
    self, modulus, num_clients, rounding, dim
  ):
    simulation = _simulation(modulus, rounding, dim)
    rows, total = _clients(num_clients, dim)
    errors, second_bins = [], []
    for scale in _SCALES:
      simulation.reset()
      scaled = rows * np.float32(scale)
      found = [simulation.run_round(scaled, total * scale) for _ in range(4)]
      errors.append([f.nmse for f in found])
      second_bins.append(found[1].bin_size / scale)
    errors = np.array(errors)
    predicted = modulus_planning.predicted_nmse(
      num_clients=num_clients, modulus=modulus, rounding=rounding
    )
    self.assertLess(errors.max(), 1 + _SAMPLING_ERROR)
    steady = errors[:, 3:].mean()
    # Few wraps in 4096 entries make single rounds scatter by this factor.
    scatter = 1 + 5 * errors[:, 3:].std() / steady
    if predicted <= 0.05:
      # The ladder tells the size to a quarter, mostly.
      self.assertLess(errors[:, 1].max(), 1.5 * steady)
      self._assert_errors_are_those_of_the_bins(
        errors[::2, 1], second_bins[::2], total, modulus, num_clients, rounding
      )
      self.assertLess(errors[:, 2].mean(), 1.25 * steady)
      self.assertLess(errors[:, 2].max(), 1.25 * scatter * steady)
    else:
      self.assertLess(errors[:, 3:].max(), 1.2 * predicted)
    # After three sizes the forecast is still twice as uncertain as planned.
    self.assertLess(abs(steady / predicted - 1), 0.2)

  def _assert_errors_are_those_of_the_bins(
    self, errors, bin_sizes, total, modulus, num_clients, rounding
  ):
    """The tuner's step: whatever bin it chose, its error is the one it has."""
    z = stat_checks.z_for(len(errors))
    energy = np.mean(total**2)
    told_apart = 0
    for error, bin_size in zip(errors, bin_sizes):
      if rounding is _DITHER:
        variance = num_clients / 12
      else:
        client_stddev_bins = np.sqrt(energy / num_clients) / bin_size
        variance = num_clients * reference.stochastic_variance(
          client_stddev_bins
        )
      expected, standard_error = (
        part / energy
        for part in reference.decoding_error(total, modulus, bin_size, variance)
      )
      self.assertTrue(stat_checks.is_near(error, expected, standard_error, z))
      other, _ = reference.decoding_error(
        total, modulus, bin_size, 2 * variance
      )
      told_apart += not stat_checks.is_near(
        error, other / energy, standard_error
      )
    # Negative control: twice the variance of rounding. A coordinate at the edge
    # of the period may hide it, where the ladder told too small a bin.
    self.assertGreaterEqual(told_apart, len(errors) - 1)

  def test_a_modulus_far_too_small_costs_no_more_than_the_round(self):
    simulation = _simulation(4)
    rows, total = _clients(100)
    for scale in _SCALES[::3]:
      simulation.reset()
      for _ in range(5):
        found = simulation.run_round(rows * np.float32(scale), total * scale)
        self.assertLess(found.nmse, 1 + _SAMPLING_ERROR)


class ChangeTest(parameterized.TestCase):
  def _settle(self, simulation, rows, total):
    simulation.reset()
    for _ in range(4):
      found = simulation.run_round(rows, total)
    return found.nmse

  def _assert_recovers(self, simulation, rows, total, steady, rounds=2):
    for _ in range(rounds):
      found = simulation.run_round(rows, total)
      self.assertLess(found.nmse, 1 + _SAMPLING_ERROR)
    found = simulation.run_round(rows, total)
    self.assertLess(found.nmse, 1.5 * steady)

  @parameterized.product(
    rounding=(_STOCHASTIC, _DITHER),
    jump=(
      (64, 1e-3),
      (64, 1e3),
      (256, 1e-3),
      (256, 1e3),
      (256, 1e-6),
      (256, 1e6),
      (256, 0.1),
      (256, 10.0),
    ),
  )
  def test_recovers_from_a_jump_within_two_rounds(self, rounding, jump):
    modulus, factor = jump
    simulation = _simulation(modulus, rounding)
    base = np.float32(0.01)  # A millionfold stays within the ladder's reach.
    rows, total = (base * part for part in _clients(10))
    steady = self._settle(simulation, rows, total)
    self._assert_recovers(
      simulation, rows * np.float32(factor), total * factor, steady
    )

  @parameterized.parameters(_STOCHASTIC, _DITHER)
  def test_cohorts_that_change_tenfold(self, rounding):
    simulation = _simulation(256, rounding)
    rows, total = _clients(10)
    many, many_total = _clients(100)
    steady = self._settle(simulation, rows, total)
    scale = np.float32(np.sqrt(10))  # Clients of the same size as before.
    many_steady = 10 * steady
    self._assert_recovers(
      simulation, many * scale, many_total * scale, many_steady
    )
    # Back again, the next cohort may be either: the bin still serves both, with
    # at most the error of one that was made for the hundred.
    self._assert_recovers(simulation, rows, total, many_steady / 1.5)

  @parameterized.product(rounding=(_STOCHASTIC, _DITHER), size=(1e3, 1e6))
  def test_one_client_far_larger_for_one_round(self, rounding, size):
    simulation = _simulation(256, rounding)
    rows, total = _clients(10)
    steady = self._settle(simulation, rows, total)
    outlier = rows.copy()
    outlier[3] *= np.float32(size)
    found = simulation.run_round(outlier)
    self.assertLess(found.nmse, 1 + _SAMPLING_ERROR)
    self._assert_recovers(simulation, rows, total, steady)

  @parameterized.parameters(_STOCHASTIC, _DITHER)
  def test_one_dominant_client_for_good(self, rounding):
    # Breaks the assumption of equal clients: the nine others round with less
    # noise than is taken off, never with more.
    simulation = _simulation(256, rounding)
    rows, _ = _clients(10)
    uneven = rows.copy()
    uneven[0] *= np.float32(30)
    predicted = modulus_planning.predicted_nmse(
      num_clients=10, modulus=256, rounding=rounding
    )
    simulation.reset()
    errors = [simulation.run_round(uneven).nmse for _ in range(6)]
    self.assertLess(max(errors), 1 + _SAMPLING_ERROR)
    self.assertLess(np.mean(errors[3:]), 1.3 * predicted)


class EdgeTest(parameterized.TestCase):
  @parameterized.parameters(_STOCHASTIC, _DITHER)
  def test_rounds_of_zeros_and_without_clients(self, rounding):
    simulation = _simulation(256, rounding)
    rows, total = _clients(10)
    nothing = np.zeros((0, _DIM), np.float32)
    simulation.reset()
    for empty in (nothing, 0 * rows):  # Before anything is known.
      found = simulation.run_round(empty)
      np.testing.assert_array_equal(found.result, np.zeros(_DIM))
    for _ in range(3):
      steady = simulation.run_round(rows, total).nmse
    before = float(simulation.state['bin_size'])
    for empty in (nothing, 0 * rows, nothing, 0 * rows):
      found = simulation.run_round(empty)
      np.testing.assert_array_equal(found.result, np.zeros(_DIM))
      self.assertEqual(float(simulation.state['bin_size']), before)
    found = simulation.run_round(rows, total)
    self.assertLess(found.nmse, 1.5 * steady)

  def test_aligned_clients_err_no_more_than_predicted(self):
    for modulus in (64, 256):
      simulation = _simulation(modulus)
      simulation.reset()
      rows = sum_simulation.aligned_clients(np.random.default_rng(5), 10, _DIM)
      errors = [simulation.run_round(rows).nmse for _ in range(8)]
      predicted = modulus_planning.predicted_nmse(
        num_clients=10, modulus=modulus
      )
      self.assertLess(max(errors), 1 + _SAMPLING_ERROR)
      self.assertLess(np.mean(errors[3:]), 1.15 * predicted)

  @parameterized.parameters(64, 256, 65536)
  def test_identical_clients_under_dither_stay_bounded(self, modulus):
    # What dither warns of: errors add coherently, up to n^2 b^2 / 12.
    simulation = _simulation(modulus, _DITHER)
    rows = sum_simulation.aligned_clients(np.random.default_rng(5), 10, _DIM)
    predicted = modulus_planning.predicted_nmse(
      num_clients=10, modulus=modulus, rounding=_DITHER
    )
    errors = [simulation.run_round(rows).nmse for _ in range(8)]
    self.assertLess(max(errors), 1 + _SAMPLING_ERROR)
    self.assertGreater(np.mean(errors[4:]), 3 * predicted)
    self.assertLess(np.mean(errors[4:]), 12 * predicted)

  def test_uneven_clients_under_dither(self):
    # At this modulus a bin is as wide as a client of the mean size, and small
    # ones round alike. Taking them for independent, or all ten for alike, gives
    # an error above 0.7.
    simulation = _simulation(16, _DITHER)
    errors, predicted = [], []
    for seed in range(4):
      rng = np.random.default_rng(seed)
      sizes = rng.lognormal(0.0, 1.0, [10, 1])
      sizes /= np.sqrt(np.sum(sizes**2))
      rows = np.float32(sizes * rng.standard_normal([10, _DIM]))
      simulation.reset()
      found = [simulation.run_round(rows) for _ in range(12)]
      errors.append([f.nmse for f in found])
      predicted.append([f.predicted_nmse for f in found])
    self.assertLess(np.max(errors), 1 + _SAMPLING_ERROR)
    settled = np.mean(np.array(errors)[:, 4:])
    self.assertLess(settled, 0.5)
    self.assertLess(
      abs(np.mean(np.array(predicted)[:, 4:]) / settled - 1), 0.25
    )

  def test_a_large_cohort_of_identical_clients_under_dither(self):
    # Where each client spreads over less than a third of a bin, errors of
    # n^2 b^2 / 12 are larger than the sum, and must not be taken for it.
    simulation = _simulation(256, _DITHER)
    rows = sum_simulation.aligned_clients(np.random.default_rng(5), 100, _DIM)
    spread = np.std(rows[0])
    for stddev_bins in np.arange(0.05, 0.6, 0.03):
      simulation.reset()
      simulation.state.update(
        bin_size=tf.constant(spread / stddev_bins, tf.float32),
        calibrating=tf.constant(False),
      )
      errors = [simulation.run_round(rows).nmse for _ in range(3)]
      self.assertLess(max(errors), 1 + _SAMPLING_ERROR)

  @parameterized.parameters((1, 256), (2, 64))
  def test_sparse_updates(self, num_rotations, modulus):
    # Rotated here, which changes no norm: the simulation is that of others.
    simulation = _simulation(modulus)
    row = np.zeros(_DIM, np.float32)
    row[17] = 3.0
    errors = []
    for seed in range(6):
      rotated = randomized_hadamard.rotate(
        tf.constant(row), [seed, 1], num_rotations
      )
      rows = np.tile(rotated.numpy(), [10, 1])
      errors.append(simulation.run_round(rows).nmse)
    self.assertLess(max(errors), 1 + _SAMPLING_ERROR)
    predicted = modulus_planning.predicted_nmse(num_clients=10, modulus=modulus)
    # One rotation leaves entries of one size, maybe halfway between two bins:
    # variance 1/4 for each client instead of 1/6.
    self.assertLess(np.mean(errors[3:]), 1.8 * predicted)

  def test_a_run_with_dither_repeats_bit_for_bit(self):
    rows, total = _clients(10)
    results = []
    for _ in range(2):
      simulation = _simulation(256, _DITHER)
      results.append(
        [simulation.run_round(rows, total).result for _ in range(2)]
      )
    np.testing.assert_array_equal(results[0], results[1])


def _cancelling(rng, num_clients, ratio, dim):
  """Rows of unit variance, whose sum is `ratio` times smaller than its due."""
  rows = rng.standard_normal([num_clients, dim])
  if num_clients > 1 and ratio > 1:
    rows -= rows.mean(axis=0)
    rows += rng.standard_normal(dim) / num_clients**0.5 / ratio
  return rows.astype(np.float32)


class CancellingTest(parameterized.TestCase):
  """Clients whose sum is mostly the rounding of its summands."""

  def _run(self, simulation, num_clients, ratios):
    rng = np.random.default_rng(6)
    return [
      simulation.run_round(_cancelling(rng, num_clients, ratio, _DIM))
      for ratio in ratios
    ]

  @parameterized.parameters(
    # Bits, clients, how much smaller the sum is, rounds before it is.
    (4, 10, 100, 0),
    (4, 10, 100, 4),
    (6, 30, 30, 0),
    (4, 12, 60, 4),
    (2, 3, 40, 0),
    (4, 50, 200, 0),
    (4, 10, 80, 0),
    (2, 2, 30, 0),
    (2, 2, 50, 4),
    (8, 10, 1, 0),
    (8, 100, 100, 4),
    (8, 1000, 100, 0),
    (16, 10, 1000, 4),
    (16, 2, 1000, 0),
    (4, 1, 1, 4),
  )
  def test_no_round_is_worse_than_one_that_was_dropped(
    self, bits, num_clients, ratio, num_settled
  ):
    for rounding in modes.Rounding:
      simulation = _simulation(2**bits, rounding)
      num_rounds = 3 if num_clients == 1000 else 6
      ratios = [1] * num_settled + [ratio] * num_rounds
      found = self._run(simulation, num_clients, ratios)
      errors = np.array([f.nmse for f in found])
      predicted = np.array([f.predicted_nmse for f in found])
      with self.subTest(rounding=rounding):
        self.assertLess(np.max(errors), 1 + _SAMPLING_ERROR, errors)
        scatter = 2 * predicted**2
        if ratio == 1:
          # The count of wraps, each of which is worth a period squared: six
          # standard deviations of the sum at few bits, ten at many.
          scatter += 100 * predicted
        limit = 1.05 * predicted + 5 * np.sqrt(scatter / _DIM)
        self.assertLess(np.max(errors / limit), 1.0, (errors, predicted))

  def test_is_not_so_without_a_bound(self):
    """The negative control: gains of independent clients of the fitted size."""
    rng = np.random.default_rng(6)
    num_clients, modulus, ratio = 10, 16, 100
    rows = _cancelling(rng, num_clients, ratio, _DIM)
    total = rows.sum(axis=0, dtype=np.float64)
    # The bins that independent clients of this size get.
    bin_size = np.sqrt(num_clients) * 0.4
    bins = np.floor(rows / bin_size + rng.random(rows.shape)).sum(axis=0)
    bins -= modulus * np.round(bins / modulus)
    # Their rounding explains 1/6 each, and here it is nearly all there is. One
    # standard error of a sixteenth of the coordinates passes for signal.
    observed = np.mean((bin_size * bins) ** 2)
    noise = num_clients * bin_size**2
    noise *= reference.stochastic_variance(1 / bin_size)
    gain = max(1 - noise / observed, np.sqrt(2 * 16 / _DIM))
    error = np.sum((gain * bin_size * bins - total) ** 2) / np.sum(total**2)
    self.assertGreater(error, 2)

  @parameterized.parameters(modes.Decoding.UNBIASED, _POSTERIOR)
  def test_all_of_a_settled_sum_comes_through_unless_it_is_shrunk(
    self, decoding
  ):
    simulation = _simulation(16, decoding=decoding)
    rng = np.random.default_rng(7)
    shares, errors = [], []
    for _ in range(24):
      rows = _cancelling(rng, 12, 1, _DIM)
      total = rows.sum(axis=0, dtype=np.float64)
      found = simulation.run_round(rows, total)
      shares.append(found.result @ total / (total @ total))
      errors.append(found.nmse)
    error = stat_checks.mean_error(np.std(shares[4:], ddof=1), 20)
    mean = np.mean(shares[4:])
    if decoding is _POSTERIOR:
      self.assertLess(mean, 1 - 10 * error)
      # It is shorter by about its error.
      self.assertLess(abs(1 - mean - np.mean(errors[4:])), 0.03)
    else:
      self.assertTrue(stat_checks.is_near(mean, 1.0, error), (mean, error))


class CohortsTest(parameterized.TestCase):
  """Cohorts that vary, at 8 bits; the bin is set before the cohort is known."""

  _DIM = 2048

  def _errors(self, cohorts, is_agreeing, seed, noise=0.05):
    simulation = _simulation(256, dim=self._DIM)
    rng = np.random.default_rng(seed)
    errors = []
    for num_clients in cohorts:
      size = np.exp(noise * rng.standard_normal())
      if is_agreeing:
        rows = num_clients * sum_simulation.aligned_clients(
          rng, num_clients, self._DIM
        )
      else:
        rows = rng.standard_normal([num_clients, self._DIM])
      errors.append(simulation.run_round(np.float32(size * rows)).nmse)
    return np.array(errors)

  def _oracle(self, cohorts, is_agreeing, noise=0.05):
    """The mean error of the one bin that is best for all that will come."""
    chances = collections.Counter(cohorts)
    nodes, weights = np.polynomial.hermite_e.hermegauss(9)
    weights /= weights.sum()
    power = 1.0 if is_agreeing else 0.5

    def mean_error(log_bin):
      total = 0.0
      for num_clients, count in chances.items():
        sizes = power * np.log(num_clients) + noise * nodes
        errors = reference.nmse(log_bin - sizes, 256, num_clients)
        total += count * (weights @ errors)
      return total / len(cohorts)

    center = power * np.log(max(cohorts)) + np.log(2 / 256)
    return min(mean_error(center + x) for x in np.linspace(-1.0, 2.5, 141))

  @parameterized.named_parameters(
    ('8_60_agreeing', lambda rng: np.tile([8, 60], 25), True),
    ('8_60_independent', lambda rng: np.tile([8, 60], 25), False),
    ('20_to_60_agreeing', lambda rng: rng.integers(20, 61, 50), True),
    ('3_to_40_independent', lambda rng: rng.integers(3, 41, 50), False),
    ('poisson_30_agreeing', lambda rng: rng.poisson(30, 50), True),
    ('dropout_of_50', lambda rng: rng.integers(35, 46, 50), True),
  )
  def test_cost_about_what_the_one_best_bin_costs(self, draw, is_agreeing):
    cohorts = [int(n) for n in draw(np.random.default_rng(0))]
    errors = self._errors(cohorts, is_agreeing, seed=0)[5:]
    self.assertLess(np.max(errors), 0.6)
    best = self._oracle(cohorts[5:], is_agreeing)
    self.assertLess(np.mean(errors), 1.3 * best)

  def test_a_change_for_good_costs_two_rounds_and_its_return_one(self):
    for seed in range(3):
      errors = self._errors([10] * 15 + [100] * 15 + [10] * 15, True, seed)
      self.assertLess(np.max(errors[17:30]), 0.1)
      # The sum is a tenth of that which the bin was made for.
      self.assertLess(np.max(errors[30:33]), 0.6)
      self.assertLess(np.sum(errors[30:45] - errors[10]), 1.0)


class FewBitsTest(absltest.TestCase):
  def test_clients_that_agree_are_found_within_a_few_rounds(self):
    # Of a hundred clients in four bits a calibration sees their rounding, and
    # takes the sum for a third of what it is.
    for seed in range(6):
      simulation = _simulation(16, dim=2**14)
      rng = np.random.default_rng(seed)
      rows = sum_simulation.orthogonal_clients(rng, 100, 2**14)
      rows = rows + 0.027 * rng.standard_normal(2**14)
      rows = np.float32(rows * np.exp(rng.uniform(-3, 3)))
      found = [simulation.run_round(rows) for _ in range(12)]
      is_lost = [one.nmse > 0.995 for one in found]
      self.assertLess(sum(is_lost), 8, (seed, is_lost))


class PaperRuleTest(parameterized.TestCase):
  def test_reaches_the_wrap_probability_and_the_predicted_error(self):
    alpha = 1e-2
    simulation = _simulation(256, wrap_probability=alpha)
    simulation.reset()
    # Fresh vectors: what wraps is decided by the sum, not by the rounding.
    found = [
      simulation.run_round(*_clients(10, seed=seed)) for seed in range(43)
    ][3:]
    # The rule's r is z k / (k - 1), which lowers alpha by 3 to 5 %.
    np.testing.assert_allclose(
      np.mean([f.wrap_probability for f in found]), alpha, rtol=0.08
    )
    # The size is the same in every round.
    options = dict(num_clients=10, modulus=256, size_uncertainty=0.0)
    predicted = modulus_planning.predicted_nmse(
      wrap_probability=alpha, **options
    )
    errors = [f.nmse for f in found]
    tolerance = stat_checks.Z * stat_checks.mean_error(
      np.std(errors), len(errors)
    )
    self.assertLess(abs(np.mean(errors) - predicted), tolerance)
    # Negative control: the error of the next alpha is told apart.
    other = modulus_planning.predicted_nmse(
      wrap_probability=alpha / 10, **options
    )
    self.assertGreater(abs(np.mean(errors) - other), tolerance)

  def test_bin_size_stays_bounded_where_the_rule_diverges(self):
    simulation = _simulation(16, _DITHER, wrap_probability=1e-4)
    few, few_total = _clients(1)
    simulation.reset()
    for _ in range(3):
      simulation.run_round(few, few_total)
    many, many_total = _clients(100)
    bins = []
    for _ in range(12):
      found = simulation.run_round(many, many_total)
      bins.append(found.bin_size)
      self.assertLess(found.nmse, 1 + _SAMPLING_ERROR)
    self.assertLess(max(bins), 10.0)
    for _ in range(4):
      found = simulation.run_round(few, few_total)
    self.assertLess(found.nmse, 0.1)


class CentredTest(absltest.TestCase):
  def test_cold_start_and_steady_state(self):
    centred = modes.Decoding.CENTRED
    simulation = _simulation(256, decoding=centred)
    rows, total = _clients(10)
    errors = [simulation.run_round(rows, total).nmse for _ in range(8)]
    predicted = modulus_planning.predicted_nmse(
      num_clients=10, modulus=256, decoding=centred
    )
    self.assertLess(errors[0], 1 + _SAMPLING_ERROR)
    self.assertLess(abs(np.mean(errors[3:]) / predicted - 1), 0.15)


if __name__ == '__main__':
  absltest.main()

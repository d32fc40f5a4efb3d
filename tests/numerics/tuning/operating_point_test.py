# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import functools
import math

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
from scipy import optimize
from scipy import stats
import tensorflow as tf

from tests import reference
from tff_autotune_secagg import modulus_planning
from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.rounding import rounding_noise
from tff_autotune_secagg.numerics.tuning import modulus_problems
from tff_autotune_secagg.numerics.tuning import operating_point

_STOCHASTIC = modes.Rounding.STOCHASTIC
_DITHER = modes.Rounding.DITHER
_UNBIASED = modes.Decoding.UNBIASED
_POSTERIOR = modes.Decoding.POSTERIOR_MEAN
_CENTRED = modes.Decoding.CENTRED


def _float64(x):
  return tf.constant(x, tf.float64)


def _design_nmse(r, num_clients, modulus, variance=1 / 6):
  """4 r^2 (beta + 2 Q(r)) / (1 - 4 r^2 beta) of centred decoding."""
  beta = num_clients * variance / modulus**2
  return 4 * r**2 * (beta + 2 * stats.norm.sf(r)) / (1 - 4 * r**2 * beta)


@functools.lru_cache(maxsize=None)
def _operating_point(rounding):
  """`operating_point`, traced once for all counts and moduli."""
  return tf.function(
    lambda r, n, k: operating_point.operating_point(r, n, k, rounding),
    autograph=False,
  )


@functools.lru_cache(maxsize=None)
def _best(rounding, decoding):
  """`best_operating_point`, traced once for all counts, moduli and nodes."""
  return tf.function(
    lambda n, k, log_sizes, weights: operating_point.best_operating_point(
      n, k, rounding, decoding, log_sizes, weights
    ),
    autograph=False,
  )


@functools.lru_cache(maxsize=None)
def _errors(rounding, decoding):
  """Exact errors of bin sizes relative to a known size of the sum."""

  def errors(log_bins, num_clients, modulus):
    bins = tf.exp(log_bins)
    client = 1.0 / (tf.sqrt(num_clients) * bins)
    noise = (
      num_clients
      * tf.square(bins)
      * rounding_noise.decoded_variance(client, num_clients, rounding)
    )
    point = operating_point.OperatingPoint(
      modulus * bins / 2.0 / tf.sqrt(1.0 + noise), bins, noise / (1.0 + noise)
    )
    known = tf.zeros([1], tf.float64), tf.ones([1], tf.float64)
    return operating_point.expected_nmse(
      point, num_clients, rounding, decoding, *known
    )

  return tf.function(errors, autograph=False)


class OperatingPointTest(parameterized.TestCase):
  @parameterized.product(
    modulus=(4, 16, 256, 65536), num_clients=(1.0, 10.0, 1000.0)
  )
  def test_solves_its_equation(self, modulus, num_clients):
    half_periods = np.array([1.0, 3.0, 6.0])
    found = _operating_point(_STOCHASTIC)(
      _float64(half_periods), _float64(num_clients), _float64(modulus)
    )
    for index, b in enumerate(found.bin_per_stddev.numpy()):
      noise = (
        num_clients
        * b**2
        * reference.stochastic_variance(1 / (math.sqrt(num_clients) * b))
      )
      np.testing.assert_allclose(
        modulus * b / 2, half_periods[index] * math.sqrt(1 + noise), rtol=1e-3
      )
      np.testing.assert_allclose(
        float(found.noise_share[index]), noise / (1 + noise), rtol=1e-3
      )

  def test_closed_form_where_the_rounding_variance_is_constant(self):
    found = operating_point.operating_point(
      _float64(4.0), _float64(10.0), 256, _STOCHASTIC
    )
    expected = 8.0 / math.sqrt(256**2 - 64.0 * 10 / 6)
    np.testing.assert_allclose(float(found.bin_per_stddev), expected, rtol=1e-7)

  @parameterized.product(modulus=(2, 3, 16, 256), num_clients=(1.0, 100.0))
  def test_dither_keeps_clients_half_a_bin_wide(self, modulus, num_clients):
    found = _operating_point(_DITHER)(
      _float64([0.5, 3.0, 9.0]), _float64(num_clients), _float64(modulus)
    )
    spreads = 1 / (found.bin_per_stddev.numpy() * math.sqrt(num_clients))
    self.assertTrue(np.all(spreads > 0.5 - 1e-9))
    self.assertTrue(
      np.all(found.half_period_stddevs.numpy() <= [0.51, 3.01, 9.01])
    )


class BestTest(parameterized.TestCase):
  @parameterized.product(modulus=(64, 256, 4096), num_clients=(1, 10, 100))
  def test_centred_optimum_of_a_known_size_is_the_closed_one(
    self, modulus, num_clients
  ):
    best = optimize.minimize_scalar(
      _design_nmse,
      bounds=(1.0, 9.0),
      args=(num_clients, modulus),
      method='bounded',
    )
    found = modulus_planning.predicted_nmse(
      num_clients=num_clients,
      modulus=modulus,
      decoding=_CENTRED,
      size_uncertainty=0.0,
    )
    np.testing.assert_allclose(found, best.fun, rtol=0.01)
    alpha = modulus_planning.optimal_wrap_probability(
      num_clients=num_clients,
      modulus=modulus,
      decoding=_CENTRED,
      size_uncertainty=0.0,
    )
    half_period = operating_point.normal_quantile(alpha)
    # The error is flat around its least, to which the grid is 0.05 wide.
    self.assertLess(abs(half_period - best.x), 0.08)
    beta = num_clients / 6 / modulus**2
    left = best.x * stats.norm.pdf(best.x) * (1 - 4 * best.x**2 * beta)
    right = beta + 2 * stats.norm.sf(best.x)
    np.testing.assert_allclose(left, right, rtol=1e-3)

  @parameterized.product(rounding=(_STOCHASTIC, _DITHER), num_clients=(1, 10))
  def test_automatic_is_never_worse_than_a_fixed_alpha(
    self, rounding, num_clients
  ):
    for modulus in (16, 64, 256, 4096):
      options = dict(
        num_clients=num_clients, modulus=modulus, rounding=rounding
      )
      best = modulus_planning.predicted_nmse(size_uncertainty=0.0, **options)
      for alpha in (1e-2, 1e-4):
        other = modulus_planning.predicted_nmse(
          wrap_probability=alpha, **options
        )
        self.assertLess(best, other * 1.001)

  def test_uncertainty_widens_the_period_and_costs(self):
    options = dict(num_clients=10, modulus=256)
    uncertainties = (0.0, 0.1, 0.5, 2.0)
    alphas = [
      modulus_planning.optimal_wrap_probability(size_uncertainty=u, **options)
      for u in uncertainties
    ]
    errors = [
      modulus_planning.predicted_nmse(size_uncertainty=u, **options)
      for u in uncertainties
    ]
    self.assertEqual(alphas, sorted(alphas, reverse=True))
    self.assertEqual(errors, sorted(errors))

  def test_a_margin_of_a_tenth_costs_little_where_none_is_needed(self):
    known, uncertain = (operating_point.normal_nodes(u) for u in (0.0, 0.1))
    options = (_float64(10.0), 256, _STOCHASTIC, _POSTERIOR)
    best, found = (
      operating_point.expected_nmse(
        operating_point.best_operating_point(*options, *nodes),
        options[0],
        *options[2:],
        *known,
      )
      for nodes in (known, uncertain)
    )
    self.assertBetween(float(found), float(best), 1.15 * float(best))

  @parameterized.product(
    rounding=(_STOCHASTIC, _DITHER), decoding=tuple(modes.Decoding)
  )
  def test_is_the_mean_error_over_the_sizes(self, rounding, decoding):
    modulus, clients, uncertainty = 256, 10, 0.4
    nodes = operating_point.normal_nodes(uncertainty)
    point = operating_point.best_operating_point(
      _float64(10.0), modulus, rounding, decoding, *nodes
    )
    found = operating_point.expected_nmse(
      point, _float64(10.0), rounding, decoding, *nodes
    )
    moves = np.linspace(-6, 6, 241)
    weights = stats.norm.pdf(moves) / np.sum(stats.norm.pdf(moves))
    expected = reference.expected_error(
      float(point.bin_per_stddev),
      num_clients=clients,
      modulus=modulus,
      sizes=np.exp(uncertainty * moves),
      weights=weights,
      is_dither=rounding is _DITHER,
      decoding=decoding.value,
    )
    # Nine nodes of a function that is steep on one side.
    np.testing.assert_allclose(float(found), expected, rtol=0.05)

  @parameterized.product(modulus=(2, 3, 4, 7, 2**30), num_clients=(1, 10**6))
  def test_extremes_are_finite(self, modulus, num_clients):
    for rounding in modes.Rounding:
      for decoding in modes.Decoding:
        options = dict(
          num_clients=num_clients,
          modulus=modulus,
          rounding=rounding,
          decoding=decoding,
        )
        for alpha in (None, 1e-9, 0.999):
          error = modulus_planning.predicted_nmse(
            wrap_probability=alpha, **options
          )
          self.assertTrue(math.isfinite(error))
          self.assertGreater(error, 0.0)
          if decoding is not _CENTRED:
            self.assertLess(error, 1 + 1e-9)
        alpha = modulus_planning.optimal_wrap_probability(**options)
        self.assertBetween(alpha, 0.0, 1.0)


class LookupTest(parameterized.TestCase):
  """Errors of candidates are interpolated in a table; the best is exact."""

  @parameterized.product(
    rounding=(_STOCHASTIC, _DITHER),
    decoding=tuple(modes.Decoding),
    modulus=(16, 256, 65536),
    size_uncertainty=(0.05, 0.5),
  )
  def test_finds_what_exact_evaluation_finds(
    self, rounding, decoding, modulus, size_uncertainty
  ):
    num_clients = 10.0
    criterion = _POSTERIOR if decoding is _UNBIASED else decoding
    nodes = operating_point.normal_nodes(size_uncertainty)
    best = _best(rounding, decoding)(
      _float64(num_clients), _float64(modulus), *nodes
    )
    log_bins = np.log(float(best.bin_per_stddev)) + np.linspace(-0.3, 0.3, 201)
    if rounding is _DITHER:
      # Clients are half a bin wide at least.
      limit = np.log(2 / math.sqrt(num_clients)) + 1e-12
      log_bins = log_bins[log_bins <= limit]
    log_bins = np.append(log_bins, np.log(float(best.bin_per_stddev)))
    expected = np.zeros(log_bins.shape)
    for log_size, weight in zip(*(part.numpy() for part in nodes)):
      # The error of a bin of b at a size of s is that of b / s at a size of 1.
      errors = _errors(rounding, criterion)(
        _float64(log_bins - log_size), _float64(num_clients), _float64(modulus)
      )
      expected += weight * np.minimum(errors, 1.0)
    # At 16 bits an error grows a hundredfold in two steps of the table.
    tolerance = 1.004 if modulus == 65536 else 1.003
    self.assertLess(expected[-1], tolerance * expected.min())
    # Negative control: bins a tenth off are told apart where bits are few.
    if modulus == 16 and size_uncertainty == 0.05 and expected.min() < 0.5:
      self.assertGreater(max(expected[0], expected[-2]), 1.02 * expected.min())

  @parameterized.product(
    rounding=(_STOCHASTIC, _DITHER), decoding=tuple(modes.Decoding)
  )
  def test_a_modulus_that_serves_has_a_readable_half_period(
    self, rounding, decoding
  ):
    find = tf.function(
      lambda n, k: modulus_problems.find(n, k, None, rounding, decoding),
      autograph=False,
    )
    num_served = 0
    for modulus in (2, 3, 4, 8, 16, 32, 64, 256):
      for num_clients in (1.0, 2.0, 10.0, 100.0, 1000.0):
        found = _best(rounding, decoding)(
          _float64(num_clients),
          _float64(modulus),
          *operating_point.normal_nodes(0.1),
        )
        problems = find(_float64(num_clients), _float64(modulus))
        if not any(bool(problem) for problem in problems):
          # From there on 1,024 coordinates can be read: a mean cosine of
          # exp(-(pi / 1.5)^2 / 2) is five times 1 / sqrt(2 * 1024).
          self.assertGreaterEqual(float(found.half_period_stddevs), 1.5)
          num_served += 1
    self.assertGreater(num_served, 10)

  def test_of_centred_decoding_an_operating_point_that_is_lost_is_readable(
    self,
  ):
    # 5 bits, a hundred clients: every bin is worse than a dropped round, so
    # that the least error of any decoding decides.
    found = _best(_STOCHASTIC, _CENTRED)(
      _float64(100.0), _float64(32.0), *operating_point.normal_nodes(0.1)
    )
    self.assertGreater(float(found.half_period_stddevs), 1.5)


class BoundTest(parameterized.TestCase):
  @parameterized.parameters((_STOCHASTIC, 2.1), (_DITHER, 1.7))
  def test_bits_above_the_lattice_bound_at_256_and_10(self, rounding, limit):
    # The bound is that of a sum whose size is known.
    error = modulus_planning.predicted_nmse(
      num_clients=10, modulus=256, rounding=rounding, size_uncertainty=0.0
    )
    self.assertLess(reference.lattice_bound_bits(error, 10, 256), limit)

  def test_bits_above_the_lattice_bound_up_to_65536(self):
    for bits in range(2, 17):
      for num_clients in (1, 10, 100, 1000):
        error = modulus_planning.predicted_nmse(
          num_clients=num_clients, modulus=2**bits
        )
        above = reference.lattice_bound_bits(error, num_clients, 2**bits)
        self.assertLess(above, 2.9)

  def test_rule_of_thumb_half_a_bit_per_doubling(self):
    for num_clients in (4, 64, 1024):
      error = modulus_planning.predicted_nmse(
        num_clients=num_clients, modulus=2**14
      )
      more = modulus_planning.predicted_nmse(
        num_clients=4 * num_clients, modulus=2**15
      )
      np.testing.assert_allclose(more, error, rtol=0.1)


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import functools

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests import reference
from tests import stat_checks
from tff_autotune_secagg.numerics.reading import fitting
from tff_autotune_secagg.numerics.reading import stripes
from tff_autotune_secagg.numerics.rounding import modes

_STOCHASTIC = modes.Rounding.STOCHASTIC
_DITHER = modes.Rounding.DITHER
_DIM = 2**14
_LADDER = 8e-10 * 8.0 ** np.arange(16)


@functools.lru_cache(maxsize=None)
def _traced(modulus, rounding):
  def fit(*parts):
    sample = fitting.Sample(*parts)
    return fitting.fit(sample, modulus=modulus, rounding=rounding)

  return tf.function(fit, autograph=False)


def _fit(versines, bin_sizes, num_clients, modulus, decoded=None, dim=_DIM):
  """Fits stripes of the given sums; with `decoded`, under dither."""
  rounding = _STOCHASTIC if decoded is None else _DITHER
  arguments = (
    versines,
    versines if decoded is None else decoded,
    stripes.stripe_counts(dim),
    bin_sizes,
    float(num_clients),
  )
  return _traced(modulus, rounding)(
    *(tf.constant(a, tf.float64) for a in arguments)
  )


def _sum_of_rounded(rng, num_clients, bin_sizes, modulus, dim=_DIM):
  """Residues, centred, of clients whose sum has unit variance, by NumPy."""
  total = np.zeros((dim // 16, 16))
  for _ in range(num_clients):
    z = rng.standard_normal((dim // 16, 16)) / np.sqrt(num_clients) / bin_sizes
    total += np.floor(z + rng.random(z.shape))
  return total - modulus * np.floor(total / modulus + 0.5)


def _versines(bins, modulus):
  return np.sum(2 * np.sin(np.pi * bins / modulus) ** 2, axis=0)


class OrdinaryRoundTest(parameterized.TestCase):
  @parameterized.product(
    modulus=(16, 256, 2**16),
    num_clients=(1, 20),
    bins_per_stddev=(0.3, 2.0, 0.12),
    seed=(1, 2, 3),
  )
  def test_takes_the_rounding_noise_out(
    self, modulus, num_clients, bins_per_stddev, seed
  ):
    if bins_per_stddev == 0.12:
      bins_per_stddev *= modulus  # Rather near the blind limit.
    bin_sizes = np.full(16, 1 / bins_per_stddev)
    bins = _sum_of_rounded(
      np.random.default_rng(seed), num_clients, bin_sizes, modulus
    )
    fitted = _fit(_versines(bins, modulus), bin_sizes, num_clients, modulus)
    self.assertFalse(bool(fitted.is_blind))
    noise = num_clients * reference.stochastic_variance(
      bins_per_stddev / np.sqrt(num_clients)
    )
    observed = np.sqrt(bins_per_stddev**2 + noise)
    cosine = np.exp(-2 * (np.pi * observed / modulus) ** 2)
    # Of ln observed^2; the signal's share passes it on. For few values of a
    # residue the sample's kurtosis counts: sampled.
    sampled = 2 * np.sin(np.pi * bins / modulus) ** 2
    error = sampled.std() / np.sqrt(_DIM) / (-cosine * np.log(cosine))
    share = bins_per_stddev**2 / observed**2
    # Noise of a coarse bin grows with the signal, which makes it tell more.
    tolerance = stat_checks.Z * error / share / 2
    found = float(fitted.sum_stddev)
    self.assertLess(abs(np.log(found)), tolerance + 0.02)
    np.testing.assert_allclose(
      fitted.observed_stddev[0] / bin_sizes[0],
      observed,
      rtol=tolerance * share + 0.02,
    )
    # Negative control: noise left in is told apart where it is much.
    if share < 0.5 and tolerance < 0.2:
      self.assertGreater(np.log(observed / bins_per_stddev), tolerance)

  @parameterized.product(modulus=(2, 16, 1000), seed=(1, 2, 3))
  def test_uniform_residues_are_blind(self, modulus, seed):
    bins = np.random.default_rng(seed).integers(modulus, size=(_DIM // 16, 16))
    for bin_sizes in (np.ones(16), _LADDER):
      fitted = _fit(_versines(bins, modulus), bin_sizes, 10, modulus)
      self.assertTrue(bool(fitted.is_blind))
      self.assertFalse(bool(fitted.is_zero))
      self.assertEqual(float(fitted.sum_stddev), 0.0)
      np.testing.assert_array_equal(fitted.observed_stddev, np.zeros(16))

  @parameterized.product(
    value=(0.0, 1e-300, 2.0, 1.0), clients=(0.0, 1.0, 1e5), is_ladder=(0, 1)
  )
  def test_is_finite_for_every_input(self, value, clients, is_ladder):
    bin_sizes = _LADDER if is_ladder else np.full(16, 1e-30)
    versines = value * stripes.stripe_counts(_DIM)
    for decoded in (None, versines, np.full(16, 1.0 * _DIM)):
      for dim in (_DIM, 0):
        fitted = _fit(versines, bin_sizes, clients, 16, decoded, dim)
        for part in fitted:
          self.assertTrue(np.all(np.isfinite(part)))
        self.assertEqual(bool(fitted.is_zero), value == 0.0)


class LadderTest(parameterized.TestCase):
  @parameterized.product(
    modulus=(16, 256, 2**16), num_clients=(1, 10), seed=(1, 2, 3)
  )
  def test_reads_every_scale(self, modulus, num_clients, seed):
    rng = np.random.default_rng(seed)
    for scale in 10.0 ** rng.uniform(-9, 4, 4):
      bins = _sum_of_rounded(rng, num_clients, _LADDER / scale, modulus)
      fitted = _fit(_versines(bins, modulus), _LADDER, num_clients, modulus)
      self.assertFalse(bool(fitted.is_blind))
      ratio = float(fitted.sum_stddev) / scale
      # 1024 entries of one stripe; a finer one often says more.
      self.assertLess(abs(np.log(ratio)), 0.45 if modulus == 16 else 0.15)

  def test_a_sum_of_one_size_is_not_read_from_a_wrapped_stripe(self):
    # After one rotation a spike leaves entries of equal size, some stripe of
    # which returns to near 0 modulo k.
    modulus = 256
    for scale in 10.0 ** np.linspace(-4, 2, 25):
      signs = np.random.default_rng(1).choice([-1.0, 1.0], (1024, 16))
      bins = np.rint(signs * scale / _LADDER)
      fitted = _fit(_versines(bins, modulus), _LADDER, 1, modulus)
      self.assertFalse(bool(fitted.is_blind))
      self.assertBetween(float(fitted.sum_stddev) / scale, 0.5, 1.6)


if __name__ == '__main__':
  absltest.main()

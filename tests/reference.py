# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Slow, independent oracles: exact integers, quadrature, sums over all periods.

Nothing here imports the package; formulas start from definitions, not from the
closed forms that the package uses.
"""

import fractions
import functools
import math

import numpy as np
from scipy import interpolate
from scipy import stats


def round_up_above(bins: float, offset: float) -> int:
  """floor(bins), plus 1 if the offset is below the fraction, exactly."""
  exact = fractions.Fraction(float(bins))
  floor = math.floor(exact)
  return floor + (fractions.Fraction(float(offset)) < exact - floor)


def centre(residue: int, modulus: int) -> int:
  """The integer nearest to 0 of a residue class; a tie is negative."""
  residue %= modulus
  return residue if 2 * residue < modulus else residue - modulus


_gauss_legendre = functools.lru_cache(np.polynomial.legendre.leggauss)


def posterior_mean(x, stddev: float):
  """E[u | u = x mod 1] for a normal u, summed over 12 deviations and more."""
  x = np.asarray(x, np.float64)
  last = math.ceil(12 * stddev) + 2
  u = x[..., np.newaxis] + np.arange(-last, last + 1)
  log_weight = -0.5 * (u / stddev) ** 2
  weight = np.exp(log_weight - log_weight.max(axis=-1, keepdims=True))
  return np.sum(u * weight, axis=-1) / np.sum(weight, axis=-1)


def decoding_error(
  sums, modulus: int, bin_size: float, rounding_variance: float
):
  """Mean squared error of the posterior mean of the given sums.

  Args:
    sums: true sums, of which mean is 0 and the standard deviation is known.
    modulus: residues of the sum.
    bin_size: units of the sums.
    rounding_variance: of the sum, bins^2; taken as normal.

  Returns:
    Expectation over the rounding, and standard deviation.
  """
  period = modulus * bin_size
  noise = bin_size * math.sqrt(rounding_variance)
  variance = np.mean(np.square(sums))
  observed = math.sqrt(variance + noise**2)
  nodes, weights = np.polynomial.hermite_e.hermegauss(15)
  received = np.asarray(sums)[:, np.newaxis] / period + noise / period * nodes
  received -= np.round(received)
  decoded = posterior_mean(received, observed / period) * period
  decoded *= variance / observed**2
  squares = np.square(decoded - np.asarray(sums)[:, np.newaxis])
  weights /= np.sum(weights)
  means = squares @ weights
  variances = np.square(squares - means[:, np.newaxis]) @ weights
  return float(np.mean(means)), math.sqrt(np.sum(variances)) / len(means)


def stochastic_variance(stddev: float) -> float:
  """E f (1 - f) for the fraction f of a normal: variance of its rounding."""
  top = 12 * stddev
  edges = np.union1d(np.linspace(0, top, 40), np.arange(math.ceil(top)))
  nodes, weights = _gauss_legendre(16)
  widths = np.diff(edges)[:, np.newaxis] / 2
  z = edges[:-1, np.newaxis] + widths * (nodes + 1)
  fraction = z - np.floor(z)
  density = stats.norm.pdf(z / stddev) / stddev
  return 2 * float(
    np.sum(widths * weights * fraction * (1 - fraction) * density)
  )


def shared_offset_moments(stddev: float, num_offsets: int = 4000):
  """Moments of floor(z + u) for normal z and an offset u shared by clients.

  Returns:
    Variance of the integer, covariance of the integers of two clients, and
    variance and covariance of the errors floor(z + u) - (u - 1/2) - z.
  """
  u = (np.arange(num_offsets) + 0.5) / num_offsets
  top = math.ceil(12 * stddev) + 2
  j = np.arange(-top, top + 1)
  edges = (j - u[:, np.newaxis]) / stddev
  inside = stats.norm.cdf(edges + 1 / stddev) - stats.norm.cdf(edges)
  mean = inside @ j
  variance = np.mean(inside @ j**2)
  covariance = np.mean(mean**2)
  error_mean = mean - (u - 0.5)
  # E z floor(z + u) by parts: z phi(z) integrates to minus phi.
  density = stats.norm.pdf(edges) - stats.norm.pdf(edges + 1 / stddev)
  product = stddev * (density @ j)
  second = inside @ j**2 - 2 * (u - 0.5) * mean + (u - 0.5) ** 2
  error_variance = np.mean(second + stddev**2 - 2 * product)
  return variance, covariance, error_variance, np.mean(error_mean**2)


def wrapped_error(half_period: float, is_centred: bool) -> float:
  """Squared error of decoding a unit normal known modulo 2 * half_period."""
  nodes, weights = _gauss_legendre(400)
  x = half_period * (nodes[:, np.newaxis] + 1) / 2
  # Up to 30 standard deviations on both sides.
  last = math.ceil(15 / half_period) + 1
  u = x + 2 * half_period * np.arange(-last, last + 1)
  density = np.exp(-0.5 * u**2) / math.sqrt(2 * math.pi)
  total = np.maximum(density.sum(axis=1, keepdims=True), 1e-300)
  decoded = x if is_centred else (u * density).sum(1, keepdims=True) / total
  errors = np.sum((u - decoded) ** 2 * density, axis=1)
  return half_period * float(weights @ errors)


@functools.lru_cache(maxsize=None)
def _log_wrapped_error(is_centred: bool):
  """ln of `wrapped_error`, as a cubic spline for half periods of 0.3 to 12."""
  half_periods = np.arange(3, 121) / 10
  errors = [wrapped_error(r, is_centred) for r in half_periods]
  return interpolate.CubicSpline(half_periods, np.log(errors))


# ln of half a period over the true size.
_LOG_REACH = np.linspace(-3.0, 18.0, 421)


@functools.lru_cache(maxsize=None)
def _oracle_errors(modulus, num_clients):
  """NMSE for `_LOG_REACH` by the slow references, posterior mean."""
  errors = []
  for reach in np.exp(_LOG_REACH):
    b = 2 * reach / modulus
    client = 1 / (math.sqrt(num_clients) * b)
    # From two bins on it is 1/6 to nine digits.
    variance = 1 / 6 if client > 2 else stochastic_variance(client)
    noise = num_clients * b**2 * variance
    half_period = reach / math.sqrt(1 + noise)
    # Below it, all wraps; above it, nothing does.
    wrap = 1.0 if half_period < 0.1 else 0.0
    if 0.1 <= half_period < 9.0:
      wrap = wrapped_error(half_period, False)
    errors.append((noise + wrap) / (1 + noise))
  return np.array(errors)


def posterior_nmse(log_ratio, modulus, num_clients=10):
  """NMSE of posterior-mean decoding at ln(bin size / size of the sum)."""
  reach = log_ratio + math.log(modulus / 2)
  return np.interp(reach, _LOG_REACH, _oracle_errors(modulus, num_clients))


def expected_error(
  bin_size: float,
  *,
  num_clients: int,
  modulus: int,
  sizes: np.ndarray,
  weights: np.ndarray,
  is_dither: bool,
  is_centred: bool,
) -> float:
  """Expected NMSE of a coordinate of a sum that has one of some sizes.

  Args:
    bin_size: float, units of the values.
    num_clients: int.
    modulus: int.
    sizes: standard deviations of the sum's coordinates, units of the values.
    weights: their probabilities.
    is_dither: else stochastic rounding.
    is_centred: else the posterior mean.

  Returns:
    The mean, in which no size counts more than a round that is lost, 1.
  """
  expected = 0.0
  for weight, size in zip(weights, sizes):
    client = size / math.sqrt(num_clients) / bin_size
    if is_dither and client > 2:
      rounding = 1 / 12  # But for 1e-30 of it.
    elif is_dither:
      _, _, rounding, covariance = shared_offset_moments(client, 400)
      rounding += (num_clients - 1) * covariance
    else:
      rounding = stochastic_variance(client)
    noise = num_clients * rounding * (bin_size / size) ** 2
    observed = 1.0 + noise
    half_period = modulus * bin_size / size / 2 / math.sqrt(observed)
    # Where the spline ends: all is lost below it, and e^-72 of it above.
    half_period = min(max(half_period, 0.3), 12.0)
    wrapped = observed * math.exp(_log_wrapped_error(is_centred)(half_period))
    if not is_centred:
      # Of what is known of signal and noise together, this part is signal.
      wrapped /= observed**2
      noise /= observed
    expected += weight * min(noise + wrapped, 1.0)
  return expected


def lattice_bound_bits(nmse: float, num_clients: int, modulus: int) -> float:
  """Bits above NMSE = n / k^2, the bound for nested lattices."""
  return 0.5 * math.log2(nmse * modulus**2 / num_clients)

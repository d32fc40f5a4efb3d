# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Slow, independent oracles: exact integers, quadrature, sums over all periods.

Nothing here imports the package; formulas start from definitions, not from the
closed forms that the package uses.
"""

import collections
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
  sums,
  modulus: int,
  bin_size: float,
  rounding_variance: float,
  decoding: str = 'unbiased',
):
  """Mean squared error of the given sums after decoding.

  Args:
    sums: true sums, of which mean is 0 and the standard deviation is known.
    modulus: residues of the sum.
    bin_size: units of the sums.
    rounding_variance: of the sum, bins^2; taken as normal.
    decoding: 'unbiased' or 'posterior_mean'.

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
  share = variance / observed**2
  wrap = wrapped_error(period / 2 / observed, False)
  decoded *= decoding_gain(wrap, share, decoding)
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


# Where the spline ends: all is lost below it, and e^-72 of it above.
_SPLINE = 0.3, 12.0


@functools.lru_cache(maxsize=None)
def _log_wrapped_error(is_centred: bool):
  """ln of `wrapped_error`, as a cubic spline for half periods in `_SPLINE`."""
  half_periods = np.arange(3, 121) / 10
  errors = [wrapped_error(r, is_centred) for r in half_periods]
  return interpolate.CubicSpline(half_periods, np.log(errors))


def decoding_gain(wrap, sure_share, decoding: str):
  """What the mean is multiplied by.

  Args:
    wrap: `wrapped_error` of the mean, A.
    sure_share: the share of the observed variance that must be signal.
    decoding: 'unbiased' or 'posterior_mean'.
  """
  if decoding == 'posterior_mean':
    return sure_share
  return np.minimum(1 / np.maximum(1 - wrap, 1e-12), 2 * sure_share)


def error_of_gain(gain, wrap, noise_share):
  """NMSE of a multiple of the mean m of u, of variance 1, given u mod W.

  As E z m = (1 - A) S^2 and E m^2 = 1 - A, the error is least for the gain S^2,
  where it is 1 - (1 - A) S^2, and grows with the square of the distance to it.
  """
  signal = 1 - noise_share
  least = noise_share + wrap * signal
  return least + (1 - wrap) * (gain - signal) ** 2 / signal


def decoded_error(
  half_period: float, noise_share: float, gain: float, is_centred: bool = False
):
  """NMSE of gain times a decoding, and the share of the sum it lets through.

  By quadrature over u, normal of variance 1, of which z, normal of variance
  1 - f, is the signal: E[z | u] = (1 - f) u.

  Args:
    half_period: W / 2.
    noise_share: f.
    gain: what the decoded number is multiplied by.
    is_centred: whether u is decoded to the nearest to 0, not to its mean.
  """
  nodes, weights = _gauss_legendre(400)
  x = half_period * nodes
  last = math.ceil(15 / half_period) + 1
  u = x[:, np.newaxis] + 2 * half_period * np.arange(-last, last + 1)
  density = np.exp(-0.5 * u**2) / math.sqrt(2 * math.pi)
  decoded = x if is_centred else (u * density).sum(1) / density.sum(1)
  decoded = gain * decoded[:, np.newaxis]
  signal = (1 - noise_share) * u
  weights = half_period * weights
  error = weights @ np.sum((decoded - signal) ** 2 * density, axis=1)
  through = weights @ np.sum(decoded * signal * density, axis=1)
  # And the variance of z around E[z | u].
  error += noise_share * (1 - noise_share)
  return float(error) / (1 - noise_share), float(through) / (1 - noise_share)


# ln of half a period over the true size.
_LOG_REACH = np.linspace(-3.0, 18.0, 421)


@functools.lru_cache(maxsize=None)
def _oracle_errors(modulus, num_clients, decoding):
  """NMSE for `_LOG_REACH` by the slow references."""
  bins = 2 * np.exp(_LOG_REACH) / modulus
  clients = 1 / (math.sqrt(num_clients) * bins)
  # From two bins on it is 1/6 to nine digits.
  variances = [1 / 6 if c > 2 else stochastic_variance(c) for c in clients]
  noise = num_clients * bins**2 * variances
  half_periods = np.exp(_LOG_REACH) / np.sqrt(1 + noise)
  wrap = np.exp(_log_wrapped_error(False)(np.clip(half_periods, *_SPLINE)))
  sure = [_sure_share(n, num_clients, b) for n, b in zip(noise, bins)]
  gain = decoding_gain(wrap, np.array(sure), decoding)
  return error_of_gain(gain, wrap, noise / (1 + noise))


def _sure_share(noise, num_clients, bin_size):
  """The share of signal if rounding had all the variance it can have, 1/6.

  Of a sum of variance 1. What one client rounds away follows from its size.
  """
  observed = 1 + noise
  if num_clients > 1:
    noise = num_clients * bin_size**2 / 6
  return max(1 - noise / observed, 0.0)


def nmse(log_ratio, modulus, num_clients=10, decoding='unbiased'):
  """NMSE at ln(bin size / size of the sum), stochastic rounding."""
  reach = log_ratio + math.log(modulus / 2)
  errors = _oracle_errors(modulus, num_clients, decoding)
  return np.interp(reach, _LOG_REACH, errors)


def expected_error(
  bin_size: float,
  *,
  num_clients: int,
  modulus: int,
  sizes: np.ndarray,
  weights: np.ndarray,
  is_dither: bool,
  decoding: str,
) -> float:
  """Expected NMSE of a coordinate of a sum that has one of some sizes.

  Args:
    bin_size: float, units of the values.
    num_clients: int.
    modulus: int.
    sizes: standard deviations of the sum's coordinates, units of the values.
    weights: their probabilities.
    is_dither: else stochastic rounding.
    decoding: 'unbiased', 'posterior_mean' or 'centred'.

  Returns:
    The mean, in which no size counts more than a round that is lost, 1.
  """
  # A size between two steps of `_error_of_ratio` counts at both.
  steps = np.log(bin_size / np.asarray(sizes)) / _LOG_RATIO_STEP
  below = np.floor(steps)
  shares = collections.Counter()
  for step, above, weight in zip(below, steps - below, weights):
    shares[int(step)] += (1 - above) * weight
    shares[int(step) + 1] += above * weight
  return sum(
    share * _error_of_ratio(step, num_clients, modulus, is_dither, decoding)
    for step, share in shares.items()
    if share > 1e-12  # No error is above 1.
  )


# Of ln(bin size / size). Where the error is steepest, a straight line between
# two steps is off by 3e-4 of it.
_LOG_RATIO_STEP = 0.005


@functools.lru_cache(maxsize=None)
def _error_of_ratio(step, num_clients, modulus, is_dither, decoding):
  """NMSE, at most 1, of a bin of e^(0.005 step) times the size of the sum."""
  ratio = math.exp(step * _LOG_RATIO_STEP)
  client = 1 / math.sqrt(num_clients) / ratio
  if is_dither and client > 2:
    rounding = 1 / 12  # But for 1e-30 of it.
  elif is_dither:
    _, _, rounding, covariance = shared_offset_moments(client, 400)
    rounding += (num_clients - 1) * covariance
  else:
    rounding = stochastic_variance(client)
  noise = num_clients * rounding * ratio**2
  observed = 1.0 + noise
  half_period = modulus * ratio / 2 / math.sqrt(observed)
  half_period = np.clip(half_period, *_SPLINE)
  is_centred = decoding == 'centred'
  wrap = math.exp(_log_wrapped_error(is_centred)(half_period))
  if is_centred:
    error = noise + observed * wrap
  else:
    sure = 1 / observed if is_dither else _sure_share(noise, num_clients, ratio)
    gain = decoding_gain(wrap, sure, decoding)
    error = error_of_gain(gain, wrap, noise / observed)
  return min(error, 1.0)


def lattice_bound_bits(nmse: float, num_clients: int, modulus: int) -> float:
  """Bits above NMSE = n / k^2, the bound for nested lattices."""
  return 0.5 * math.log2(nmse * modulus**2 / num_clients)

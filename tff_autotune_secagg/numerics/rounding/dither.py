# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Subtractive dither: offsets that clients share and the server subtracts.

What is special to `Rounding.DITHER` (Roberts 1962): whose seed the offsets come
from, their subtraction, and what a sum tells of its size when the clients'
rounding errors are not independent.
"""

import math
from typing import Sequence

import numpy as np
import tensorflow as tf

from tff_autotune_secagg.numerics import bisection
from tff_autotune_secagg.numerics.reading import stripes
from tff_autotune_secagg.numerics.reading import wrapped_normal
from tff_autotune_secagg.numerics.rounding import quantization

# Errors of n clients add coherently where the standard deviation of a client's
# coordinates is below this, in bins.
MIN_CLIENT_STDDEV_BINS = 0.5

# Largest standard deviation of a client that is read from the raw sum. From
# `MIN_CLIENT_STDDEV_BINS` on, the sum after the dither's subtraction says more.
_MAX_RAW_STDDEV_BINS = 0.6

# Of an offset that is uniform on a bin, bins^2.
UNIFORM_VARIANCE = 1 / 12

# Equal clients of 0.29 bins miss this share of n^2. With smaller clients the
# noise is larger than the sum.
_MIN_MISSING = 0.02
# The decoded variance over what the missing variance implies, where the two
# agree. Small clients in wrapped sums seem to miss everything, so that there is
# more room above.
_AGREEMENT = (1 / 1.4, 1.8)

# Below it, ln(sin x / x) is -x^2 / 6 up to 2e-6 of itself.
_SMALL_ANGLE = 0.01


def client_seed(
  leaves: Sequence[tf.Tensor], bin_sizes: tf.Tensor, shared_seed: tf.Tensor
) -> tf.Tensor:
  """Returns the seed of a client's offsets.

  In an ordinary round this is the shared seed. Bins of a calibration round are
  mostly so coarse that errors of shared offsets would add coherently. There
  each client derives a seed from its values: independent between clients that
  differ at all, and the same when the round is repeated.

  Args:
    leaves: the client's tensors, at least one.
    bin_sizes: [NUM_STRIPES].
    shared_seed: int64 [2], of the round.

  Returns:
    int64 [2].
  """

  def of_values():
    seed = shared_seed
    for leaf in leaves:
      digest = tf.raw_ops.Fingerprint(
        data=tf.reshape(leaf, [1, -1]), method='farmhash64'
      )
      seed = tf.random.experimental.stateless_fold_in(
        seed, tf.bitcast(digest[0], tf.int64)
      )
    return seed

  return tf.cond(stripes.is_ladder(bin_sizes), of_values, lambda: shared_seed)


def num_sharing_clients(
  num_clients: tf.Tensor, bin_sizes: tf.Tensor
) -> tf.Tensor:
  """Returns how many clients used the shared offsets, like `num_clients`."""
  none = tf.zeros_like(num_clients)
  return tf.where(stripes.is_ladder(bin_sizes), none, num_clients)


def subtract(
  bins: tf.Tensor, seed: tf.Tensor, num_clients: tf.Tensor, modulus: int
) -> tf.Tensor:
  """Subtracts the mean of the offsets' sum and centres the difference again.

  Args:
    bins: float32 or float64 [rows, NUM_STRIPES], the centred sum in bins.
    seed: int32 or int64 [2], the one that the clients encoded with.
    num_clients: scalar, how many summands used the offsets of `seed`.
    modulus: Python int.

  Returns:
    Tensor like `bins`, in `[-modulus / 2, modulus / 2)`. Where `bins` is
    padding, it is an arbitrary number.
  """
  offsets = tf.reshape(
    quantization.uniform_offsets(bins.shape.num_elements(), seed, bins.dtype),
    bins.shape,
  )
  # `encode` rounds up where offset < fraction, so its z + u has u = 1 - offset.
  bins -= tf.cast(num_clients, bins.dtype) * (0.5 - offsets)
  return bins - modulus * tf.floor(bins / modulus + 0.5)


def coherent_variance(
  raw_stddev_bins: tf.Tensor,
  decoded_stddev_bins: tf.Tensor,
  num_clients: tf.Tensor,
  modulus: int,
) -> tf.Tensor:
  """Returns the variance that rounding adds if some clients are alike.

  The raw sum is S = d + n (U - 1/2). Errors that the dither U does not explain
  give it the variance E d^2 + n^2 / 12. If m clients round alike, so that d
  contains -m (U - 1/2), the variance is m n / 6 less, which tells m. Variances
  are those of wrapped sums: a uniform variable of width n has the mean cosine
  sin(pi n / k) / (pi n / k).

  Args:
    raw_stddev_bins: float64 [S], fitted before the dither is subtracted.
    decoded_stddev_bins: float64 [S], fitted after it.
    num_clients: float64 scalar n of at least 1.
    modulus: Python int k.

  Returns:
    float64 [S], bins^2; never below the n / 12 of independent clients.
  """

  def uniform(width):
    x = math.pi * width / modulus
    # A uniform sum that is wider than a period looks no wider.
    cosine = tf.sin(tf.minimum(x, math.pi)) / tf.maximum(x, _SMALL_ANGLE)
    log_cosine = tf.where(
      x > _SMALL_ANGLE,
      tf.math.log(tf.maximum(cosine, 1e-3)),
      -tf.square(x) / 6,
    )
    return -2.0 * log_cosine * (modulus / (2 * math.pi)) ** 2

  whole = uniform(num_clients)
  decoded = tf.square(decoded_stddev_bins)
  missing = decoded + whole - tf.square(raw_stddev_bins)
  alike = num_clients * tf.clip_by_value(missing / (2.0 * whole), 0.0, 1.0)
  variance = tf.maximum(
    num_clients * UNIFORM_VARIANCE,
    uniform(alike) + (num_clients - alike) * UNIFORM_VARIANCE,
  )
  return tf.where(_are_equal(missing, decoded, num_clients), whole, variance)


def _are_equal(missing, decoded, num_clients):
  """Tells whether all clients look like copies of each other, bool [S].

  n equal clients of s bins miss n^2 (1/6 - v(s)), see `rounding_noise`, which
  is n^2 exp(-2 pi^2 s^2) / pi^2 from a fifth of a bin on, and decode to
  n^2 (s^2 + 1/12), of which 1/12 is noise. Both must agree. Clients of a larger
  s than that of `_MIN_MISSING` miss too little to be seen, and are decoded with
  an error below the sum's own.
  """
  n_squared = tf.square(num_clients)
  share = tf.clip_by_value(missing / n_squared, _MIN_MISSING, math.pi**-2)
  client_variance = -tf.math.log(math.pi**2 * share) / (2 * math.pi**2)
  ratio = decoded / (n_squared * (client_variance + UNIFORM_VARIANCE))
  agree = tf.logical_and(ratio > _AGREEMENT[0], ratio < _AGREEMENT[1])
  return tf.logical_and(missing > _MIN_MISSING * n_squared, agree)


def client_stddev_bins(
  versine: tf.Tensor, num_clients: tf.Tensor, modulus: int
) -> tf.Tensor:
  """Finds the standard deviation of a client's coordinates from the raw sum.

  Where bins are coarse, most clients send 0 and the others agree, because they
  share the offset: the sum is far from normal. Given the offset U, however,
  clients are independent. With phi(U) = E exp(2 pi i q / k) of one client::

      E cos(2 pi S / k) = integral over U of Re phi(U)^n

  exactly. The standard deviation that gives the observed mean is found by
  bisection.

  Args:
    versine: float64 tensor [S], mean versine of the sum before the dither is
      subtracted.
    num_clients: float64 scalar n of at least 1.
    modulus: Python int k.

  Returns:
    float64 tensor [S], bins, at most `_MAX_RAW_STDDEV_BINS`; 0 for 0.
  """
  log_max = tf.constant(math.log(_MAX_RAW_STDDEV_BINS), tf.float64)
  high = tf.fill(versine.shape, log_max)
  floor = high - 30.0

  def is_below(log_stddev):
    expected = _expected_versine(tf.exp(log_stddev), num_clients, modulus)
    return expected < versine

  solution = bisection.bisect(is_below, floor, high)
  found = tf.logical_and(solution > floor + 1e-6, versine > 0.0)
  return tf.where(found, tf.exp(solution), tf.zeros_like(versine))


def _expected_versine(stddev_bins, num_clients, modulus):
  """Returns 1 - E cos(2 pi S / k) for n clients with a shared offset."""
  # Nodes are even in ln U, where any size far below a bin shows alike. Half of
  # the offsets are enough: U and 1 - U have conjugate phi.
  nodes, weights = np.polynomial.legendre.leggauss(96)
  logs = math.log(0.5) - 12.5 * (nodes + 1.0)
  offsets = np.exp(logs)
  weights = 2.0 * 12.5 * weights * offsets
  real, imaginary = 0.0, 0.0
  tail = wrapped_normal.normal_tail
  for j in range(1, 4):
    angle, before = 2 * np.pi * j / modulus, 2 * np.pi * (j - 1) / modulus
    cosines = math.cos(angle) - math.cos(before)
    sines = math.sin(angle) - math.sin(before)
    above = tail((j - offsets) / stddev_bins[..., tf.newaxis])
    below = tail((j - 1 + offsets) / stddev_bins[..., tf.newaxis])
    real += cosines * (above + below)
    imaginary += sines * (above - below)
  log_norm = 0.5 * tf.math.log1p(
    tf.maximum(real * (2.0 + real) + tf.square(imaginary), -1.0 + 1e-12)
  )
  angle = num_clients * tf.atan2(imaginary, 1.0 + real)
  versine = -tf.math.expm1(num_clients * log_norm)
  versine += (1.0 - versine) * 2.0 * tf.square(tf.sin(angle / 2))
  return tf.reduce_sum(versine * weights, axis=-1)

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The sums that this package is compared with, in NumPy and without TFF.

Each is called with float32 [clients, dim], learns from what it sees, and
returns float64 [dim]. What they compute is what the TFF factories compute that
their docstrings name; a test compares the two. Without TFF a round of a
thousand clients takes milliseconds.
"""

import math
from typing import Callable

import numpy as np
from scipy import special
import tensorflow as tf

from experiments.common import row_rotation
from experiments.convergence import quantile
from tff_autotune_secagg.numerics.rotation import randomized_hadamard

Sum = Callable[[np.ndarray], np.ndarray]

_SECURE_SUM_MAX = 2**32 - 1


def plain_sum(rows: np.ndarray) -> np.ndarray:
  """`tff.aggregators.SumFactory`: 32-bit floats."""
  return rows.sum(axis=0).astype(float)


class SecureSum:
  """`tff.aggregators.SecureSumFactory` with the range of TFF's aggregator.

  Values are clipped to the range and rounded to the nearest of 2**32 levels.
  """

  def __init__(self):
    self._range = quantile.secure_range()

  def __call__(self, rows: np.ndarray) -> np.ndarray:
    limit = np.float32(self._range.limit)
    scale = _SECURE_SUM_MAX / (2.0 * float(limit))
    levels = np.rint(np.clip(rows, -limit, limit).astype(float) * scale)
    self._range.update(np.abs(rows).max(axis=1))
    return (levels.sum(axis=0) / scale).astype(np.float32).astype(float)


class FixedRangeSum:
  """`experiments.common.baselines.fixed_range.FixedRangeSumFactory`."""

  def __init__(self, clip_range, num_levels: int, rng: np.random.Generator):
    """Initializes the sum.

    Args:
      clip_range: Positive float, or an `AdaptiveLimit`.
      num_levels: Of a client, at least 2.
      rng: Rounds.
    """
    self._range = clip_range
    self._num_levels = num_levels
    self._rng = rng

  def __call__(self, rows: np.ndarray) -> np.ndarray:
    adapts = isinstance(self._range, quantile.AdaptiveLimit)
    limit = self._range.limit if adapts else self._range
    most = self._num_levels - 1
    step = 2.0 * limit / most
    positions = np.clip((rows + limit) / step, 0.0, most)
    total = _round_at_random(positions, self._rng).sum(axis=0)
    if adapts:
      self._range.update(np.abs(rows).max(axis=1))
    return total * step - len(rows) * limit


class LocalRangeSum:
  """`baselines.local_quantization.LocallyQuantizedSumFactory`."""

  def __init__(self, num_levels: int, rng: np.random.Generator):
    self._num_levels = num_levels
    self._rng = rng

  def __call__(self, rows: np.ndarray) -> np.ndarray:
    lowest = rows.min(axis=1, keepdims=True).astype(float)
    steps = np.ptp(rows, axis=1, keepdims=True) / (self._num_levels - 1)
    steps = np.where(steps > 0, steps, 1.0)
    levels = _round_at_random((rows - lowest) / steps, self._rng)
    return (levels * steps + lowest).sum(axis=0)


class DdpSum:
  """`tff.aggregators.DistributedDpSumFactory` with no noise, after a rotation.

  With the settings of `tff.learning.ddp_secure_aggregator`: norms are clipped
  to an adaptive median, and the scale leaves room for a sum of clients that are
  all alike.
  """

  _MAX_SCALE = 1e6
  _WRAP_PROBABILITY = 1e-4

  def __init__(self, bits: int, rng: np.random.Generator):
    self._bits = bits
    self._rng = rng
    self._clip = quantile.AdaptiveLimit(0.1, 0.5, 0.2)

  def __call__(self, rows: np.ndarray) -> np.ndarray:
    limit = self._clip.limit
    norms = np.linalg.norm(rows, axis=1)
    self._clip.update(norms)
    factors = np.minimum(1.0, limit / np.maximum(norms, np.finfo(float).tiny))
    scale = self.scale(limit, *rows.shape)
    scaled = rows * (factors * scale)[:, np.newaxis]
    total = _round_at_random(scaled, self._rng).sum(axis=0)
    half = 2.0 ** (self._bits - 1)
    return ((total + half) % (2 * half) - half) / scale

  def scale(self, limit: float, num_clients: int, dim: int) -> float:
    """Levels for each unit; Kairouz et al. (2021), arXiv:2102.06387."""
    margin = math.sqrt(2.0) * special.erfcinv(self._WRAP_PROBABILITY)
    room = 4.0**self._bits - num_clients * margin**2
    if room <= 0:
      raise ValueError(
        f'`bits` of ddp_secure_aggregator must leave room for {num_clients} '
        f'clients, found {self._bits}.'
      )
    spread = limit * num_clients / math.sqrt(dim)
    return min(math.sqrt(room) / (2.0 * margin * spread), self._MAX_SCALE)


class RotatedSum:
  """Rotates the rows by this package's rotation around another sum."""

  def __init__(self, inner: Sum, width: int, rng: np.random.Generator):
    """Initializes the sum.

    Args:
      inner: Sum of the rotated rows.
      width: At least the coordinates of a row, which are padded to it and then
        to an order that there is.
      rng: Draws the rotations.
    """
    self._inner = inner
    self._width = width
    self._rng = rng
    self._rotate = tf.function(row_rotation.rotate, autograph=False)
    self._rotate_back = tf.function(
      randomized_hadamard.inverse_rotate, autograph=False
    )

  def __call__(self, rows: np.ndarray) -> np.ndarray:
    num, dim = rows.shape
    padded = np.zeros([num, self._width], np.float32)
    padded[:, :dim] = rows
    seed = tf.constant(self._rng.integers(2**62, size=2))
    total = self._inner(self._rotate(tf.constant(padded), seed).numpy())
    back = self._rotate_back(tf.constant(total), seed, self._width)
    return back.numpy()[:dim]


def _round_at_random(values, rng) -> np.ndarray:
  """A neighbouring integer of each value, its mean the value."""
  below = np.floor(values)
  return below + (rng.random(values.shape) < values - below)

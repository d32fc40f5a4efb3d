# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""TFF's adaptive limits: a quantile of the clients, tracked over rounds."""

import math

import numpy as np


class AdaptiveLimit:
  """`tff.aggregators.PrivateQuantileEstimationProcess.no_noise`, in NumPy.

  Reference: Andrew et al. (2021), arXiv:1905.03871, the geometric update.
  """

  def __init__(
    self,
    initial: float,
    target: float,
    learning_rate: float,
    multiplier: float = 1.0,
    increment: float = 0.0,
  ):
    """Initializes the limit.

    Args:
      initial: The first estimate of the quantile.
      target: Which quantile, in (0, 1).
      learning_rate: The estimate changes by a factor of at most its exponential
        in a round.
      multiplier: Of the quantile, in the limit.
      increment: On top of it.
    """
    self._estimate = initial
    self._target = target
    self._learning_rate = learning_rate
    self._multiplier = multiplier
    self._increment = increment

  @property
  def limit(self) -> float:
    """The limit of the coming round."""
    return self._multiplier * self._estimate + self._increment

  def update(self, sizes: np.ndarray) -> None:
    """Learns from the clients' sizes, [n]."""
    share = float(np.mean(sizes <= self._estimate))
    self._estimate *= math.exp(-self._learning_rate * (share - self._target))


def secure_range() -> AdaptiveLimit:
  """The range of `tff.learning.secure_aggregator`, of largest coordinates."""
  return AdaptiveLimit(50.0, 0.95, 1.0, multiplier=2.0)


def clipping() -> AdaptiveLimit:
  """The norm to which TFF's aggregators clip by default."""
  return AdaptiveLimit(1.0, 0.8, 0.2)


def zeroing() -> AdaptiveLimit:
  """The largest coordinate beyond which TFF's aggregators zero by default."""
  return AdaptiveLimit(
    10.0, 0.98, math.log(10.0), multiplier=2.0, increment=1.0
  )

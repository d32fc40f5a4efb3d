# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The best few levels for a normal coordinate: Lloyd's and Max's quantizer.

Levels q_i and the borders between them, a coordinate going to its nearest
level, have the least mean square error where each level is the mean of the
coordinates that go to it (Lloyd 1957; Max 1960, Quantizing for minimum
distortion).
"""

import functools
from typing import NamedTuple

import numpy as np
from scipy import linalg
from scipy import special

MIN_BITS = 2
MAX_BITS = 8

_NEWTON_STEPS = 12


class Levels(NamedTuple):
  """A quantizer of standard normal coordinates; float64, read-only.

  Attributes:
    levels: [2**bits], ascending.
    borders: [2**bits - 1], halfway between neighbours.
    distortion: float, the mean square error.
  """

  levels: np.ndarray
  borders: np.ndarray
  distortion: float


@functools.lru_cache(maxsize=None)
def best_levels(bits: int) -> Levels:
  """Returns the `Levels` of least distortion.

  Args:
    bits: Python int in `MIN_BITS` .. `MAX_BITS`.
  """
  count = 2**bits
  # Levels are about as dense as the cube root of the density, a normal with
  # three times the variance (Panter and Dite 1951).
  levels = np.sqrt(3.0) * special.ndtri((np.arange(count) + 0.5) / count)
  for _ in range(_NEWTON_STEPS):
    levels = levels - _newton_step(levels)
  levels = (levels - levels[::-1]) / 2.0  # Symmetric to the last bit.
  borders, masses, means = _cells(levels)
  # Each level is its cell's mean: E (x - q)^2 = 1 - E q^2.
  distortion = float(1.0 - np.sum(masses * np.square(means)))
  for array in (levels, borders):
    array.setflags(write=False)
  return Levels(levels, borders, distortion)


def _density(x):
  return np.exp(-0.5 * np.square(x)) / np.sqrt(2.0 * np.pi)


def _cells(levels):
  """Returns the borders, and the probability and the mean of each cell."""
  borders = (levels[1:] + levels[:-1]) / 2.0
  ends = np.concatenate([[-np.inf], borders, [np.inf]])
  masses = np.diff(special.ndtr(ends))
  return borders, masses, -np.diff(_density(ends)) / masses


def _newton_step(levels):
  """Returns the step of Newton's method for "each level is its cell's mean"."""
  borders, masses, means = _cells(levels)
  density = _density(borders)
  # How far a cell's mean moves with its lower and with its upper border. A
  # border moves half as far as each of its two levels.
  lower = density * (means[1:] - borders) / masses[1:]
  by_lower = np.append(0.0, lower / 2.0)
  upper = density * (borders - means[:-1]) / masses[:-1]
  by_upper = np.append(upper / 2.0, 0.0)
  banded = np.zeros([3, len(levels)])
  banded[0, 1:] = -by_upper[:-1]
  banded[1] = 1.0 - by_lower - by_upper
  banded[2, :-1] = -by_lower[1:]
  return linalg.solve_banded((1, 1), banded, levels - means)

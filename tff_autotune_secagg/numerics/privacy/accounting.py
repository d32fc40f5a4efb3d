# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Epsilon of rounds of distributed noise, with all that adds to it.

The noised sums of T rounds are a post-processing of T Gaussian mechanisms, up
to three small terms: T D tau in epsilon, a factor exp(T D tau / 2) of delta,
see `distributed_noise`, and the distance between drawn and ideal noise. The
last term is (1 + exp(eps)) T eta in delta, or T eta in delta and `table_loss`
in epsilon. Both bounds are true, and the smaller result is taken.

No TFF here: everything is Python numbers.
"""

import math
from typing import Callable

from scipy import special

from tff_autotune_secagg.numerics.privacy import distributed_noise
from tff_autotune_secagg.numerics.privacy import table_loss

_MAX_EPSILON = 1e6  # From far below this on, nothing is private.
_MAX_EPSILON_BY_DISTANCE = 500.0  # The exponential of this is still a float.
_MAX_ITERATIONS = 100

# Share of delta for sums that are so far from their centre that the table's
# errors count.
_RARE_SHARE = 1e-3


def gaussian_delta(epsilon: float, separation: float) -> float:
  """Returns delta of a Gaussian mechanism at an epsilon, exactly.

  Phi(m / 2 - eps / m) - exp(eps) Phi(-m / 2 - eps / m): Balle and Wang (2018,
  arXiv:1805.06530), theorem 8.

  Args:
    epsilon: at least 0.
    separation: positive m, sensitivity over standard deviation; sqrt(T) / z for
      T mechanisms of multiplier z.

  Returns:
    float in [0, 1].
  """
  first = special.log_ndtr(separation / 2.0 - epsilon / separation)
  second = special.log_ndtr(-separation / 2.0 - epsilon / separation)
  return max(math.exp(first) - math.exp(epsilon + second), 0.0)


def gaussian_epsilon(delta: float, separation: float) -> float:
  """Returns the least epsilon whose `gaussian_delta` is at most `delta`.

  Rounded up, by less than 1e-12 of it; infinite from 1e6 on.
  """
  if gaussian_delta(0.0, separation) <= delta:
    return 0.0
  low, high = 0.0, _MAX_EPSILON
  if gaussian_delta(high, separation) > delta:
    return math.inf
  while high - low > 1e-12 * high:
    middle = (low + high) / 2.0
    if gaussian_delta(middle, separation) > delta:
      low = middle
    else:
      high = middle
  return high


def total_epsilon(
  epsilon_at: Callable[[float], float],
  delta: float,
  *,
  noise_multiplier: float,
  min_clients: int,
  num_rounds: int,
  dim: int,
) -> float:
  """Adds the cost of discrete noise to the epsilon of Gaussian mechanisms.

  Args:
    epsilon_at: maps a delta to the epsilon of the Gaussian mechanisms of all
      rounds, and of whatever else is composed with them.
    delta: of the whole, in (0, 1).
    noise_multiplier: z, positive.
    min_clients: n, fewest clients in a sum.
    num_rounds: T, of all sums together.
    dim: D, coordinates of the rotated vector.

  Returns:
    float; infinite if `delta` is too small for the distance between drawn and
    ideal noise.
  """
  added = num_rounds * dim
  added *= distributed_noise.privacy_loss_per_coordinate(min_clients)
  distance = num_rounds
  distance *= distributed_noise.sampling_distance(min_clients, dim)

  def epsilon_left(left):
    return epsilon_at(left * math.exp(-added / 2.0)) + added

  rare = _RARE_SHARE * delta
  by_factor = math.inf
  if delta - distance - rare > 0.0:
    loss = table_loss.table_loss(
      noise_multiplier=noise_multiplier,
      min_clients=min_clients,
      num_rounds=num_rounds,
      dim=dim,
      rare=rare,
    )
    by_factor = epsilon_left(delta - distance - rare) + loss
  return min(by_factor, _epsilon_by_distance(epsilon_left, delta, distance))


def _epsilon_by_distance(epsilon_left, delta, distance):
  """Returns the least epsilon that covers the delta it costs, from below."""
  epsilon = 0.0
  for _ in range(_MAX_ITERATIONS):
    if epsilon > _MAX_EPSILON_BY_DISTANCE:
      break
    left = delta - (1.0 + math.exp(epsilon)) * distance
    if left <= 0.0:
      break
    found = epsilon_left(left)
    if found <= epsilon:
      return epsilon
    epsilon = found * (1.0 + 1e-6)
  return math.inf

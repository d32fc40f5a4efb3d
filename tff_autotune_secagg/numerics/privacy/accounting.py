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
import sys
from typing import Callable, NamedTuple, Sequence

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

  Rounded up, by less than 1e-12 of it; infinite from 1e6 on, and for a delta
  below 2e-308, where the exponential of floats becomes 0.
  """
  if delta < sys.float_info.min:
    return math.inf
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


class Rounds(NamedTuple):
  """Rounds of a training with as many honest shares of the noise.

  Attributes:
    noise_multiplier: z of the noise that the shares add up to, positive.
    min_clients: n, the honest shares.
    num_rounds: T, as many as there are.
  """

  noise_multiplier: float
  min_clients: int
  num_rounds: int

  def separation(self) -> float:
    """Returns the sensitivity over the deviation of the Gaussian mechanisms."""
    multiplier = distributed_noise.effective_noise_multiplier(
      self.noise_multiplier, self.min_clients
    )
    if not multiplier:
      return math.inf  # A single share: the theorem needs another one.
    return math.sqrt(self.num_rounds) / multiplier


def short_rounds(
  noise_multiplier: float, min_clients: int, shares: int, num_rounds: int
) -> Rounds:
  """Returns rounds of fewer honest shares than the noise was planned for.

  A share is a share: noise of m of n clients has sqrt(m / n) of the standard
  deviation, for bins that were made for n of them.
  """
  short = noise_multiplier * math.sqrt(shares / min_clients)
  return Rounds(short, shares, num_rounds)


def total_epsilon(
  epsilon_at: Callable[[float], float],
  delta: float,
  *,
  parts: Sequence[Rounds],
  dim: int,
) -> float:
  """Adds the cost of discrete noise to the epsilon of Gaussian mechanisms.

  Every term is a sum over rounds, and so over parts.

  Args:
    epsilon_at: maps a delta to the epsilon of the Gaussian mechanisms of all
      rounds, and of whatever else is composed with them.
    delta: of the whole, in (0, 1).
    parts: all rounds, by the honest shares in their sums.
    dim: D, coordinates of the rotated vector.

  Returns:
    float; infinite if `delta` is too small for the distance between drawn and
    ideal noise.
  """
  all_rounds = sum(part.num_rounds for part in parts)
  added = distance = 0.0
  for part in parts:
    loss = distributed_noise.privacy_loss_per_coordinate(part.min_clients)
    added += part.num_rounds * dim * loss
    distance += part.num_rounds * distributed_noise.sampling_distance(
      part.min_clients, dim
    )

  def epsilon_left(left):
    return epsilon_at(left * math.exp(-added / 2.0)) + added

  rare = _RARE_SHARE * delta
  by_factor = math.inf
  if delta - distance - rare > 0.0:
    loss = sum(
      table_loss.table_loss(
        noise_multiplier=part.noise_multiplier,
        min_clients=part.min_clients,
        num_rounds=part.num_rounds,
        dim=dim,
        # The same distance from the centre in all of them.
        rare=rare * (part.num_rounds / all_rounds),
      )
      for part in parts
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

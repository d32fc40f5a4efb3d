# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The cost of the sampler's table, as a factor of probabilities.

Noise is drawn from a table whose probabilities are off by at most 2 u, u being
2**-`discrete_gaussian.PROBABILITY_BITS`. Counted as total variation on both
sides of the definition of (eps, delta), these errors cost (1 + exp(eps)) eta in
delta. Here the side with exp(eps) is a factor instead, so that large epsilons
stay finite.

Notation: n clients, T rounds, D coordinates, s the standard deviation of one
draw; P and Q two neighbouring trainings, P' and Q' the same with ideal discrete
Gaussians in place of the table's.

Lemma. For an integer j at most t s sqrt(n) from the centre M of a coordinate,
Q(j) >= Q'(j) (1 - r(t)) with, for any 0 < l <= 1 and m = n - l (n - 1)::

  r(t) = 1.001 n a^l sqrt(n / m) exp(l t^2 / (2 m)),
  a = 2 u sqrt(2 pi) s, up to a factor of 1 + 1e-4.

Proof. The table has at least 1 - w(x) of the ideal probability p'(x) of an
integer x, w = min(1, 2 u / p'(x)), so that at least 1 - E[sum of the w(X_i)]
of Q'(j) is left, in the mean over ideal draws X that add up to j. For a single
draw, x at v from its own centre, that law is within 1.0001 of
N(v; (j - M) / n, s^2 (1 - 1 / n)) by the theorem of `distributed_noise`. And
w <= (2 u / p'(x))^l <= a^l exp(l v^2 / (2 s^2)). The product is a Gaussian of
variance above s^2 / 2, so that its sum over the integers x is its integral,
within 1e-7. That integral is a^l sqrt(n / m) exp(l t^2 / (2 m)) at most.

Theorem. If T Gaussian mechanisms of `effective_noise_multiplier` are
(eps, delta), then for every t what is released is (eps + T D tau + loss,
exp(T D tau / 2) delta + T eta + 2.01 T D exp(-t^2 / 2)), eta being
`sampling_distance` of a round and tau as in `distributed_noise`.

Proof. Take the clients' rounding to the grid as part of what is released. Let G
hold the releases in which all coordinates are within t s sqrt(n) of their
centres under P. A discrete Gaussian's moments are a Gaussian's within
(1 + e_1) / (1 - e_1), so that P'(not G) <= 2.01 T D exp(-t^2 / 2). For a set A,
P(A) <= T eta + P'(not G) + P'(A and G), and the last is at most
exp(eps + T D tau) Q'(A and G) + exp(T D tau / 2) delta. In G coordinate d is
within (t + g_d) s sqrt(n) of its centre under Q, where the squares of the g_d
of a round add up to 1 / z^2 at most: that is the clip norm. By the lemma
Q'(A and G) <= exp(loss) Q(A) with -log(1 - r(t + g_d)) added up over rounds and
coordinates. (t + g)^2 <= (1 + q) t^2 + (1 + 1 / q) g^2 for any q > 0, and as
exp is convex, the sum over d is largest with all of 1 / z^2 in one of them:
the r(t + g_d) of a round add up to at most::

  r(t sqrt(1 + q)) (D - 1 + exp(l (1 + 1 / q) / (2 m z^2))).

No TFF here: everything is Python numbers.
"""

import itertools
import math

from tff_autotune_secagg.numerics.privacy import discrete_gaussian

_LOG_A = (
  (1 - discrete_gaussian.PROBABILITY_BITS) * math.log(2.0)
  + math.log(2.0 * math.pi * float(discrete_gaussian.VARIANCE_BINS)) / 2.0
  + 1e-4
)

# How many values of l, and how many powers of two for q, are tried.
_NUM_EXPONENTS = 100
_NUM_STRETCHES = 10


def log_missing(stddevs: float, min_clients: int, exponent: float) -> float:
  """Returns the logarithm of r(t).

  Args:
    stddevs: t, positive.
    min_clients: n, fewest clients in a sum.
    exponent: l, in (0, 1].
  """
  m = min_clients - exponent * (min_clients - 1)
  found = math.log(1.001 * min_clients) + math.log(min_clients / m) / 2.0
  return found + exponent * (_LOG_A + stddevs**2 / (2.0 * m))


def table_loss(
  *,
  noise_multiplier: float,
  min_clients: int,
  num_rounds: int,
  dim: int,
  rare: float,
) -> float:
  """Returns the term that the table adds to epsilon.

  Args:
    noise_multiplier: z, positive.
    min_clients: n, fewest clients in a sum.
    num_rounds: T, of all sums together.
    dim: D, coordinates of the rotated vector.
    rare: positive float, 2.01 T D exp(-t^2 / 2): the term of delta beside
      T times `distributed_noise.sampling_distance`.

  Returns:
    float, positive; infinite if `rare` is too small for so few clients.
  """
  stddevs = math.sqrt(2.0 * math.log(2.01 * num_rounds * dim / rare))
  balanced = 1.0 / (noise_multiplier * stddevs)
  choices = itertools.product(
    range(1, _NUM_EXPONENTS + 1), range(_NUM_STRETCHES)
  )
  least = math.inf
  for number, halvings in choices:
    exponent = number / _NUM_EXPONENTS
    stretch = balanced * 0.5**halvings
    m = min_clients - exponent * (min_clients - 1)
    longest = exponent * (1.0 + 1.0 / stretch) / (2.0 * m * noise_multiplier**2)
    # The logarithm of a bound of D - 1 + exp(longest).
    log_dim = max(longest, math.log(dim)) + math.log(2.0)
    stretched = stddevs * math.sqrt(1.0 + stretch)
    log_sum = log_missing(stretched, min_clients, exponent) + log_dim
    least = min(least, log_sum)
  if least > math.log(0.5):
    return math.inf
  # -log(1 - x) <= x / (1 - x), for each coordinate and for their sum.
  missing = math.exp(least)
  return num_rounds * missing / (1.0 - missing)

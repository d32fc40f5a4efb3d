# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Modulus, mechanism and epsilon of private rounds, before any training.

For `distributed_dp.distributed_dp_aggregator`; the command is `planner`, with
`--noise_multiplier`.
"""

import collections.abc
import functools
import math
import numbers
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import dp_accounting

from tff_autotune_secagg import _checks
from tff_autotune_secagg.numerics import mask_keys
from tff_autotune_secagg.numerics.privacy import accounting
from tff_autotune_secagg.numerics.privacy import distributed_noise
from tff_autotune_secagg.numerics.rotation import block_sample
from tff_autotune_secagg.numerics.rounding import quantization
from tff_autotune_secagg.stages import rotate

_MAX_ROUNDS = 2**30


def plan_distributed_dp_modulus(
  *,
  num_clients: int,
  noise_multiplier: float,
  min_clients: int,
  dim: int,
  alignment: float = 1.0,
  sampled_fraction: float = 1.0,
) -> int:
  """Returns the smallest power of two with room for a noised sum.

  Half a period is 4 standard deviations of a coordinate of the rotated sum:
  6e-5 of the coordinates wrap. Wrapping costs accuracy, never privacy.

  Args:
    num_clients: int in `min_clients` .. 10**15, the largest cohort.
    noise_multiplier: as in `distributed_dp_aggregator`.
    min_clients: as in `distributed_dp_aggregator`.
    dim: int in 1 .. 10**15, values of the model update.
    alignment: 0 to 1, norm of the sum over that of as many parallel updates of
      full length: the largest measured `alignment_bound` of several early
      rounds; 1, the worst case, without an earlier training.
    sampled_fraction: as in `distributed_dp_aggregator`. In a sample the sum is
      longer in each coordinate, and may need more bits.

  Returns:
    A power of two; `log2` of it is the bits per coordinate.

  Raises:
    TypeError, ValueError: an argument is of the wrong kind or out of range, or
      no modulus up to 2**30 has room.
  """
  noise_multiplier, min_clients = check_noise(noise_multiplier, min_clients)
  return smallest_modulus(
    num_clients=_checks.check_count('num_clients', num_clients, min_clients),
    noise_multiplier=noise_multiplier,
    min_clients=min_clients,
    dim=_checks.check_count('dim', dim),
    alignment=_checks.check_float(
      'alignment', alignment, at_least=0, at_most=1
    ),
    sampled_fraction=check_sampled_fraction(sampled_fraction),
  )


def plan_sampled_fraction(
  *,
  num_clients: int,
  noise_multiplier: float,
  dim: int,
  alignment: float,
  excess_error: float = 0.05,
) -> float:
  """Returns the share of coordinates to send for a given loss of accuracy.

  Sending m of D coordinates adds D / m - 1 times the squared norm of the sum to
  its squared error, where noise has D z^2 c^2. The norm is alignment n c.
  With noise over signal N = D z^2 / (alignment n)^2 the added share is
  `excess_error` where m / D = 1 / (1 + excess_error N).

  Limits:
    The signal is not known before a training, and is largest in its first
    rounds: take an alignment that is too large rather than one too small. The
    formula is for D / m that is a whole number; between two of them the error
    is up to a fourth of the squared norm of the sum more. The noise is that of
    `num_clients`; if they are more than `min_clients` there is more noise, and
    the added share is less.

  Args:
    num_clients: int in 2 .. 10**15, n, clients in a round.
    noise_multiplier: as in `distributed_dp_aggregator`.
    dim: int in 1 .. 10**15, values of the model update.
    alignment: above 0, at most 1: norm of the sum over that of as many parallel
      updates of full length: the largest measured `alignment_bound` of several
      early rounds; 1, for more bytes and less error, without an earlier
      training.
    excess_error: above 0, at most 1: squared error that the sampling adds, over
      that of the noise.

  Returns:
    float in (0, 1], for `sampled_fraction`; not below what 1,024 coordinates
    are of all, as no fewer are sent.

  Raises:
    TypeError, ValueError: an argument is of the wrong kind or out of range.
  """
  num_clients = _checks.check_count('num_clients', num_clients, 2)
  noise_multiplier = check_noise_multiplier(noise_multiplier)
  width = rotated_dim(_checks.check_count('dim', dim))
  alignment = _checks.check_float('alignment', alignment, above=0, at_most=1)
  excess_error = _checks.check_float(
    'excess_error', excess_error, above=0, at_most=1
  )
  signal = (alignment * num_clients / noise_multiplier) ** 2
  fraction = 1.0 / (1.0 + excess_error * width / max(signal, 1e-300))
  return max(fraction, block_sample.size(0.0, width) / width)


def distributed_dp_event(
  *,
  noise_multiplier: float,
  min_clients: int,
  num_rounds: int,
  dim: int,
  num_short_rounds: Optional[Mapping[int, int]] = None,
) -> dp_accounting.DpEvent:
  """Returns the Gaussian mechanisms that rounds are a post-processing of.

  Limits:
    Small terms are left out, as no event can express them; they multiply
    probabilities: T D tau in epsilon and T D tau / 2 in the logarithm of delta,
    and the errors of the sampler's table. `distributed_dp_epsilon` adds them to
    the epsilon of an accountant. For 5 to 10,000 clients and a million values
    T D tau is at most 1.4e-6 T.

  Args:
    noise_multiplier: as in `distributed_dp_aggregator`.
    min_clients: as in `distributed_dp_aggregator`.
    num_rounds: int in 1 .. 2**30, the most rounds of one client; 0 if there are
      `num_short_rounds` alone.
    dim: int in 1 .. 10**15, values of the model update.
    num_short_rounds: as in `distributed_dp_epsilon`, of at least 2 shares.

  Returns:
    `num_rounds` Gaussian mechanisms of noise multiplier z sqrt(1 - 1 / n), and
    for m honest shares of z sqrt(m / n) sqrt(1 - 1 / m).

  Raises:
    TypeError, ValueError: an argument is of the wrong kind or out of range.
  """
  _checks.check_count('dim', dim)
  parts = _all_rounds(
    noise_multiplier, min_clients, num_rounds, num_short_rounds, fewest_shares=2
  )
  events = [
    dp_accounting.SelfComposedDpEvent(
      dp_accounting.GaussianDpEvent(
        distributed_noise.effective_noise_multiplier(
          part.noise_multiplier, part.min_clients
        )
      ),
      part.num_rounds,
    )
    for part in parts
  ]
  if len(events) == 1:
    return events[0]
  return dp_accounting.ComposedDpEvent(events)


def distributed_dp_epsilon(
  *,
  noise_multiplier: float,
  min_clients: int,
  num_rounds: int,
  dim: int,
  delta: float,
  gaussian_epsilon_fn: Optional[Callable[[float], float]] = None,
  num_short_rounds: Optional[Mapping[int, int]] = None,
) -> float:
  """Returns epsilon of all rounds, with everything that adds to it.

  Args:
    noise_multiplier: as in `distributed_dp_aggregator`.
    min_clients: as in `distributed_dp_aggregator`.
    num_rounds: int in 1 .. 2**30, the most rounds of one client whose sums had
      at least `min_clients` honest shares of the noise; 0 if there are
      `num_short_rounds` alone.
    dim: int in 1 .. 10**15, values of the model update.
    delta: in (0, 1).
    gaussian_epsilon_fn: epsilon of `distributed_dp_event`, and of whatever else
      is composed with it, at a delta, such as `get_epsilon` of an accountant of
      `dp_accounting`; None for the exact epsilon of the event alone.
    num_short_rounds: further rounds of the client, whose sums were unmasked
      with fewer honest shares, that of the client included: honest shares of a
      sum, 1 .. `min_clients` - 1, to the number of such rounds. The aggregator
      refuses a round of too few clients and returns zeros, but whoever unmasked
      its sum has seen it.

  Returns:
    float. A large epsilon promises nothing: at 10, something unlikely can
    become 20,000 times as likely. The result is infinite above 1e6, or if
    `delta` is too small for noise from a table of 83-bit probabilities, or for
    so few clients that this table may decide, or if a round had the client's
    own share alone.

  Raises:
    TypeError, ValueError: an argument is of the wrong kind or out of range, or
      `gaussian_epsilon_fn` returns no epsilon.
  """
  parts = _all_rounds(
    noise_multiplier, min_clients, num_rounds, num_short_rounds
  )
  dim = _checks.check_count('dim', dim)
  delta = _checks.check_float('delta', delta, above=0, below=1)
  _checks.check_function('gaussian_epsilon_fn', gaussian_epsilon_fn)
  separation = math.hypot(*(part.separation() for part in parts))
  if math.isinf(separation):
    return math.inf
  if gaussian_epsilon_fn is None:
    gaussian_epsilon_fn = functools.partial(
      accounting.gaussian_epsilon, separation=separation
    )
  return accounting.total_epsilon(
    functools.partial(_checked_epsilon, gaussian_epsilon_fn),
    delta,
    parts=parts,
    dim=rotated_dim(dim),
  )


def _all_rounds(
  noise_multiplier, min_clients, num_rounds, num_short_rounds, fewest_shares=1
) -> List[accounting.Rounds]:
  """Returns the rounds by their honest shares, once all are checked."""
  noise_multiplier, min_clients = check_noise(noise_multiplier, min_clients)
  num_rounds = _checks.check_int(
    'num_rounds', num_rounds, 0 if num_short_rounds else 1, _MAX_ROUNDS
  )
  parts = []
  if num_rounds:
    parts.append(accounting.Rounds(noise_multiplier, min_clients, num_rounds))
  if num_short_rounds is None:
    return parts
  _checks.check_instance(
    'num_short_rounds',
    num_short_rounds,
    collections.abc.Mapping,
    'a mapping, from the honest shares in a sum to the number of such rounds',
  )
  for shares, count in num_short_rounds.items():
    shares = _checks.check_int(
      'shares in num_short_rounds', shares, fewest_shares, min_clients - 1
    )
    count = _checks.check_int(
      'rounds in num_short_rounds', count, 1, _MAX_ROUNDS
    )
    parts.append(
      accounting.short_rounds(noise_multiplier, min_clients, shares, count)
    )
  return parts


def _checked_epsilon(epsilon_fn: Callable[[float], float], delta: float):
  """Returns what a user's function returns, if it can be an epsilon."""
  epsilon = epsilon_fn(delta)
  rule = '`gaussian_epsilon_fn` must return a number of at least 0'
  found = f'found {epsilon!r:.40} ({type(epsilon).__name__}) at {delta:g}.'
  if not isinstance(epsilon, numbers.Real) or isinstance(epsilon, bool):
    raise TypeError(f'{rule}, {found}')
  if not epsilon >= 0.0:  # NaN is not. An accountant may find infinity.
    raise ValueError(f'{rule}, {found}')
  return epsilon


def rows(
  *,
  num_values: int,
  num_clients: int,
  min_clients: int,
  noise_multipliers: Sequence[float],
  num_rounds: Sequence[int],
  delta: float,
  alignment: float,
  excess_error: Optional[float] = None,
) -> List[Dict[str, Any]]:
  """Returns what each noise multiplier gives and costs, for the planner.

  Args:
    num_values: model size.
    num_clients: clients in a round.
    min_clients: as in `distributed_dp_aggregator`.
    noise_multipliers: z.
    num_rounds: rounds that one client takes part in.
    delta: in (0, 1).
    alignment: norm of the sum of clipped updates over that of as many parallel
      updates of full length, 0 to 1.
    excess_error: as in `plan_sampled_fraction`; None to send all coordinates.

  Returns:
    For each multiplier: `noise_multiplier`, `epsilons` (one for each of
    `num_rounds`), `modulus`, `bits`, `bytes_per_client` and
    `noise_to_signal`, squared norms in the model's coordinates; with an
    `excess_error` also `sampled_fraction`, `bits_per_value` of the model, and
    `bytes_with_keys`: with those of the masks, see `mask_keys.num_bytes`.

  Raises:
    TypeError, ValueError: an argument is of the wrong kind or out of range.
  """
  num_values = _checks.check_count('num_values', num_values)
  found = []
  for multiplier in noise_multipliers:
    multiplier, min_clients = check_noise(multiplier, min_clients)
    noise = dict(
      noise_multiplier=multiplier, min_clients=min_clients, dim=num_values
    )
    cohort = dict(num_clients=num_clients, alignment=alignment)
    sampled = {}
    if excess_error is not None:
      fraction = plan_sampled_fraction(
        noise_multiplier=multiplier,
        dim=num_values,
        excess_error=excess_error,
        **cohort,
      )
      sampled = dict(sampled_fraction=fraction)
    modulus = plan_distributed_dp_modulus(**cohort, **noise, **sampled)
    bits = quantization.num_bits(modulus)
    num_bytes = quantization.payload_bytes(
      sent_dim(num_values, sampled.get('sampled_fraction', 1.0)), bits
    )
    if sampled:
      sampled['bits_per_value'] = 8 * num_bytes / num_values
      sampled['bytes_with_keys'] = num_bytes + mask_keys.num_bytes(num_clients)
    energy = num_values * multiplier**2 * num_clients / min_clients
    signal = (float(alignment) * num_clients) ** 2
    found.append(
      dict(
        noise_multiplier=multiplier,
        epsilons=[
          distributed_dp_epsilon(num_rounds=rounds, delta=delta, **noise)
          for rounds in num_rounds
        ],
        modulus=modulus,
        bits=bits,
        bytes_per_client=num_bytes,
        noise_to_signal=energy / signal if signal else math.inf,
        **sampled,
      )
    )
  return found


def rotated_dim(dim: int) -> int:
  """Returns D, the coordinates that leave a client, for an update of `dim`.

  The clip bit counts as one more, whether there is one or not.
  """
  return rotate.width(dim + 1)


def sent_dim(dim: int, sampled_fraction: float) -> int:
  """Returns m, how many of D = `rotated_dim` coordinates are sent."""
  return block_sample.size(sampled_fraction, rotated_dim(dim))


def smallest_modulus(
  *,
  num_clients: int,
  noise_multiplier: float,
  min_clients: int,
  dim: int,
  alignment: float,
  sampled_fraction: float = 1.0,
) -> int:
  """Does `plan_distributed_dp_modulus` for arguments that were checked.

  Raises:
    ValueError: no modulus of 30 bits has room for the sum.
  """
  stddev = distributed_noise.sum_stddev_bins(
    num_clients=num_clients,
    noise_multiplier=noise_multiplier,
    min_clients=min_clients,
    dim=sent_dim(dim, sampled_fraction),
    alignment=alignment,
  )
  num_bits = quantization.num_bits(distributed_noise.smallest_modulus(stddev))
  if num_bits > _checks.MAX_BITS:
    raise ValueError(
      f'`noise_multiplier` {noise_multiplier:g} is too small for {num_clients}'
      f' clients: their sum needs a modulus of {num_bits} bits, more than'
      f' {_checks.MAX_BITS}. Raise `noise_multiplier`.'
    )
  return 2**num_bits


def check_sampled_fraction(value: float) -> float:
  """Returns `sampled_fraction` after its check."""
  return _checks.check_float('sampled_fraction', value, above=0, at_most=1)


def check_noise_multiplier(value: float) -> float:
  """Returns `noise_multiplier` after its check."""
  return _checks.check_float(
    'noise_multiplier', value, at_least=1e-4, at_most=1e3
  )


def check_noise(noise_multiplier: float, min_clients: int) -> Tuple[float, int]:
  """Returns both after their checks, alone and together."""
  noise_multiplier = check_noise_multiplier(noise_multiplier)
  min_clients = _checks.check_int('min_clients', min_clients, 2, 2**20)
  distributed_noise.max_squared_grid_norm(noise_multiplier, min_clients)
  return noise_multiplier, min_clients

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Distributed differential privacy: means with noise that clients share out.

The secure sum of a round is private by itself, whoever sees it. Each client
clips its update, rotates it and draws integers from a discrete Gaussian around
every coordinate; no client's noise is enough, that of `min_clients` is. The sum
is a post-processing of the Gaussian mechanism up to terms that are stated and
accounted for: `numerics.privacy.distributed_noise` has the theorem,
docs/differential_privacy.md what follows from it for a deployment.
"""

import collections.abc
import functools
from typing import Callable, Optional

import dp_accounting
import tensorflow as tf
import tensorflow_federated as tff

from tff_autotune_secagg import _checks
from tff_autotune_secagg.factories import distributed_dp
from tff_autotune_secagg.numerics.privacy import accounting
from tff_autotune_secagg.numerics.privacy import distributed_noise
from tff_autotune_secagg.stages import clip


@_checks.names_modulus
def distributed_dp_aggregator(
  *,
  noise_multiplier: float,
  min_clients: int,
  l2_norm_clip: Optional[float] = None,
  modulus: Optional[int] = None,
  seed: Optional[int] = None,
  client_seed_fn: Optional[Callable[[], tf.Tensor]] = None,
) -> tff.aggregators.UnweightedAggregationFactory:
  """Differentially private mean; TensorFlow's seeds are not fit to deploy it.

  By default a client's noise comes from a generator that TensorFlow seeds with
  32 bits for each process, which can be guessed. A simulation may use it; a
  deployment passes `client_seed_fn`.

  Takes the place of `tff.learning.ddp_secure_aggregator` as
  `model_aggregator=` of `build_unweighted_fed_avg`.

  At clients:
    The update is flattened, clipped, joined by the bit "my norm is at most the
    clip norm" if that adapts, and rotated. It is rounded to a fine grid, on
    which its norm is checked exactly. Integers are drawn from the discrete
    Gaussian of 1.4 bins around every coordinate and reduced modulo `modulus`. A
    client whose update is 0 or not finite sends noise around 0.
  At server:
    The sum is read around 0, divided by the number of clients and rotated back.
  Types:
    `value_type` is a structure of float16, bfloat16, float32 and float64
    tensors; the result has the same type and containers.
  State:
    `settings`, `clip_norm` (float32, units of values) and `inner`.
  Measurements:
    None of them depends on anything but the noised sums and the number of
    clients: `clip_norm` of the round; `noise_stddev`, that of a coordinate of
    the sum of `min_clients` updates, units of values; `share_within_clip_norm`
    (if the clip norm adapts), an estimate with noise; `num_clients`; `refused`,
    whether they were fewer than `min_clients`; `wrap_probability` of a
    coordinate; `smallest_modulus` that would have done; `noise_to_signal`,
    squared norm of the noise over that of the sum; `alignment`, norm of the sum
    over that of as many parallel updates of full length; `bits_per_coordinate`
    and `bytes_per_client`. In a refused round those read from the sum are 0.
  Secure signals:
    The residues, and a 1 of every client, whatever its update.

  Guarantees:
    For neighbours of which one has some client's update replaced by 0, rounds
    have the epsilon of `distributed_dp_epsilon`, given `min_clients` honest
    clients in each sum that is released. No state and no clip norm that a
    client is told weakens that. A round of fewer clients gives zeros and leaves
    the clip norm as it is.
  Limits:
    Who takes part is public, and how often a client takes part must be bounded
    by whoever selects it. Participants that collude with the server count as
    participants here, so that the secure aggregation itself must refuse sums
    below its threshold. Federated averaging's own metrics, such as the training
    loss, are exact sums outside of this.

  Args:
    noise_multiplier: z, 1e-4 to 1000: the noise of a sum has a standard
      deviation of z times the clip norm in every coordinate, as in the central
      Gaussian mechanism.
    min_clients: int in 2 .. 2**20: the fewest honest clients whose noise a
      released sum can hold. That is the threshold of the secure aggregation,
      below which no sum is unmasked, less the clients that may collude with the
      server; not the expected cohort.
    l2_norm_clip: norm that updates are clipped to, 1e-15 to 1e15, units of
      values; None for one that starts at 0.1 and approaches the median norm, by
      a bit of each client inside the noised vector.
    modulus: int in 2 .. 2**30 with room for the noise of `min_clients`; None
      for the smallest power of two with room for the sum of `min_clients`
      updates even if they are parallel. For larger cohorts see
      `plan_distributed_dp_modulus`.
    seed: of the rotations, which are public; int of 0 .. 2**63 - 1, or None to
      draw one in every `initialize`.
    client_seed_fn: None, or a function without arguments that returns an int64
      tensor [2], 128 bits of entropy for one client's noise in one round, from
      TensorFlow operations: it is traced into the client's computation. They
      must be stateful, or TensorFlow may run them once for all rounds.

  Returns:
    A `tff.aggregators.UnweightedAggregationFactory`.

  Raises:
    TypeError, ValueError: an argument is of the wrong kind or out of range.
      `client_seed_fn` is called by `create`, which raises if it returns
      something else.

  References:
    Andrew et al. (2021, arXiv:1905.03871); Kairouz, Liu and Steinke (2021,
    arXiv:2102.06387); Peikert (2010, CRYPTO).
  """
  noise_multiplier, min_clients = _check_noise(noise_multiplier, min_clients)
  if l2_norm_clip is not None:
    l2_norm_clip = _checks.check_float(
      'l2_norm_clip',
      l2_norm_clip,
      at_least=clip.MIN_CLIP_NORM,
      at_most=clip.MAX_CLIP_NORM,
    )
  if modulus is not None:
    modulus = _checks.check_modulus(modulus)
    _check_room(modulus, min_clients)
  _check_function('client_seed_fn', client_seed_fn)
  return distributed_dp.DistributedDpFactory(
    noise_multiplier=noise_multiplier,
    min_clients=min_clients,
    l2_norm_clip=l2_norm_clip,
    modulus=modulus,
    seed=_checks.check_seed(seed),
    client_seed_fn=client_seed_fn,
  )


def plan_distributed_dp_modulus(
  *,
  num_clients: int,
  noise_multiplier: float,
  min_clients: int,
  dim: int,
  alignment: float = 1.0,
) -> int:
  """Returns the smallest power of two with room for a noised sum.

  Half a period is 4 standard deviations of a coordinate of the rotated sum:
  6e-5 of the coordinates wrap. Wrapping costs accuracy, never privacy.

  Args:
    num_clients: int of at least `min_clients`, the largest cohort.
    noise_multiplier: as in `distributed_dp_aggregator`.
    min_clients: as in `distributed_dp_aggregator`.
    dim: int of at least 1, values of the model update.
    alignment: 0 to 1, norm of the sum over that of as many parallel updates of
      full length, such as the measurement `alignment` of earlier rounds; 1 is
      the worst case.

  Returns:
    A power of two; `log2` of it is the bits per coordinate.

  Raises:
    TypeError, ValueError: an argument is of the wrong kind or out of range, or
      no modulus up to 2**30 has room.
  """
  noise_multiplier, min_clients = _check_noise(noise_multiplier, min_clients)
  return distributed_dp.plan_modulus(
    num_clients=_checks.check_int('num_clients', num_clients, min_clients),
    noise_multiplier=noise_multiplier,
    min_clients=min_clients,
    dim=_checks.check_int('dim', dim, 1),
    alignment=_checks.check_float(
      'alignment', alignment, at_least=0, at_most=1
    ),
  )


def distributed_dp_event(
  *, noise_multiplier: float, min_clients: int, num_rounds: int, dim: int
) -> dp_accounting.DpEvent:
  """Returns the Gaussian mechanisms that rounds are a post-processing of.

  Limits:
    Up to small terms that no event can express, as they multiply probabilities:
    T D tau in epsilon and T D tau / 2 in the logarithm of delta, and the errors
    of the sampler's table. `distributed_dp_epsilon` adds them to what an
    accountant says. For 5 to 10,000 clients and a million values T D tau is at
    most 1.4e-6 T.

  Args:
    noise_multiplier: as in `distributed_dp_aggregator`.
    min_clients: as in `distributed_dp_aggregator`.
    num_rounds: int in 1 .. 2**30, the most that one client takes part in.
    dim: int of at least 1, values of the model update.

  Returns:
    `num_rounds` Gaussian mechanisms of noise multiplier z sqrt(1 - 1 / n).

  Raises:
    TypeError, ValueError: an argument is of the wrong kind or out of range.
  """
  noise_multiplier, min_clients = _check_noise(noise_multiplier, min_clients)
  num_rounds = _checks.check_int('num_rounds', num_rounds, 1, 2**30)
  _checks.check_int('dim', dim, 1)
  multiplier = distributed_noise.effective_noise_multiplier(
    noise_multiplier, min_clients
  )
  return dp_accounting.SelfComposedDpEvent(
    dp_accounting.GaussianDpEvent(multiplier), num_rounds
  )


def distributed_dp_epsilon(
  *,
  noise_multiplier: float,
  min_clients: int,
  num_rounds: int,
  dim: int,
  delta: float,
  gaussian_epsilon_fn: Optional[Callable[[float], float]] = None,
) -> float:
  """Returns epsilon of all rounds, with everything that adds to it.

  Args:
    noise_multiplier: as in `distributed_dp_aggregator`.
    min_clients: as in `distributed_dp_aggregator`.
    num_rounds: int in 1 .. 2**30, the most that one client takes part in.
    dim: int of at least 1, values of the model update.
    delta: in (0, 1).
    gaussian_epsilon_fn: epsilon of `distributed_dp_event`, and of whatever else
      is composed with it, at a delta, such as `get_epsilon` of an accountant of
      `dp_accounting`; None for that of the event alone, exactly.

  Returns:
    float. A large one is a number too, and no promise: at 10 what was unlikely
    is 20,000 times as likely. Infinite above 1e6, or if `delta` is below what
    the drawing of noise from a table of 83-bit probabilities allows, or for so
    few clients that this table may decide.

  Raises:
    TypeError, ValueError: an argument is of the wrong kind or out of range.
  """
  noise_multiplier, min_clients = _check_noise(noise_multiplier, min_clients)
  num_rounds = _checks.check_int('num_rounds', num_rounds, 1, 2**30)
  dim = _checks.check_int('dim', dim, 1)
  delta = _checks.check_float('delta', delta, above=0, below=1)
  _check_function('gaussian_epsilon_fn', gaussian_epsilon_fn)
  multiplier = distributed_noise.effective_noise_multiplier(
    noise_multiplier, min_clients
  )
  if gaussian_epsilon_fn is None:
    gaussian_epsilon_fn = functools.partial(
      accounting.gaussian_epsilon, separation=num_rounds**0.5 / multiplier
    )
  return accounting.total_epsilon(
    gaussian_epsilon_fn,
    delta,
    noise_multiplier=noise_multiplier,
    min_clients=min_clients,
    num_rounds=num_rounds,
    dim=distributed_dp.rotated_dim(dim),
  )


def _check_noise(noise_multiplier, min_clients):
  """Returns both after their checks, alone and together."""
  noise_multiplier = _checks.check_float(
    'noise_multiplier', noise_multiplier, at_least=1e-4, at_most=1e3
  )
  min_clients = _checks.check_int('min_clients', min_clients, 2, 2**20)
  distributed_noise.max_squared_grid_norm(noise_multiplier, min_clients)
  return noise_multiplier, min_clients


def _check_function(name, value):
  """Raises TypeError unless the argument is a function or None."""
  if value is not None:
    _checks.check_instance(
      name, value, collections.abc.Callable, 'a function or None'
    )


def _check_room(modulus, min_clients):
  """Raises ValueError if the noise of `min_clients` alone needs more."""
  needed = distributed_noise.smallest_modulus(
    distributed_noise.noise_stddev_bins(min_clients)
  )
  if modulus < needed:
    raise ValueError(
      f'`modulus` {modulus} is too small for `min_clients` {min_clients}: their'
      f' noise alone needs {needed}. Raise `modulus`, or leave it out.'
      + _checks.modulus_hint(modulus)
    )

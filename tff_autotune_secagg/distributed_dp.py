# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Distributed differential privacy: means with noise that clients share out.

The secure sum of a round is private by itself, whoever sees it. Each client
clips its update, rotates it and draws integers from a discrete Gaussian around
every coordinate. The noise of one client is not enough; the noise of
`min_clients` is. The sum is a post-processing of the Gaussian mechanism up to
terms that are stated and accounted for. `numerics.privacy.distributed_noise`
has the theorem, `distributed_dp_planning` epsilon and the modulus, and
docs/differential_privacy.md what follows for a deployment.
"""

from typing import Callable, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_autotune_secagg import _checks
from tff_autotune_secagg import distributed_dp_planning
from tff_autotune_secagg.factories import chain
from tff_autotune_secagg.factories import mean
from tff_autotune_secagg.factories import modular_sum
from tff_autotune_secagg.factories import value_types
from tff_autotune_secagg.numerics.privacy import clip_bit
from tff_autotune_secagg.numerics.privacy import distributed_noise
from tff_autotune_secagg.numerics.rotation import block_sample
from tff_autotune_secagg.stages import clip
from tff_autotune_secagg.stages import flatten
from tff_autotune_secagg.stages import rotate
from tff_autotune_secagg.stages import sample
from tff_autotune_secagg.stages import share_noise


@_checks.names_modulus
def distributed_dp_aggregator(
  *,
  noise_multiplier: float,
  min_clients: int,
  l2_norm_clip: Optional[float] = None,
  modulus: Optional[int] = None,
  expected_clients: Optional[int] = None,
  seed: Optional[int] = None,
  client_seed_fn: Optional[Callable[[], tf.Tensor]] = None,
  allow_guessable_noise: bool = False,
  sampled_fraction: float = 1.0,
) -> tff.aggregators.UnweightedAggregationFactory:
  """Differentially private mean, with noise that the clients add.

  Takes the place of `tff.learning.ddp_secure_aggregator` as
  `model_aggregator=` of `build_unweighted_fed_avg`.

  At clients:
    The update is flattened and clipped. If the clip norm adapts, the bit "my
    norm is at most the clip norm" is appended. The vector is rotated, a public
    sample of its coordinates is taken if `sampled_fraction` asks for one, and
    rounded to a fine grid, on which its norm is checked exactly. Integers are
    drawn from the discrete Gaussian of 1.4 bins around every coordinate and
    reduced modulo `modulus`. A client whose update is 0 or not finite sends
    noise around 0.
  At server:
    The sum is read around 0, divided by the number of clients, put back in its
    place if it is of a sample, and rotated back.
  Types:
    `value_type` is a structure of float16, bfloat16, float32 and float64
    tensors; the result has the same type and containers.
  State:
    `settings`, `clip_norm` (float32, units of values) and `inner`; with a
    sample, its public seed inside.
  Measurements:
    They depend on the noised sums and the number of clients alone: `clip_norm`
    of the round; `noise_stddev`, that of a coordinate of the sum of
    `min_clients` updates, however many there were, units of values;
    `share_within_clip_norm` (if the clip norm adapts), an estimate with noise;
    `num_clients`; `refused`, whether the round had fewer than `min_clients`;
    `wrap_probability` of a coordinate; `modulus_too_small`, whether that is
    above 1e-3, which takes 2 % of the sum; `smallest_modulus` that would have
    done; `noise_to_signal`, squared norm of the noise over that of the sum;
    `alignment`, norm of the sum over that of as many parallel updates of full
    length; `alignment_bound`, what it is at most, by two standard errors of the
    fit; `signal_hidden`, whether the noise hides the sum: then
    `noise_to_signal` is a lower bound, of sqrt(D / 2) or less (of
    (D / m) sqrt(m / 2) or less if m of the D rotated coordinates are sent), and
    `alignment` tells nothing; `bits_per_coordinate` and `bytes_per_client`;
    of a sample, `sampling_to_signal`, the mean squared error that it makes,
    over the squared norm of the sum. In a refused round the measurements of the
    sum are 0.
  Secure signals:
    The residues, and a 1 of every client, whatever its update.

  Guarantees:
    Rounds have the epsilon of `distributed_dp_epsilon`, given `min_clients`
    honest clients in each sum that is released. Neighbours differ in one
    client, whose update one of them replaces by 0. No state and no clip norm
    that a client is told weakens the guarantee. A round of fewer clients gives
    zeros and leaves the clip norm as it is.
  Limits:
    Who takes part is public, and how often a client takes part must be bounded
    by whoever selects it. Participants that collude with the server count as
    participants here, so the secure aggregation itself must refuse sums below
    its threshold. Federated averaging's own metrics, such as the training loss,
    are exact sums that no noise covers: `drop_metrics` leaves them out. The
    secure sum must be one of residues: how often an integer sum wraps tells
    more than the theorem covers. What it returns is a mean, and `create`
    refuses to be what a mean of TFF or of this package divides once more.

  Args:
    noise_multiplier: z, 1e-4 to 1000: the noise of a sum has a standard
      deviation of z times the clip norm in every coordinate, as in the central
      Gaussian mechanism.
    min_clients: int in 2 .. 2**20: the fewest honest clients whose noise a
      released sum can hold. This is not the expected cohort. It is the
      threshold of the secure aggregation, below which no sum is unmasked, less
      the clients that may collude with the server.
    l2_norm_clip: norm that updates are clipped to, 1e-15 to 1e15, units of
      values; None for a norm that starts at 0.1 and approaches the median norm,
      by a bit of each client inside the noised vector.
    modulus: int in 2 .. 2**30 with room for the noise of the clients; None for
      the smallest power of two with room for the sum of `expected_clients`
      updates even if they are parallel. `plan_distributed_dp_modulus` finds a
      smaller one for updates that are not.
    expected_clients: int in `min_clients` .. 2**20, the largest cohort that the
      default of `modulus` has room for; None for `min_clients`. Sums of more
      clients wrap, which costs accuracy and no privacy, and is measured. Beside
      a `modulus` it decides nothing, but the noise of so many clients must have
      room.
    seed: of the rotations, which are public; int of 0 .. 2**63 - 1, or None to
      draw one in every `initialize`. A saved state brings its own, which wins.
    client_seed_fn: a function without arguments that returns an int64 tensor
      [2], 128 bits of entropy for one client's noise in one round, from
      TensorFlow operations: it is traced into the client's computation. The
      seed must come from a stateful operation, or it would be the same in all
      rounds. None for 128 bits of the operating system's entropy, which Linux
      has; a client without it fails.
    allow_guessable_noise: True in simulations and tests only, where nobody's
      data is to be hidden. Then `client_seed_fn` may return what it likes, and
      None is for TensorFlow's own generator: 32 bits for each process, which
      whoever sees the released sums can find by trying.
    sampled_fraction: above 0, at most 1: the share of the rotated coordinates
      that is sent, but 1,024 of them at least. Clip norm, noise and epsilon are
      those of 1; the sampling adds (1 / sampled_fraction - 1) times the squared
      norm of the sum to the squared error. `plan_sampled_fraction` finds the
      one for a given loss.

  Returns:
    A `tff.aggregators.UnweightedAggregationFactory`.

  Raises:
    TypeError, ValueError: an argument is of the wrong kind or out of range.
      `client_seed_fn` is called by `create`, which raises if it returns
      something else or, unless `allow_guessable_noise`, the same in all rounds.

  References:
    Andrew et al. (2021, arXiv:1905.03871); Kairouz, Liu and Steinke (2021,
    arXiv:2102.06387); Peikert (2010, CRYPTO).
  """
  noise_multiplier, min_clients = distributed_dp_planning.check_noise(
    noise_multiplier, min_clients
  )
  if l2_norm_clip is not None:
    l2_norm_clip = _checks.check_float(
      'l2_norm_clip',
      l2_norm_clip,
      at_least=clip.MIN_CLIP_NORM,
      at_most=clip.MAX_CLIP_NORM,
    )
  if expected_clients is not None:
    expected_clients = _checks.check_int(
      'expected_clients', expected_clients, min_clients, 2**20
    )
  if modulus is not None:
    modulus = _checks.check_modulus(modulus)
    _check_room(modulus, 'min_clients', min_clients)
    if expected_clients is not None:
      _check_room(modulus, 'expected_clients', expected_clients)
  _checks.check_function('client_seed_fn', client_seed_fn)
  return DistributedDpFactory(
    noise_multiplier=noise_multiplier,
    min_clients=min_clients,
    l2_norm_clip=l2_norm_clip,
    modulus=modulus,
    expected_clients=expected_clients,
    seed=_checks.check_seed(seed),
    client_seed_fn=client_seed_fn,
    sampled_fraction=distributed_dp_planning.check_sampled_fraction(
      sampled_fraction
    ),
    allow_guessable_noise=_checks.check_bool(
      'allow_guessable_noise', allow_guessable_noise
    ),
  )


class DistributedDpFactory(tff.aggregators.UnweightedAggregationFactory):
  """Mean with noise of the clients; see `distributed_dp_aggregator`."""

  def __init__(
    self,
    *,
    noise_multiplier: float,
    min_clients: int,
    l2_norm_clip: Optional[float],
    modulus: Optional[int],
    seed: Optional[int],
    client_seed_fn: Optional[Callable[[], tf.Tensor]],
    sampled_fraction: float = 1.0,
    expected_clients: Optional[int] = None,
    allow_guessable_noise: bool = False,
  ):
    """Initializes the factory.

    Args:
      noise_multiplier: as in `distributed_dp_aggregator`, like all that follow;
        checked by the caller.
      min_clients: see there.
      l2_norm_clip: see there.
      modulus: see there; here any modulus that residues can have.
      seed: see there.
      client_seed_fn: see there.
      sampled_fraction: see there.
      expected_clients: see there.
      allow_guessable_noise: see there.
    """
    self._noise = dict(
      noise_multiplier=noise_multiplier, min_clients=min_clients
    )
    self._l2_norm_clip = l2_norm_clip
    self._modulus = modulus
    self._seed = seed
    self._sampled_fraction = sampled_fraction
    self._expected_clients = expected_clients or min_clients
    self._seeds = dict(
      client_seed_fn=client_seed_fn,
      allow_guessable_noise=allow_guessable_noise,
    )

  def create(self, value_type) -> tff.templates.AggregationProcess:
    """Creates the process.

    Args:
      value_type: structure of float tensors of defined shape.

    Returns:
      A `tff.templates.AggregationProcess`.

    Raises:
      TypeError: `value_type` holds something else.
      ValueError: `value_type` holds not a single number; `modulus` is None
        and no modulus has room for the sum; a mean factory calls this, which
        would divide the mean once more; or `client_seed_fn` returns the same in
        all rounds.
    """
    mean.refuse_mean_around('distributed_dp_aggregator')
    value_types.check_floats(value_type)
    dim = sum(
      s.shape.num_elements() for s in value_types.leaf_specs(value_type)
    )
    if not dim:
      raise ValueError(
        f'`value_type` must hold at least one number, found {value_type}.'
      )
    # Room for updates that are parallel.
    modulus = self._modulus or distributed_dp_planning.smallest_modulus(
      num_clients=self._expected_clients,
      dim=dim,
      alignment=1.0,
      sampled_fraction=self._sampled_fraction,
      **self._noise,
    )
    budget = dict(
      noise_multiplier=self._noise['noise_multiplier'],
      count_stddev=clip_bit.default_count_stddev(**self._noise),
    )
    adapts = self._l2_norm_clip is None
    width = rotate.width(dim + adapts)
    samples = self._sampling(width)
    builders = [
      (flatten.FlattenStage, {}),
      (clip.ClipStage, dict(l2_norm_clip=self._l2_norm_clip, **budget)),
      (
        rotate.RotateStage,
        dict(num_rotations=1, min_dim=rotate.MIN_DIM, seed=self._seed),
      ),
      *samples,
      (
        share_noise.ShareNoiseStage,
        dict(
          max_norm=clip_bit.joint_clip_norm(1.0, **budget) if adapts else 1.0,
          modulus=modulus,
          sampled_from=width if samples else None,
          **self._seeds,
          **self._noise,
        ),
      ),
    ]
    wire = modular_sum.ExactModularSumFactory(modulus=modulus)
    return chain.create_process(builders, wire, value_type)

  def _sampling(self, width):
    """Returns the builder of the sample; none if all coordinates are sent."""
    fraction = self._sampled_fraction
    if block_sample.size(fraction, width) == width:
      return []
    options = dict(sampled_fraction=fraction, seed=self._seed)
    return [(sample.SampleStage, options)]


def _check_room(modulus, name, num_clients):
  """Raises ValueError if the noise of so many clients alone needs more."""
  needed = distributed_noise.smallest_modulus(
    distributed_noise.noise_stddev_bins(num_clients)
  )
  if modulus < needed:
    raise ValueError(
      f'`modulus` {modulus} is too small for `{name}` {num_clients}: their'
      f' noise alone needs {needed}. Raise `modulus`, or leave it out.'
      + _checks.modulus_hint(modulus)
    )

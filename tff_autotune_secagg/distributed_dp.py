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
  seed: Optional[int] = None,
  client_seed_fn: Optional[Callable[[], tf.Tensor]] = None,
  sampled_fraction: float = 1.0,
) -> tff.aggregators.UnweightedAggregationFactory:
  """Differentially private mean; TensorFlow's seeds are not fit to deploy it.

  By default a client's noise comes from a generator that TensorFlow seeds with
  32 bits for each process, which can be guessed. A simulation may use it; a
  deployment passes `client_seed_fn`.

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
    `min_clients` updates, units of values; `share_within_clip_norm` (if the
    clip norm adapts), an estimate with noise; `num_clients`; `refused`, whether
    the round had fewer than `min_clients`; `wrap_probability` of a coordinate;
    `smallest_modulus` that would have done; `noise_to_signal`, squared norm of
    the noise over that of the sum; `alignment`, norm of the sum over that of as
    many parallel updates of full length; `bits_per_coordinate` and
    `bytes_per_client`; of a sample, `sampling_to_signal`, the mean squared
    error that it makes, over the squared norm of the sum. In a refused round
    the measurements of the sum are 0.
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
    are exact sums that no noise covers.

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
    modulus: int in 2 .. 2**30 with room for the noise of `min_clients`; None
      for the smallest power of two with room for the sum of `min_clients`
      updates even if they are parallel. For larger cohorts see
      `plan_distributed_dp_modulus`.
    seed: of the rotations, which are public; int of 0 .. 2**63 - 1, or None to
      draw one in every `initialize`. A saved state brings its own, which wins.
    client_seed_fn: None, or a function without arguments that returns an int64
      tensor [2], 128 bits of entropy for one client's noise in one round, from
      TensorFlow operations: it is traced into the client's computation. The
      operations must be stateful, or TensorFlow may run them once for all
      rounds; `create` logs a warning if none of them is.
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
      something else.

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
  if modulus is not None:
    modulus = _checks.check_modulus(modulus)
    _check_room(modulus, min_clients)
  _checks.check_function('client_seed_fn', client_seed_fn)
  return DistributedDpFactory(
    noise_multiplier=noise_multiplier,
    min_clients=min_clients,
    l2_norm_clip=l2_norm_clip,
    modulus=modulus,
    seed=_checks.check_seed(seed),
    client_seed_fn=client_seed_fn,
    sampled_fraction=distributed_dp_planning.check_sampled_fraction(
      sampled_fraction
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
    """
    self._noise = dict(
      noise_multiplier=noise_multiplier, min_clients=min_clients
    )
    self._l2_norm_clip = l2_norm_clip
    self._modulus = modulus
    self._seed = seed
    self._client_seed_fn = client_seed_fn
    self._sampled_fraction = sampled_fraction

  def create(self, value_type) -> tff.templates.AggregationProcess:
    """Creates the process.

    Args:
      value_type: structure of float tensors of defined shape.

    Returns:
      A `tff.templates.AggregationProcess`.

    Raises:
      TypeError: `value_type` holds something else.
      ValueError: `value_type` holds not a single number; or `modulus` is None
        and no modulus has room for the sum.
    """
    value_types.check_floats(value_type)
    dim = sum(
      s.shape.num_elements() for s in value_types.leaf_specs(value_type)
    )
    if not dim:
      raise ValueError(
        f'`value_type` must hold at least one number, found {value_type}.'
      )
    # Room for `min_clients` updates that are parallel.
    modulus = self._modulus or distributed_dp_planning.smallest_modulus(
      num_clients=self._noise['min_clients'],
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
          client_seed_fn=self._client_seed_fn,
          sampled_from=width if samples else None,
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

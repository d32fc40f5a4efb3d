# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Clipping, rotation and shared noise around the modular sum."""

from typing import Callable, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_autotune_secagg.factories import chain
from tff_autotune_secagg.factories import modular_sum
from tff_autotune_secagg.factories import value_types
from tff_autotune_secagg.numerics.privacy import clip_bit
from tff_autotune_secagg.numerics.privacy import distributed_noise
from tff_autotune_secagg.numerics.rotation import hadamard
from tff_autotune_secagg.stages import clip
from tff_autotune_secagg.stages import flatten
from tff_autotune_secagg.stages import rotate
from tff_autotune_secagg.stages import share_noise

# Smaller values are padded: the bit and a sum of few coordinates then spread
# over so many that they leave no period.
_MIN_DIM = 1024


def rotated_dim(dim: int) -> int:
  """Returns D, the coordinates that leave a client, for an update of `dim`.

  The clip bit counts as one more, whether there is one or not.
  """
  return hadamard.padded_dim(max(dim + 1, _MIN_DIM))


def plan_modulus(
  *,
  num_clients: int,
  noise_multiplier: float,
  min_clients: int,
  dim: int,
  alignment: float,
) -> int:
  """Returns a power of two; arguments as of `plan_distributed_dp_modulus`.

  Raises:
    ValueError: no modulus of 30 bits has room for the sum.
  """
  stddev = distributed_noise.sum_stddev_bins(
    num_clients=num_clients,
    noise_multiplier=noise_multiplier,
    min_clients=min_clients,
    dim=rotated_dim(dim),
    alignment=alignment,
  )
  smallest = distributed_noise.smallest_modulus(stddev)
  num_bits = (smallest - 1).bit_length()
  if num_bits > 30:
    raise ValueError(
      f'`noise_multiplier` {noise_multiplier:g} is too small for {num_clients}'
      f' clients: their sum needs a modulus of {num_bits} bits, more than 30.'
      ' Raise `noise_multiplier`.'
    )
  return 2**num_bits


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
  ):
    """Initializes the factory.

    Args:
      noise_multiplier: as of `distributed_dp_aggregator`, like all that follow;
        checked by whoever calls.
      min_clients: see there.
      l2_norm_clip: see there.
      modulus: see there; here any that residues can have.
      seed: see there.
      client_seed_fn: see there.
    """
    self._noise_multiplier = noise_multiplier
    self._min_clients = min_clients
    self._l2_norm_clip = l2_norm_clip
    self._modulus = modulus
    self._seed = seed
    self._client_seed_fn = client_seed_fn
    # Andrew et al. (2021, arXiv:1905.03871) take a twentieth of the clients.
    # Where that is little against z, this leaves the update 97 % of its budget.
    self._count_stddev = max(min_clients / 20.0, 2.0 * noise_multiplier)

  def create(self, value_type) -> tff.templates.AggregationProcess:
    """Creates the process.

    Args:
      value_type: structure of float tensors of defined shape.

    Returns:
      A `tff.templates.AggregationProcess`.

    Raises:
      TypeError: `value_type` holds something else.
      ValueError: `modulus` is None and no modulus has room for the sum.
    """
    value_types.check_floats(value_type)
    modulus = self._modulus or self._plan_modulus(value_type)
    multiplier = self._noise_multiplier
    max_norm = 1.0
    if self._l2_norm_clip is None:
      max_norm = clip_bit.joint_clip_norm(1.0, multiplier, self._count_stddev)
    builders = [
      (flatten.FlattenStage, {}),
      (
        clip.ClipStage,
        dict(
          l2_norm_clip=self._l2_norm_clip,
          noise_multiplier=multiplier,
          count_stddev=self._count_stddev,
        ),
      ),
      (
        rotate.RotateStage,
        dict(num_rotations=1, min_dim=_MIN_DIM, seed=self._seed),
      ),
      (
        share_noise.ShareNoiseStage,
        dict(
          noise_multiplier=multiplier,
          min_clients=self._min_clients,
          max_norm=max_norm,
          modulus=modulus,
          client_seed_fn=self._client_seed_fn,
        ),
      ),
    ]
    wire = modular_sum.ExactModularSumFactory(modulus=modulus)
    return chain.create_process(builders, wire, value_type)

  def _plan_modulus(self, value_type):
    """Returns one with room for `min_clients` updates that are parallel."""
    specs = value_types.leaf_specs(value_type)
    return plan_modulus(
      num_clients=self._min_clients,
      noise_multiplier=self._noise_multiplier,
      min_clients=self._min_clients,
      dim=sum(spec.shape.num_elements() for spec in specs),
      alignment=1.0,
    )

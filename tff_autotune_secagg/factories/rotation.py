# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Seeded randomized Hadamard rotation around an inner aggregation."""

from typing import Optional

import tensorflow_federated as tff

from tff_autotune_secagg import _checks
from tff_autotune_secagg.factories import chain
from tff_autotune_secagg.factories import value_types
from tff_autotune_secagg.stages import rotate


class HadamardRotationFactory(chain.ChainedFactory):
  """Rotates every tensor before the inner aggregation, and back after it.

  At clients:
    Each leaf x of d coordinates becomes H D x, a vector of the smallest
    Hadamard order that is at least d, with random signs D and an orthonormal
    Hadamard matrix H; `num_rotations` times. Its coordinates then look like
    samples of a normal of variance `|x|^2 / order`.
  At server:
    The inner result, which must be linear in the clients' vectors, is rotated
    back and cropped.
  Types:
    `value_type` is a structure of float16, bfloat16, float32 and float64
    tensors. The inner factory is created for the same structure of vectors, in
    float64 for float64 leaves and float32 otherwise. The result type equals
    `value_type`.
  State:
    `settings`, `seed` (int64 [2]), `round` (int64, rounds so far) and `inner`.
  Measurements:
    Those of the inner process.
  Randomness:
    The signs of a round come from the stored seed and the round number, so that
    all clients rotate alike and a restored state continues with the same
    rotations. The seed is public.

  Guarantees:
    The rotation preserves the norm and is undone exactly up to the rounding of
    the dtype; the signs are exactly +1 or -1.
  Limits:
    After one rotation, a leaf with j equal nonzero coordinates has an excess
    kurtosis of -2 / j; two rotations make it normal as well.

  References:
    Ailon and Chazelle (2009); Suresh et al. (2017, arXiv:1611.00429).
  """

  def __init__(
    self,
    inner_factory: tff.aggregators.UnweightedAggregationFactory,
    *,
    num_rotations: int = 1,
    min_dim: int = 1,
    seed: Optional[int] = None,
  ):
    """Initializes the factory.

    Args:
      inner_factory: aggregates the rotated vectors.
      num_rotations: rotations one after the other, 1 to 8.
      min_dim: 1 to 10**15; leaves of fewer coordinates are padded with zeros to
        so many.
      seed: int of 0 .. 2**63 - 1, or None to draw one in every `initialize`. A
        saved state brings its own, which wins.

    Raises:
      TypeError, ValueError: an argument is of the wrong kind or out of range.
    """
    inner_factory = value_types.check_sum_factory(
      'inner_factory', inner_factory
    )
    options = dict(
      num_rotations=_checks.check_int('num_rotations', num_rotations, 1, 8),
      min_dim=_checks.check_count('min_dim', min_dim),
      seed=_checks.check_seed(seed),
    )
    super().__init__([(rotate.RotateStage, options)], inner_factory)

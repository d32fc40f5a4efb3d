# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The seeded randomized Hadamard rotation of every leaf."""

import collections

import tensorflow as tf

from tff_autotune_secagg.numerics import dtypes
from tff_autotune_secagg.numerics import seeds
from tff_autotune_secagg.numerics.rotation import hadamard
from tff_autotune_secagg.numerics.rotation import randomized_hadamard
from tff_autotune_secagg.stages import stage

# Smaller values are padded to so many coordinates: each of the sixteen stripes
# of a calibration then holds enough of them to be told from noise, and the clip
# bit of a private update spreads over enough of them to leave no period.
MIN_DIM = 1024


def width(dim: int, min_dim: int = MIN_DIM) -> int:
  """Returns how many coordinates a rotation makes of `dim`; 0 of 0."""
  return hadamard.padded_dim(max(dim, min_dim)) if dim else 0


class RotateStage(stage.Stage):
  """Rotates each leaf as a vector, all clients alike.

  How often is `num_rotations=` of the factories; the loop over rotations is in
  `randomized_hadamard`. Another rotation is another stage in the place of this
  stage, that is in `factories.rotation` for `AutotunedSecureSumFactory`, and in
  `distributed_dp` for private means.

  State:
    `settings`, `seed` and `round`.
  """

  owner = 'HadamardRotationFactory'

  def __init__(self, specs, *, num_rotations, min_dim, seed):
    """Initializes the stage; arguments as of `HadamardRotationFactory`."""
    super().__init__(specs)
    self._num_rotations = num_rotations
    self._min_dim = min_dim
    self._seed = seed
    self.out_specs = [
      tf.TensorSpec(
        [width(spec.shape.num_elements(), min_dim)],
        dtypes.working_dtype(spec.dtype),
      )
      for spec in specs
    ]
    self.settings = collections.OrderedDict(
      dim=sum(spec.shape.num_elements() for spec in specs),
      num_rotations=num_rotations,
    )

  def initial_state(self):
    """The seed and the round."""
    return seeds.initial_state(self._seed, seeds.ROTATION_STREAM)

  def parameters(self, state):
    """The seed of the round."""
    return seeds.round_seed(state)

  def encode(self, leaves, parameters):
    """Pads and rotates."""
    rotated = [
      self._rotate(leaf, _leaf_seed(parameters, index))
      for index, leaf in enumerate(leaves)
    ]
    return rotated, collections.OrderedDict()

  def decode(self, leaves, signals, state):
    """Rotates back and crops."""
    del signals  # None.
    seed = seeds.round_seed(state)
    result = [
      self._rotate_back(leaf, _leaf_seed(seed, index), spec)
      for index, (leaf, spec) in enumerate(zip(leaves, self._specs))
    ]
    return result, seeds.next_state(state), collections.OrderedDict()

  def _rotate(self, leaf, seed):
    flat = tf.reshape(tf.cast(leaf, dtypes.working_dtype(leaf.dtype)), [-1])
    dim = flat.shape.num_elements()
    if not dim:
      return flat
    if dim < self._min_dim:
      flat = tf.pad(flat, [[0, self._min_dim - dim]])
    return randomized_hadamard.rotate(
      flat, seed, num_rotations=self._num_rotations
    )

  def _rotate_back(self, vector, seed, spec):
    dim = spec.shape.num_elements()
    if dim:
      vector = randomized_hadamard.inverse_rotate(
        vector,
        seed,
        max(dim, self._min_dim),
        num_rotations=self._num_rotations,
      )[:dim]
    return tf.cast(tf.reshape(vector, spec.shape), spec.dtype)


def _leaf_seed(seed, index):
  """Returns a seed of its own for each leaf of a structure."""
  return tf.random.experimental.stateless_fold_in(seed, index)

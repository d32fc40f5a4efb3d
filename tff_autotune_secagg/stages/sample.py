# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""A public sample of a rotated vector's coordinates, anew in each round."""

import collections

import tensorflow as tf

from tff_autotune_secagg.numerics import seeds
from tff_autotune_secagg.numerics.rotation import block_sample
from tff_autotune_secagg.stages import clip
from tff_autotune_secagg.stages import stage


class SampleStage(stage.Stage):
  """Hands on m of D coordinates, the same for all clients; see `block_sample`.

  The vector that is handed on is about as long as the one that came in. Whoever
  limits its length does so behind this stage.

  State:
    `settings`, `seed` and `round`.
  Measurements:
    `sampling_to_signal`, the mean squared error that the sampling makes over
    the squared norm of the sum; a constant.
  """

  owner = clip.OWNER
  measures_on_one_level = True

  def __init__(self, specs, *, sampled_fraction, seed):
    """Initializes the stage.

    Args:
      specs: of one rotated vector.
      sampled_fraction: Python float in (0, 1], see `block_sample.size`.
      seed: as of `HadamardRotationFactory`.
    """
    super().__init__(specs)
    (spec,) = specs
    self._dim = spec.shape[0]
    self._num = block_sample.size(sampled_fraction, self._dim)
    self._seed = seed
    self.out_specs = [tf.TensorSpec([self._num], spec.dtype)]
    self.settings = collections.OrderedDict(sampled_fraction=sampled_fraction)

  def initial_state(self):
    """The seed and the round."""
    return seeds.initial_state(self._seed, seeds.SAMPLE_STREAM)

  def parameters(self, state):
    """The seed of the round."""
    return seeds.round_seed(state)

  def encode(self, leaves, parameters):
    """Takes the coordinates."""
    (vector,) = leaves
    taken = block_sample.take(vector, self._num, parameters)
    return [taken], collections.OrderedDict()

  def decode(self, leaves, signals, state):
    """Puts them back."""
    del signals  # None.
    (mean,) = leaves
    seed = seeds.round_seed(state)
    whole = block_sample.put_back(mean, self._dim, seed)
    error = block_sample.error_to_signal(self._num, self._dim)
    measured = collections.OrderedDict(
      sampling_to_signal=tf.constant(error, tf.float32)
    )
    return [whole], seeds.next_state(state), measured

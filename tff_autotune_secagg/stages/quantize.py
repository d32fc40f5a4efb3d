# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Quantization over an unbounded range and reduction modulo k."""

import collections

from absl import logging
import tensorflow as tf

from tff_autotune_secagg.numerics import round_codec
from tff_autotune_secagg.numerics import seeds
from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.tuning import checked_tuner
from tff_autotune_secagg.stages import rotate
from tff_autotune_secagg.stages import stage

_TOO_SHORT = (
  'The values have too few coordinates to read a sum by: that takes 13, or 26'
  ' with a modulus of 2, and in a calibration so many in one of 16 parts. Every'
  ' sum will be 0. Rotate them by'
  f' `HadamardRotationFactory(..., min_dim={rotate.MIN_DIM})`, as'
  ' `AutotunedSecureSumFactory` does.'
)

# Raised when the meaning of the state or of the residues changes.
_FORMAT = 3


class QuantizeStage(stage.Stage):
  """Makes residues of every leaf, and values of their sum.

  State:
    `settings`, `seed`, `round` and `tuner`. Signals: counts of clients.
  """

  owner = 'QuantizeModFactory'
  signal_limits = collections.OrderedDict(contributing=1, rejected=1)

  def __init__(self, specs, *, tuner, seed):
    """Initializes the stage; arguments as of `QuantizeModFactory`."""
    super().__init__(specs)
    self.out_specs = [tf.TensorSpec(spec.shape, tf.int32) for spec in specs]
    self.out_modulus = tuner.modulus
    self._tuner = checked_tuner.CheckedTuner(tuner)
    self._tuner.check_first_bins()
    self._seed = seed
    self._codec = round_codec.RoundCodec(tuner, specs)
    if self._codec.is_too_short:
      logging.warning('%s', _TOO_SHORT)
    self.settings = collections.OrderedDict(
      state_format=_FORMAT,
      modulus=tuner.modulus,
      dither=int(tuner.rounding is modes.Rounding.DITHER),
    )

  def initial_state(self):
    """The seed of the dither and the tuner's state."""
    return collections.OrderedDict(
      **seeds.initial_state(self._seed, seeds.DITHER_STREAM),
      tuner=self._tuner.initial_state(),
    )

  def parameters(self, state):
    """The bin sizes and the seed of the round."""
    bin_sizes = self._tuner.bin_sizes(state['tuner'])
    # No client hears of bins that no round can have.
    with tf.control_dependencies(self._tuner.refuse_unusable(bin_sizes)):
      return tf.identity(bin_sizes), seeds.round_seed(state)

  def encode(self, leaves, parameters):
    """Rounds and reduces."""
    bin_sizes, shared_seed = parameters
    return self._codec.encode(
      leaves, bin_sizes, shared_seed, seeds.private_seed()
    )

  def decode(self, leaves, signals, state, expected=None):
    """Fits, decodes and tunes; `expected` as of `RoundCodec.decode`."""
    result, tuner_state, measurements = self._codec.decode(
      leaves, signals, state['tuner'], seeds.round_seed(state), expected
    )
    next_state = collections.OrderedDict(
      **seeds.next_state(state), tuner=tuner_state
    )
    return result, next_state, measurements

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rotation and quantization of a sum that the server predicts."""

import collections

import tensorflow as tf

from tff_autotune_secagg.numerics.prediction import past_sums
from tff_autotune_secagg.stages import quantize
from tff_autotune_secagg.stages import rotate
from tff_autotune_secagg.stages import stage


class PredictStage(stage.Stage):
  """Rotates and quantizes; a prediction is subtracted before sums are read.

  One stage for both, since the prediction is made of sums that are rotated
  back, and is needed where they are rotated, with the count of clients that
  comes with the residues. What clients do is what they do for `RotateStage` and
  `QuantizeStage`.

  State:
    `settings`, `seed` and `round` of the rotation, `prediction` (see
    `past_sums`), and in `quantized` what `QuantizeStage` keeps. Signals: counts
    of clients.
  """

  owner = 'AutotunedSecureSumFactory'

  def __init__(self, specs, *, rotation, quantization):
    """Initializes the stage.

    Args:
      specs: of the leaves that come in.
      rotation: arguments of `RotateStage`, by name.
      quantization: those of `QuantizeStage`.
    """
    super().__init__(specs)
    self._rotate = rotate.RotateStage(specs, **rotation)
    self._quantize = quantize.QuantizeStage(
      self._rotate.out_specs, **quantization
    )
    self._sizes = [spec.shape.num_elements() for spec in specs]
    self.out_specs = self._quantize.out_specs
    self.out_modulus = self._quantize.out_modulus
    self.signal_limits = self._quantize.signal_limits
    self.settings = collections.OrderedDict(
      **self._quantize.settings, **self._rotate.settings
    )

  def initial_state(self):
    """The states of rotation and quantization, and of the prediction."""
    return collections.OrderedDict(
      **self._rotate.initial_state(),
      prediction=past_sums.initial_state(sum(self._sizes)),
      quantized=self._quantize.initial_state(),
    )

  def parameters(self, state):
    """What clients need to rotate and to quantize."""
    return (
      self._rotate.parameters(state),
      self._quantize.parameters(state['quantized']),
    )

  def encode(self, leaves, parameters):
    """Rotates, rounds and reduces."""
    rotated, _ = self._rotate.encode(leaves, parameters[0])
    return self._quantize.encode(rotated, parameters[1])

  def decode(self, leaves, signals, state):
    """Predicts, decodes without the prediction, rotates back and learns."""
    num_clients = signals['contributing']
    expected = past_sums.predict(state['prediction'], num_clients)
    expected, _ = self._rotate.encode(
      [
        tf.reshape(leaf, spec.shape)
        for leaf, spec in zip(tf.split(expected, self._sizes), self._specs)
      ],
      self._rotate.parameters(state),
    )
    decoded, quantized, measurements = self._quantize.decode(
      leaves, signals, state['quantized'], expected
    )
    result, rotated, _ = self._rotate.decode(decoded, (), state)
    prediction = past_sums.update(
      state['prediction'],
      tf.concat(
        [tf.cast(tf.reshape(leaf, [-1]), tf.float32) for leaf in result], 0
      ),
      num_clients,
      past_sums.is_read(measurements),
    )
    next_state = collections.OrderedDict(
      **rotated, prediction=prediction, quantized=quantized
    )
    return result, next_state, measurements

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Clipping to a norm that is stated, or that follows one bit of each client."""

import collections

import tensorflow as tf

from tff_autotune_secagg.numerics.privacy import clip_bit
from tff_autotune_secagg.stages import stage
from tff_autotune_secagg.stages import state_guard

OWNER = 'distributed_dp_aggregator'

# Those of `tff.learning.ddp_secure_aggregator`: first clip norm, share of
# clients within it, and step of its logarithm.
FIRST_CLIP_NORM = 0.1
_TARGET_SHARE = 0.5
_LEARNING_RATE = 0.2

# Clip norms that are taken and reached: float32 has room for their products.
MIN_CLIP_NORM = 1e-15
MAX_CLIP_NORM = 1e15


class ClipStage(stage.Stage):
  """Hands vectors on in units of the clip norm, and takes back their mean.

  The stages behind it know no clip norm: whatever the state says, they limit
  the same norm and add the same noise. If the clip norm adapts, the vector has
  one more coordinate, the client's bit, see `clip_bit`.

  State:
    `settings` and `clip_norm` (float32, units of values).
  """

  owner = OWNER
  measures_on_one_level = True

  def __init__(self, specs, *, l2_norm_clip, noise_multiplier, count_stddev):
    """Initializes the stage.

    Args:
      specs: of one vector.
      l2_norm_clip: Python float; None for a clip norm that adapts.
      noise_multiplier: z, positive.
      count_stddev: z_b of the bits, in clients.
    """
    super().__init__(specs)
    self._adapts = l2_norm_clip is None
    # The vector, with one more coordinate if the clip norm adapts.
    (spec,) = specs
    dim = spec.shape[0] + int(self._adapts)
    self.out_specs = [tf.TensorSpec([dim], spec.dtype)]
    self._first = FIRST_CLIP_NORM if self._adapts else l2_norm_clip
    self._budget = dict(
      noise_multiplier=noise_multiplier, count_stddev=count_stddev
    )
    self.settings = collections.OrderedDict(
      adaptive_clip=int(self._adapts),
      l2_norm_clip=0.0 if self._adapts else l2_norm_clip,
    )

  def initial_state(self):
    """The first clip norm."""
    return collections.OrderedDict(
      clip_norm=tf.constant(self._first, tf.float32)
    )

  def parameters(self, state):
    """The clip norm, if it is sound."""
    norm = state['clip_norm']
    is_sound = (norm >= MIN_CLIP_NORM / 2.0) & (norm <= MAX_CLIP_NORM * 2.0)
    checks = state_guard.refuse_unless(
      is_sound, 'clip_norm', norm, OWNER, 'between 1e-15 and 1e15'
    )
    with tf.control_dependencies(checks):
      return tf.identity(norm)

  def encode(self, leaves, parameters):
    """Clips, appends the bit and divides by the clip norm.

    A clip norm that is no positive number gives zeros.
    """
    (vector,) = leaves
    if self._adapts:
      clipped = clip_bit.append(vector, parameters, **self._budget)
    else:
      clipped = clip_bit.clip(vector, parameters)
    clips = clipped / tf.cast(parameters, clipped.dtype)
    # The server's word is not trusted here: a norm below 0 would cancel out,
    # and hand on the update at full length.
    clips = tf.where(parameters > 0.0, clips, tf.zeros_like(clips))
    return [clips], collections.OrderedDict()

  def decode(self, leaves, signals, state):
    """Multiplies by the clip norm, and adapts it.

    It stays if the mean is 0 in every coordinate. The mean of a refused round
    is, and the mean of a noised round is not.
    """
    del signals  # None.
    (mean,) = leaves
    norm = state['clip_norm']
    next_norm, measured = norm, collections.OrderedDict()
    if self._adapts:
      share = clip_bit.share_within(mean[-1], 1.0, 1.0, **self._budget)
      found = clip_bit.next_clip_norm(
        norm,
        share,
        target_share=_TARGET_SHARE,
        learning_rate=_LEARNING_RATE,
      )
      is_told = tf.reduce_any(tf.not_equal(mean, 0.0))
      found = tf.clip_by_value(found, MIN_CLIP_NORM, MAX_CLIP_NORM)
      next_norm = tf.where(is_told, found, norm)
      share = tf.where(is_told, share, 0.0)
      measured['share_within_clip_norm'] = tf.cast(share, tf.float32)
      mean = mean[:-1]
    next_state = collections.OrderedDict(clip_norm=next_norm)
    measurements = collections.OrderedDict(
      clip_norm=norm, noise_stddev=self._noise_multiplier() * norm, **measured
    )
    return [mean * tf.cast(norm, mean.dtype)], next_state, measurements

  def _noise_multiplier(self):
    """Returns the noise multiplier of the update, z or z_u."""
    if self._adapts:
      return clip_bit.update_noise_multiplier(**self._budget)
    return self._budget['noise_multiplier']

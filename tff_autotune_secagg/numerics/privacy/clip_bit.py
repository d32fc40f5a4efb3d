# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""A clip norm that follows the clients, from one bit of each under the noise.

Andrew et al. (2021, arXiv:1905.03871): each client tells whether its norm is at
most the clip norm c, and the server moves c until the share of such clients is
the wanted one. Here the bit, as +-1/2, is one more coordinate of the client's
vector, so that it is clipped, rotated and noised with the others: there is no
second sum and no noise at the server. It must be added before the rotation,
which spreads it: the sum of the bits alone leaves a period of a few bins.

An update of 0 has no bit: neighbours of which one has a client's update
replaced by 0 are as far from each other as that client's vector is long. With a
bit for it they would differ by a whole bit, and not by half of one.

With noise multipliers z_u for the update and z_b, the standard deviation of the
noise in the count of bits, the two cost as much privacy as one mechanism of
multiplier z where z^-2 = z_u^-2 + (2 z_b)^-2.

No TFF here: everything is Python numbers, or TensorFlow on dense tensors.
"""

import tensorflow as tf


def default_count_stddev(noise_multiplier: float, min_clients: int) -> float:
  """Returns z_b: a twentieth of the clients, as Andrew et al. take it.

  Where that is little against z, as much as leaves the update 97 % of its
  budget.
  """
  return max(min_clients / 20.0, 2.0 * noise_multiplier)


def update_noise_multiplier(
  noise_multiplier: float, count_stddev: float
) -> float:
  """Returns z_u, what is left to the update.

  Args:
    noise_multiplier: z, positive.
    count_stddev: z_b, in clients.

  Returns:
    float above `noise_multiplier`.

  Raises:
    ValueError: the bits alone cost more than z allows.
  """
  left = noise_multiplier**-2 - (2.0 * count_stddev) ** -2
  if left <= 0.0:
    raise ValueError(
      f'`count_stddev` must be above half of `noise_multiplier`, found'
      f' {count_stddev:g} and {noise_multiplier:g}.'
    )
  return left**-0.5


def joint_clip_norm(
  clip_norm: tf.Tensor, noise_multiplier: float, count_stddev: float
) -> tf.Tensor:
  """Returns the norm that a vector with its bit has at most: c z_u / z.

  It is the clip norm to give to `grid_clipping.clip_to_grid` and, together with
  z, to `distributed_noise.bin_size`.
  """
  for_update = update_noise_multiplier(noise_multiplier, count_stddev)
  return clip_norm * (for_update / noise_multiplier)


def clip(update: tf.Tensor, clip_norm: tf.Tensor) -> tf.Tensor:
  """Clips a client's update, subject to rounding errors.

  `grid_clipping.clip_to_grid` bounds the norm of what is sent; this decides
  only how an update that is too long is scaled.

  Args:
    update: float32 or float64 tensor [d], d static.
    clip_norm: float scalar c, in units of values.

  Returns:
    Tensor like `update`. It is not finite if `update` is not.
  """
  return _clip(update, tf.cast(clip_norm, tf.float64))[0]


def append(
  update: tf.Tensor,
  clip_norm: tf.Tensor,
  *,
  noise_multiplier: float,
  count_stddev: float,
) -> tf.Tensor:
  """Clips a client's update as `clip` does, and appends its bit.

  Guarantees:
    The vector of an update of 0 is 0, and no vector is longer than
    `joint_clip_norm`, subject to rounding errors.

  Args:
    update: float32 or float64 tensor [d], d static.
    clip_norm: float scalar c, in units of values.
    noise_multiplier: z, positive.
    count_stddev: z_b, in clients.

  Returns:
    Tensor [d + 1] of the dtype of `update`, in units of values. It is not
    finite if `update` is not.
  """
  clip_norm = tf.cast(clip_norm, tf.float64)
  clipped, norm = _clip(update, clip_norm)
  bit = tf.where(norm <= clip_norm, 0.5, -0.5)
  bit = tf.where(norm > 0.0, bit, 0.0)
  unit = _unit(clip_norm, noise_multiplier, count_stddev)
  last = tf.cast(tf.cast(bit, tf.float64) * unit, update.dtype)
  return tf.concat([clipped, last[tf.newaxis]], axis=0)


def share_within(
  coordinate: tf.Tensor,
  clip_norm: tf.Tensor,
  num_clients: tf.Tensor,
  *,
  noise_multiplier: float,
  count_stddev: float,
) -> tf.Tensor:
  """Returns the share of clients within the clip norm, with the noise of z_b.

  A client whose update is 0 counts half.

  Args:
    coordinate: float scalar, the last one of the sum of what `append`
      returned, in units of values.
    clip_norm: c of that round.
    num_clients: scalar, clients in the sum, at least 1.
    noise_multiplier: z, positive.
    count_stddev: z_b, in clients.

  Returns:
    float64 scalar in [0, 1].
  """
  clip_norm = tf.cast(clip_norm, tf.float64)
  unit = _unit(clip_norm, noise_multiplier, count_stddev)
  share = 0.5 + tf.cast(coordinate, tf.float64) / (
    unit * tf.cast(num_clients, tf.float64)
  )
  return tf.clip_by_value(share, 0.0, 1.0)


def next_clip_norm(
  clip_norm: tf.Tensor,
  share: tf.Tensor,
  *,
  target_share: float,
  learning_rate: float,
) -> tf.Tensor:
  """Returns c exp(-learning_rate (share - target_share)), like `clip_norm`."""
  step = learning_rate * (tf.cast(share, tf.float64) - target_share)
  return clip_norm * tf.cast(tf.exp(-step), clip_norm.dtype)


def _clip(update, clip_norm):
  """Returns the clipped update and the norm before, float64."""
  norm = tf.sqrt(2.0 * tf.nn.l2_loss(tf.cast(update, tf.float64)))
  shrinkage = tf.minimum(clip_norm / tf.maximum(norm, 1e-300), 1.0)
  return update * tf.cast(shrinkage, update.dtype), norm


def _unit(clip_norm, noise_multiplier, count_stddev):
  """Returns what one client counts in the last coordinate: c z_u / z_b."""
  for_update = update_noise_multiplier(noise_multiplier, count_stddev)
  return clip_norm * (for_update / count_stddev)

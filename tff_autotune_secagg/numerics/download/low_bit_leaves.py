# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""A model in a few bits a parameter, on its way from the server to clients.

Each coded tensor is divided by its root mean square r_i, all of them
together are rotated, and each rotated coordinate z goes to the nearest of
2^bits levels q that are made for a normal coordinate. A client multiplies the
levels by s = <z, z> / <z, q>, rotates back and multiplies tensor i by r_i. With
this s the mean over rotations is the model itself (EDEN: Vargaftik et al. 2022,
arXiv:2108.08842). For levels of the distortion d the error of all rotated
coordinates is d / (1 - d) of the squared norm, and as little of it stays as
there are parameters among the padded coordinates.
"""

import collections
from typing import Any, List, Sequence, Tuple

import tensorflow as tf

from tff_autotune_secagg.numerics import seeds
from tff_autotune_secagg.numerics.download import normal_levels
from tff_autotune_secagg.numerics.download import packing
from tff_autotune_secagg.numerics.rotation import hadamard
from tff_autotune_secagg.numerics.rotation import randomized_hadamard

# A tensor of less than this is sent as it is. There padding is at most 6 %.
MIN_SIZE = 1024

# After one rotation the coordinates of a tensor of a few large numbers are not
# normal.
_NUM_ROTATIONS = 2

_FLOATS = (tf.float16, tf.bfloat16, tf.float32, tf.float64)
_BYTES_OF_A_SCALE = 8
_WORDS_OF_A_STREAM = 1, 2  # Key and counter.
_BYTES_OF_THE_STREAMS = _NUM_ROTATIONS * 8 * sum(_WORDS_OF_A_STREAM)


def predicted_nmse(bits: int, dim: int) -> float:
  """Returns the squared error of each coded tensor over its squared norm.

  Args:
    bits: Python int in 2 .. 8.
    dim: Python int, parameters that are coded, at least `MIN_SIZE`.
  """
  distortion = normal_levels.best_levels(bits).distortion
  return distortion / (1.0 - distortion) * dim / hadamard.padded_dim(dim)


class LowBitLeaves:
  """Codes the leaves of a model and decodes them.

  Attributes:
    dim: how many parameters are coded, Python int.
    bytes_per_client: bytes of a message, Python int.
  """

  def __init__(
    self, specs: Sequence[tf.TensorSpec], *, num_trainable: int, bits: int
  ):
    """Decides which leaves are coded: the large ones that are trained.

    Args:
      specs: of the model's leaves, the trainable ones first.
      num_trainable: how many are trainable. All others arrive bit for bit.
      bits: Python int in 2 .. 8, of a coded parameter.
    """
    self._specs, self._bits = tuple(specs), bits
    self._coded = tuple(
      index
      for index, spec in enumerate(self._specs)
      if index < num_trainable
      and spec.dtype in _FLOATS
      and spec.shape.num_elements() >= MIN_SIZE
    )
    self._exact = tuple(
      index for index in range(len(self._specs)) if index not in self._coded
    )
    self._sizes = [self._specs[i].shape.num_elements() for i in self._coded]
    self.dim = sum(self._sizes)
    self.bytes_per_client = sum(
      self._specs[i].shape.num_elements() * self._specs[i].dtype.size
      for i in self._exact
    )
    if self._coded:
      self.bytes_per_client += (
        hadamard.padded_dim(self.dim) * bits // 8
        + _BYTES_OF_A_SCALE * len(self._coded)
        + _BYTES_OF_THE_STREAMS
      )

  def encode(
    self, leaves: Sequence[tf.Tensor], seed: tf.Tensor
  ) -> Tuple[collections.OrderedDict, tf.Tensor]:
    """Returns what every client of a round gets.

    Args:
      leaves: of the specs.
      seed: int64 [2], of the round.

    Returns:
      The message: `exact`, a tuple of the leaves that are not coded, and where
      there are others `codes` (uint8), `scales` (float64, for each coded
      tensor) and `streams` (uint64, of the signs of the rotations). And the
      squared error of all coded tensors over their squared norm, float32
      scalar: 0 for zeros, NaN for a model that is not finite.
    """
    message = collections.OrderedDict(
      exact=tuple(leaves[index] for index in self._exact)
    )
    if not self._coded:
      return message, tf.constant(0.0)
    flat = [
      tf.cast(tf.reshape(leaves[index], [-1]), tf.float64)
      for index in self._coded
    ]
    sizes = tf.stack([_root_mean_square(x) for x in flat])
    # Zeros stay zeros. What is not finite makes all NaN, which clients must
    # not take for a model.
    divisors = tf.unstack(tf.where(sizes > 0.0, sizes, 1.0 + 0.0 * sizes))
    units = [tf.cast(x / r, tf.float32) for x, r in zip(flat, divisors)]
    streams = randomized_hadamard.sign_streams(seed, _NUM_ROTATIONS)
    rotated = randomized_hadamard.rotate_by(tf.concat(units, axis=0), streams)
    codes, factor = self._code(rotated)
    message.update(
      codes=packing.pack(codes, self._bits),
      scales=sizes * factor,
      streams=tf.concat(tf.nest.flatten(streams), axis=0),
    )
    decoded = self._decode_units(codes, streams)
    errors = tf.stack(
      [
        tf.reduce_sum(tf.square(factor * tf.cast(back, tf.float64) - x / r))
        for back, x, r in zip(decoded, flat, divisors)
      ]
    )
    # Relative to the largest, as squares of floats may overflow.
    weights = tf.square(tf.math.divide_no_nan(sizes, tf.reduce_max(sizes)))
    energy = tf.reduce_sum(weights * self._sizes)
    nmse = tf.math.divide_no_nan(tf.reduce_sum(weights * errors), energy)
    return message, tf.cast(nmse, tf.float32)

  def _code(self, rotated):
    """Returns the levels' numbers, int32 [D], and the factor s, float64."""
    quantizer = normal_levels.best_levels(self._bits)
    z = tf.cast(rotated, tf.float64)
    energy = tf.reduce_sum(tf.square(z))
    stddev = tf.sqrt(energy / rotated.shape[0])
    stddev = tf.where(tf.equal(energy, 0.0), 1.0 + stddev, stddev)
    borders = tf.constant(quantizer.borders, tf.float32)
    codes = tf.searchsorted(borders, rotated / tf.cast(stddev, tf.float32))
    levels = tf.gather(tf.constant(quantizer.levels), codes)
    # Of zeros alone 0; NaN stays NaN.
    return codes, tf.math.divide_no_nan(energy, tf.reduce_sum(z * levels))

  def _decode_units(self, codes, streams):
    """Returns the tensors that the levels stand for, but for their scales."""
    levels = normal_levels.best_levels(self._bits).levels
    rotated = tf.gather(tf.constant(levels, tf.float32), codes)
    units = randomized_hadamard.inverse_rotate_by(rotated, streams, self.dim)
    return tf.split(units, self._sizes)

  def decode(self, message: collections.OrderedDict) -> List[Any]:
    """Returns the leaves that a client makes of a message.

    Args:
      message: of `encode`.

    Returns:
      Tensors of the specs. Numbers beyond the range of their dtype become the
      largest of it.
    """
    leaves = dict(zip(self._exact, message['exact']))
    if self._coded:
      codes = packing.unpack(message['codes'], self._bits)
      scales = tf.unstack(message['scales'])
      parts = iter(
        tf.split(message['streams'], _NUM_ROTATIONS * _WORDS_OF_A_STREAM)
      )
      streams = list(map(seeds.Stream, parts, parts))
      units = self._decode_units(codes, streams)
      for index, unit, scale in zip(self._coded, units, scales):
        spec = self._specs[index]
        values = tf.cast(unit, tf.float64) * scale
        values = tf.clip_by_value(values, spec.dtype.min, spec.dtype.max)
        leaves[index] = tf.cast(tf.reshape(values, spec.shape), spec.dtype)
    return [leaves[index] for index in range(len(self._specs))]


def _root_mean_square(x):
  """Of float64 values, whose squares may be too large or small for float64."""
  peak = tf.reduce_max(tf.abs(x))
  units = tf.math.divide_no_nan(x, peak)
  return peak * tf.sqrt(tf.reduce_mean(tf.square(units)))

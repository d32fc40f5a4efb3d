# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Noise that clients share out, and the mean over their public number."""

import collections

import tensorflow as tf

from tff_autotune_secagg import _checks
from tff_autotune_secagg.numerics import seeds
from tff_autotune_secagg.numerics.privacy import discrete_gaussian
from tff_autotune_secagg.numerics.privacy import distributed_noise
from tff_autotune_secagg.numerics.privacy import grid_clipping
from tff_autotune_secagg.numerics.privacy import noised_sum
from tff_autotune_secagg.numerics.privacy import seed_sources
from tff_autotune_secagg.numerics.rounding import quantization
from tff_autotune_secagg.stages import clip
from tff_autotune_secagg.stages import stage

# Raised when the meaning of the state or of the residues changes.
_FORMAT = 1


class ShareNoiseStage(stage.Stage):
  """Limits a vector's norm, adds a client's noise and makes residues.

  Nothing that a client does depends on a state: norm, noise and bins are
  constants of the compiled computation.

  State:
    `settings`. Signals: a 1 of every client, whatever its update.
  """

  owner = clip.OWNER
  signal_limits = collections.OrderedDict(num_clients=1)
  measures_on_one_level = True

  def __init__(
    self,
    specs,
    *,
    noise_multiplier,
    min_clients,
    max_norm,
    modulus,
    client_seed_fn,
    sampled_from=None,
    allow_guessable_noise=False,
  ):
    """Initializes the stage.

    Args:
      specs: of one rotated vector.
      noise_multiplier: z, of noise over `max_norm`.
      min_clients: n, the fewest clients whose noise a released sum holds.
      max_norm: largest norm of a vector, in its own units.
      modulus: k, of the residues.
      client_seed_fn: as in `distributed_dp_aggregator`.
      sampled_from: D, the coordinates of which the vector is a public sample,
        scaled to the length of all; None if it is no sample.
      allow_guessable_noise: as there.
    """
    super().__init__(specs)
    (self._spec,) = specs
    self.out_specs = [tf.TensorSpec(self._spec.shape, tf.int32)]
    self.out_modulus = modulus
    self._min_clients = min_clients
    self._max_norm = max_norm
    self._modulus = modulus
    self._sampled_from = sampled_from
    own_seed_fn = (
      seeds.private_seed if allow_guessable_noise else seeds.system_seed
    )
    self._client_seed_fn = client_seed_fn or own_seed_fn
    self._allow_guessable_noise = allow_guessable_noise
    self._squared_grid_norm = distributed_noise.max_squared_grid_norm(
      noise_multiplier, min_clients
    )
    self._bin_size = distributed_noise.bin_size(
      max_norm, noise_multiplier, min_clients
    )
    self.settings = collections.OrderedDict(
      state_format=_FORMAT,
      noise_multiplier=noise_multiplier,
      min_clients=min_clients,
      modulus=modulus,
    )

  def encode(self, leaves, parameters):
    """Rounds to the grid, draws around it and reduces.

    A vector that is 0 or not finite is noise around 0.

    Raises:
      TypeError: `client_seed_fn` returns something else than a seed.
      ValueError: when traced, if what it returns comes from no operation that
        could give another seed in the next round.
    """
    del parameters  # None.
    (vector,) = leaves
    points, words, seed = grid_clipping.clip_to_grid(
      vector,
      tf.constant(self._max_norm, tf.float64),
      self._client_seed(),
      squared_grid_norm=self._squared_grid_norm,
    )
    drawn = discrete_gaussian.sample(points, words, seed)
    residues = quantization.reduce_modulo(drawn, self._modulus)
    return [residues], collections.OrderedDict(num_clients=tf.constant(1))

  def _client_seed(self):
    """Returns a seed of 128 bits; an int32 seed would be half as long."""
    rule = 'a function that returns an int64 tensor of shape [2]'
    seed = self._client_seed_fn()
    try:
      seed = tf.convert_to_tensor(seed)
    except (TypeError, ValueError):
      raise _checks.type_error(
        'client_seed_fn', rule, f'{seed!r:.40} ({type(seed).__name__})'
      ) from None
    if seed.dtype != tf.int64 or seed.shape != [2]:
      raise _checks.type_error(
        'client_seed_fn', rule, f'{seed.dtype.name} of shape {seed.shape}'
      )
    is_traced = not tf.executing_eagerly()
    if is_traced and not self._allow_guessable_noise:
      _refuse_constant(seed)
    return seed

  def decode(self, leaves, signals, state):
    """Unwraps and divides by the number of clients; 0 for too few of them."""
    (residues,) = leaves
    dtype = self._spec.dtype
    count = signals['num_clients']
    is_enough = count >= self._min_clients
    # Nothing is read from the sum of a refused round.
    residues = tf.where(is_enough, residues, tf.zeros_like(residues))
    divisor = tf.maximum(count, 1)
    bins = quantization.centre(residues, self._modulus)
    bins = tf.cast(bins, dtype)
    mean = bins * (self._bin_size / tf.cast(divisor, dtype))
    measurements = collections.OrderedDict(
      num_clients=count, refused=tf.logical_not(is_enough)
    )
    seen = noised_sum.measure(
      bins,
      divisor,
      modulus=self._modulus,
      squared_grid_norm=self._squared_grid_norm,
    )
    if self._sampled_from is not None:
      # The noise of what is put back is that of all D coordinates.
      seen['noise_to_signal'] *= self._sampled_from / self._spec.shape[0]
    for name, value in seen.items():
      measurements[name] = tf.where(is_enough, value, tf.zeros_like(value))
    num_bits = quantization.num_bits(self._modulus)
    num_bytes = quantization.payload_bytes(self._spec.shape[0], num_bits)
    measurements['bits_per_coordinate'] = tf.constant(num_bits, tf.int32)
    measurements['bytes_per_client'] = tf.constant(num_bytes, tf.int64)
    return [mean], state, measurements


def _refuse_constant(seed):
  """Raises ValueError if a traced seed is the same in every round."""
  if not seed_sources.has_source(seed):
    raise ValueError(
      '`client_seed_fn` must return another seed in every call, found no'
      ' stateful TensorFlow operation without a fixed seed that its result'
      ' comes from: clients of all rounds would have the same noise,'
      ' which then hides nothing. It is called when the computation is traced,'
      ' and not again in a round, so what Python draws or reads is a constant.'
      " Leave it out for the operating system's entropy. In a test that needs"
      ' noise which repeats, pass `allow_guessable_noise=True`.'
    )

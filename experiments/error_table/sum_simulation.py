# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rounds of the tuned modular sum on plain arrays, without TFF.

The factories' own TensorFlow functions in the factories' order, with seeds from
NumPy, so that a run repeats and thousands of rounds take seconds. Vectors are
what the factories see after the rotation; `run_round` can rotate them too.
"""

import math
from typing import NamedTuple, Optional

import numpy as np
import tensorflow as tf

from tff_autotune_secagg.numerics import fitting
from tff_autotune_secagg.numerics import hadamard
from tff_autotune_secagg.numerics import quantization
from tff_autotune_secagg.numerics import tuning
from tff_autotune_secagg.numerics import wrapped_normal

# Entries encoded by one call, about 100 MB of working memory.
_CHUNK = 2**21


class Round(NamedTuple):
  """What came of a round.

  Attributes:
    result: float32 or float64 [dim], the decoded sum.
    nmse: energy of the error over that of the true sum; the energy of the
    result
      if the true sum is 0.
    predicted_nmse: what the server reports of the round.
    calibrating: whether the round used the ladder.
    is_blind: whether the server found its sum unreadable.
    sum_stddev: fitted root mean square of an entry.
    wrap_probability: fitted share of wrapped entries.
    bin_size: the state's bin size before the round.
  """

  result: np.ndarray
  nmse: float
  predicted_nmse: float
  calibrating: bool
  is_blind: bool
  sum_stddev: float
  wrap_probability: float
  bin_size: float


class SumSimulation:
  """A server with its tuner, and clients with rounding seeds of their own."""

  def __init__(
    self,
    *,
    modulus: int,
    dim: int,
    wrap_probability: Optional[float] = None,
    rounding: quantization.Rounding = quantization.Rounding.STOCHASTIC,
    decoding: quantization.Decoding = quantization.Decoding.POSTERIOR_MEAN,
    drift: float = 0.1,
    num_repeats: int = 0,
    dtype: tf.DType = tf.float32,
    seed: int = 0,
  ):
    """Initializes the simulation.

    Args:
      modulus: Python int in 2 .. 2**30.
      dim: entries of a client's vector.
      wrap_probability: as `WrappedNormalTuner` takes it.
      rounding: as `WrappedNormalTuner` takes it.
      decoding: as `WrappedNormalTuner` takes it.
      drift: as `WrappedNormalTuner` takes it.
      num_repeats: rotations before the encoding; with 0, vectors are taken to
        be rotated already.
      dtype: tf.float32 or tf.float64, of the clients' and the server's work.
      seed: nonnegative int.
    """
    self.tuner = tuning.WrappedNormalTuner(
      modulus=modulus,
      wrap_probability=wrap_probability,
      rounding=rounding,
      decoding=decoding,
      drift=drift,
    )
    self._modulus = modulus
    self._dim = dim
    self._rounding = rounding
    self._decoding = decoding
    self._num_repeats = num_repeats
    self._dtype = dtype
    self._server = tf.function(self._decode, autograph=False)
    self._encoders = {}
    self.reset(seed)

  def reset(self, seed: Optional[int] = None) -> None:
    """Forgets what the tuner learned; begins its seeds anew if one is given."""
    self.state = self.tuner.initial_state()
    if seed is not None:
      self._rng = np.random.default_rng(seed)

  def run_round(
    self, clients: np.ndarray, true_sum: Optional[np.ndarray] = None
  ) -> Round:
    """Sums the clients' vectors once and moves the tuner on.

    Args:
      clients: [n, dim], one row for each client; n may be 0 if `num_repeats`
        is 0.
      true_sum: [dim], if the caller has it already.

    Returns:
      The `Round`.
    """
    clients = np.asarray(clients, self._dtype.as_numpy_dtype)
    if true_sum is None:
      true_sum = clients.sum(axis=0, dtype=np.float64)
    rotation_seed = self._draw_seed()
    if self._num_repeats:
      clients = np.stack(
        [
          hadamard.rotate(
            tf.constant(row), rotation_seed, num_repeats=self._num_repeats
          ).numpy()
          for row in clients
        ]
      )
    shared_seed = self._draw_seed()
    bin_size = float(self.state['bin_size'])
    calibrating = bool(self.state['calibrating'])
    residues = self._sum_residues(clients, shared_seed)
    result, self.state, report = self._server(
      self.state,
      tf.constant(residues, tf.int32),
      shared_seed,
      # As the factory counts them: an update of zeros adds no rounding noise.
      tf.constant(float(np.any(clients, axis=1).sum()), tf.float64),
    )
    if self._num_repeats:
      result = hadamard.inverse_rotate(
        result, rotation_seed, self._dim, num_repeats=self._num_repeats
      )
    result = result.numpy()
    energy = float(np.sum(np.square(true_sum)))
    error = float(np.sum(np.square(result - true_sum)))
    return Round(
      result=result,
      nmse=error / energy if energy else error,
      predicted_nmse=float(report['predicted_nmse']),
      calibrating=calibrating,
      is_blind=bool(report['is_blind']),
      sum_stddev=float(report['sum_stddev']),
      wrap_probability=float(report['wrap_probability']),
      bin_size=bin_size,
    )

  def _draw_seed(self) -> tf.Tensor:
    return tf.constant(self._rng.integers(2**62, size=2), tf.int64)

  def _encode(self, num_clients: int):
    """Returns the encoder of a batch of clients, traced once."""
    if num_clients not in self._encoders:

      def encode(values, bin_sizes, seed):
        if self._rounding is quantization.Rounding.DITHER:
          encoded = tf.map_fn(
            lambda row: quantization.encode(
              row,
              bin_sizes,
              quantization.dither_seed([row], bin_sizes, seed),
              modulus=self._modulus,
            ),
            values,
            fn_output_signature=tf.int32,
          )
        else:
          # One draw for all: independent offsets, as private seeds give.
          encoded = quantization.encode(
            values, bin_sizes, seed, modulus=self._modulus
          )
        return tf.reduce_sum(tf.cast(encoded, tf.int64), axis=0)

      self._encoders[num_clients] = tf.function(encode, autograph=False)
    return self._encoders[num_clients]

  def _sum_residues(self, clients, shared_seed):
    """Returns the sum of the clients' residues modulo k, int64 [width]."""
    width = clients.shape[1]
    # Whole rows of stripes, so that a batch of clients can be one tensor.
    padding = -width % quantization.NUM_STRIPES
    if padding:
      clients = np.pad(clients, [[0, 0], [0, padding]])
    bin_sizes = self.tuner.bin_sizes(self.state)
    total = np.zeros(width + padding, np.int64)
    size = max(1, _CHUNK // (width + padding))
    for start in range(0, len(clients), size):
      chunk = clients[start : start + size]
      seed = shared_seed
      if self._rounding is quantization.Rounding.STOCHASTIC:
        seed = self._draw_seed()
      total += self._encode(len(chunk))(
        tf.constant(chunk), bin_sizes, seed
      ).numpy()
    return total[:width] % self._modulus

  def _decode(self, state, residues, shared_seed, num_clients):
    """Returns the decoded sum, the next state and the server's report."""
    modulus = self._modulus
    bin_sizes = tf.cast(self.tuner.bin_sizes(state), tf.float64)
    width = residues.shape.num_elements()
    bins = quantization.centred_bins(
      residues,
      shared_seed,
      quantization.dithered_clients(num_clients, bin_sizes),
      modulus=modulus,
      rounding=self._rounding,
      dtype=self._dtype,
    )
    decoded_versines = wrapped_normal.sum_versines(bins, modulus)
    raw = quantization.centre(quantization.to_stripes(residues), modulus)
    fitted = fitting.fit(
      wrapped_normal.sum_versines(tf.cast(raw, self._dtype), modulus),
      decoded_versines,
      tf.constant(quantization.stripe_counts(width)),
      bin_sizes,
      num_clients,
      modulus=modulus,
      rounding=self._rounding,
    )
    result = fitting.decode(bins, bin_sizes, fitted, modulus=modulus)
    if self._decoding is quantization.Decoding.CENTRED:
      lost = tf.logical_or(state['calibrating'], fitted.is_blind)
      centred = bins * tf.cast(bin_sizes, bins.dtype)
      result = tf.where(lost, result, centred)
    report = dict(
      predicted_nmse=tuning.round_nmse(
        fitted, bin_sizes, modulus, self._decoding
      ),
      is_blind=fitted.is_blind,
      sum_stddev=fitted.sum_stddev,
      wrap_probability=tuning.wrap_probability(fitted, bin_sizes, modulus),
    )
    return (
      quantization.from_stripes(result, tf.TensorShape([width])),
      self.tuner.next_state(state, fitted, num_clients),
      report,
    )


def orthogonal_clients(
  rng: np.random.Generator, num_clients: int, dim: int
) -> np.ndarray:
  """Returns independent normal rows whose sum has entries of variance 1."""
  rows = rng.standard_normal((num_clients, dim), np.float32)
  return rows / np.float32(math.sqrt(max(num_clients, 1)))


def aligned_clients(
  rng: np.random.Generator, num_clients: int, dim: int
) -> np.ndarray:
  """Returns equal rows whose sum has normal entries of variance 1."""
  row = rng.standard_normal((1, dim), np.float32) / np.float32(num_clients)
  return np.repeat(row, num_clients, axis=0)

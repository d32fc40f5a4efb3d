# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rounds of an autotuned sum without TFF: thousands of them take seconds.

The round is the package's own, `round_codec`, with seeds from NumPy, so that a
run repeats. Vectors are taken to be rotated already, or are rotated here.
With many clients of few coordinates, `is_batched` rounds them all by one call.
"""

import collections
import math
from typing import NamedTuple, Optional

import numpy as np
import tensorflow as tf

from experiments.common import row_rotation
from tff_autotune_secagg.numerics import round_codec
from tff_autotune_secagg.numerics.prediction import past_sums
from tff_autotune_secagg.numerics.reading import stripes
from tff_autotune_secagg.numerics.rotation import hadamard
from tff_autotune_secagg.numerics.rotation import randomized_hadamard
from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.rounding import quantization
from tff_autotune_secagg.numerics.tuning import tuners
from tff_autotune_secagg.numerics.tuning import wrapped_normal_tuner

# Coordinates encoded by one call: bounds the memory of many clients.
_CHUNK = 2**21


class Round(NamedTuple):
  """What came of a round.

  Attributes:
    result: float32 or float64 [dim], the decoded sum.
    nmse: squared norm of the error over that of the true sum; the squared norm
      of the result if the true sum is 0.
    predicted_nmse: what the server reports of the round.
    calibrating: whether the round used the ladder.
    is_blind: whether the server found its sum unreadable.
    sum_stddev: fitted root mean square of a coordinate.
    wrap_probability: fitted share of wrapped coordinates.
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
    rounding: modes.Rounding = modes.Rounding.STOCHASTIC,
    decoding: modes.Decoding = modes.Decoding.UNBIASED,
    num_rotations: int = 0,
    min_dim: int = 1,
    dtype: tf.DType = tf.float32,
    seed: int = 0,
    tuner: Optional[tuners.Tuner] = None,
    is_batched: bool = False,
    predict_sum: bool = False,
  ):
    """Initializes the simulation.

    Args:
      modulus: Python int in 2 .. 2**30.
      dim: coordinates of a client's vector.
      wrap_probability: as `WrappedNormalTuner` takes it.
      rounding: as `WrappedNormalTuner` takes it.
      decoding: as `WrappedNormalTuner` takes it.
      num_rotations: rotations before the encoding; with 0, vectors are taken to
        be rotated already.
      min_dim: vectors of fewer coordinates are padded to as many before they
        are rotated.
      dtype: tf.float32 or tf.float64, of the clients' and the server's work.
      seed: nonnegative int.
      tuner: in the place of `WrappedNormalTuner` with the arguments above; of
        the same modulus.
      is_batched: whether clients are rounded together, by one seed for many of
        them. Their offsets are as independent as those of the coordinates of
        one client, and the round is several times faster.
      predict_sum: whether the server predicts each sum from those before, as
        `AutotunedSecureSumFactory` does. Needs rotations.

    Raises:
      ValueError: `is_batched` with dither, whose offsets each client draws by
        itself, or where the coordinates do not fill whole stripes;
        `predict_sum` without rotations.
    """
    if predict_sum and not num_rotations:
      # A coordinate that wraps once is then predicted a period off, and the
      # same coordinate is wrong in all later rounds.
      raise ValueError(
        '`num_rotations` must be at least 1 with `predict_sum`, found 0.'
      )
    self.tuner = tuner or wrapped_normal_tuner.WrappedNormalTuner(
      modulus=modulus,
      wrap_probability=wrap_probability,
      rounding=rounding,
      decoding=decoding,
    )
    self._dim = dim
    self._num_rotations = num_rotations
    self._predict_sum = predict_sum
    self._dtype = dtype
    self._rotated_dim = max(dim, min_dim)
    self._width = dim
    if num_rotations:
      self._width = hadamard.padded_dim(self._rotated_dim)
    if is_batched:
      _check_batched(self.tuner, self._width)
    self._codec = round_codec.RoundCodec(
      self.tuner, [tf.TensorSpec([self._width], dtype)]
    )
    self._traced_encode = tf.function(
      self._encode_together if is_batched else self._encode,
      # The rounding of a batch needs its size.
      input_signature=None
      if is_batched
      else [
        tf.TensorSpec([None, dim], dtype),
        tf.TensorSpec([stripes.NUM_STRIPES], tf.float32),
        tf.TensorSpec([2, 2], tf.int64),
        tf.TensorSpec([None, 2], tf.int64),
      ],
      autograph=False,
    )
    self._traced_decode = tf.function(self._decode, autograph=False)
    self.reset(seed)

  def reset(self, seed: Optional[int] = None) -> None:
    """Forgets what the tuner learned; begins its seeds anew if one is given."""
    self.state = self.tuner.initial_state()
    self._past = past_sums.initial_state(self._dim)
    if seed is not None:
      self._rng = np.random.default_rng(seed)

  def run_round(
    self,
    clients: np.ndarray,
    true_sum: Optional[np.ndarray] = None,
    shared_seeds: Optional[np.ndarray] = None,
  ) -> Round:
    """Sums the clients' vectors once and moves the tuner on.

    Args:
      clients: [n, dim], one row for each client; n may be 0.
      true_sum: [dim], if the caller has it already.
      shared_seeds: int64 [2, 2], of the rotation and of the dither; drawn if
        not given.

    Returns:
      The `Round`.
    """
    clients = np.asarray(clients, self._dtype.as_numpy_dtype)
    if true_sum is None:
      true_sum = clients.sum(axis=0, dtype=np.float64)
    if shared_seeds is None:
      shared_seeds = self._draw_seeds(2)
    shared_seeds = tf.constant(shared_seeds, tf.int64)
    residues, counts = self._sum(clients, shared_seeds)
    result, self.state, self._past, measured = self._traced_decode(
      residues, counts, self.state, self._past, shared_seeds
    )
    result = result.numpy()
    energy = float(np.sum(np.square(true_sum)))
    error = float(np.sum(np.square(result - true_sum)))
    return Round(
      result=result,
      nmse=error / energy if energy else error,
      predicted_nmse=float(measured['predicted_nmse']),
      calibrating=bool(measured['calibrating']),
      is_blind=bool(measured['blind']),
      sum_stddev=float(measured['sum_stddev']),
      wrap_probability=float(measured['wrap_probability']),
      bin_size=float(measured['bin_size']),
    )

  def _draw_seeds(self, num: int) -> np.ndarray:
    return self._rng.integers(2**62, size=[num, 2])

  def _sum(self, clients, shared_seeds):
    """Returns residues and counts, as the server gets them of all clients."""
    private_seeds = self._draw_seeds(len(clients))
    bin_sizes = self.tuner.bin_sizes(self.state)
    step = max(1, _CHUNK // self._width)
    chunks = [
      self._traced_encode(
        tf.constant(clients[start : start + step]),
        bin_sizes,
        shared_seeds,
        tf.constant(private_seeds[start : start + step]),
      )
      for start in range(0, max(1, len(clients)), step)  # 0 clients: one chunk.
    ]
    residues, counts = tf.nest.map_structure(lambda *x: sum(x), *chunks)
    return tf.cast(residues % self.tuner.modulus, tf.int32), counts

  def _encode(self, clients, bin_sizes, shared_seeds, private_seeds):
    """Returns the sums of residues, int64 [width], and of client counts."""

    def encode_one(arguments):
      vector, private_seed = arguments
      if self._num_rotations:
        vector = randomized_hadamard.rotate(
          self._padded(vector), shared_seeds[0], self._num_rotations
        )
      (residues,), counts = self._codec.encode(
        [vector], bin_sizes, shared_seeds[1], private_seed
      )
      return residues, counts

    count = tf.TensorSpec([], tf.int32)
    residues, counts = tf.map_fn(
      encode_one,
      (clients, private_seeds),
      fn_output_signature=(
        tf.TensorSpec([self._width], tf.int32),
        collections.OrderedDict(contributing=count, rejected=count),
      ),
    )
    return (
      tf.reduce_sum(tf.cast(residues, tf.int64), axis=0),
      tf.nest.map_structure(tf.reduce_sum, counts),
    )

  def _encode_together(self, clients, bin_sizes, shared_seeds, private_seeds):
    """As `_encode`, by the first of the private seeds."""
    rows = clients
    if self._num_rotations:
      rows = row_rotation.rotate(
        self._padded(rows), shared_seeds[0], self._num_rotations
      )
    is_zero = tf.reduce_all(tf.equal(clients, tf.zeros_like(clients)), axis=1)
    is_finite = tf.reduce_all(tf.math.is_finite(clients), axis=1)
    contributes = tf.logical_and(is_finite, tf.logical_not(is_zero))
    # What does not contribute is 0, which is rounded to 0.
    rows = tf.where(contributes[:, tf.newaxis], rows, tf.zeros_like(rows))
    residues = quantization.encode(
      rows,
      bin_sizes,
      tf.random.experimental.stateless_fold_in(private_seeds[0], 0),
      modulus=self.tuner.modulus,
    )
    counts = collections.OrderedDict(
      contributing=_count(contributes),
      rejected=_count(tf.logical_not(is_finite)),
    )
    return tf.reduce_sum(tf.cast(residues, tf.int64), axis=0), counts

  def _padded(self, vectors):
    """Pads [..., dim] to the least size that is rotated."""
    missing = self._rotated_dim - self._dim
    return tf.pad(vectors, [[0, 0]] * (vectors.shape.rank - 1) + [[0, missing]])

  def _decode(self, residues, counts, state, past, shared_seeds):
    """Returns the decoded sum, the next states and the measurements."""
    num_clients = counts['contributing']
    expected = None
    if self._predict_sum:
      expected = past_sums.predict(past, num_clients)
      if self._num_rotations:
        expected = randomized_hadamard.rotate(
          self._padded(expected), shared_seeds[0], self._num_rotations
        )
      expected = [expected]
    (result,), state, measured = self._codec.decode(
      [residues], counts, state, shared_seeds[1], expected
    )
    if self._num_rotations:
      result = randomized_hadamard.inverse_rotate(
        result, shared_seeds[0], self._rotated_dim, self._num_rotations
      )[: self._dim]
    if self._predict_sum:
      past = past_sums.update(
        past, result, num_clients, past_sums.is_read(measured)
      )
    return result, state, past, measured


def _count(flags: tf.Tensor) -> tf.Tensor:
  return tf.reduce_sum(tf.cast(flags, tf.int32))


def _check_batched(tuner, width):
  if tuner.rounding is not modes.Rounding.STOCHASTIC:
    raise ValueError(
      '`is_batched` must come with stochastic rounding, found '
      f'{tuner.rounding}.'
    )
  if width % stripes.NUM_STRIPES:
    raise ValueError(
      '`is_batched` must come with a multiple of '
      f'{stripes.NUM_STRIPES} coordinates after the rotation, found {width}.'
    )


def orthogonal_clients(
  rng: np.random.Generator, num_clients: int, dim: int
) -> np.ndarray:
  """Returns independent normal rows; coordinates of the sum have variance 1."""
  rows = rng.standard_normal((num_clients, dim), np.float32)
  return rows / np.float32(math.sqrt(max(num_clients, 1)))


def aligned_clients(
  rng: np.random.Generator, num_clients: int, dim: int
) -> np.ndarray:
  """Returns equal rows whose sum has normal coordinates of variance 1."""
  row = rng.standard_normal((1, dim), np.float32) / np.float32(num_clients)
  return np.repeat(row, num_clients, axis=0)


def cancelling_clients(
  rng: np.random.Generator, num_clients: int, dim: int
) -> np.ndarray:
  """Returns rows of which nearly all cancels; the sum has variance 1.

  The sum is a hundredth of that of independent rows of the same size.
  """
  rows = rng.standard_normal((num_clients, dim), np.float32)
  rows -= rows.mean(axis=0)
  rows *= np.float32(100.0 / math.sqrt(num_clients))
  return rows + aligned_clients(rng, num_clients, dim)

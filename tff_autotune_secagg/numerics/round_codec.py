# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""One round: what a client sends, and what the server reads from the sum.

Everything else that needs a round (the factories, the error table, the
benchmark, the tests of long histories) calls this one.
"""

import collections
from typing import List, Optional, Sequence, Tuple

import tensorflow as tf

from tff_autotune_secagg.numerics import dtypes
from tff_autotune_secagg.numerics import measurements
from tff_autotune_secagg.numerics.prediction import subtraction
from tff_autotune_secagg.numerics.reading import decoding
from tff_autotune_secagg.numerics.reading import fitting
from tff_autotune_secagg.numerics.reading import stripe_readings
from tff_autotune_secagg.numerics.reading import stripes
from tff_autotune_secagg.numerics.reading import wrapped_normal
from tff_autotune_secagg.numerics.rounding import dither
from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.rounding import quantization
from tff_autotune_secagg.numerics.tuning import checked_tuner
from tff_autotune_secagg.numerics.tuning import tuners


class RoundCodec:
  """Encodes one client's leaves and decodes the sum of all clients'."""

  def __init__(self, tuner: tuners.Tuner, specs: Sequence[tf.TensorSpec]):
    """Initializes the codec.

    Args:
      tuner: settings and bin sizes.
      specs: of a client's leaves, float dtypes of static shape.
    """
    self._tuner = checked_tuner.CheckedTuner(tuner)
    self._specs = tuple(specs)
    self._is_dither = tuner.rounding is modes.Rounding.DITHER

  @property
  def is_too_short(self) -> bool:
    """Whether there are too few coordinates to read any sum by.

    It takes 13 coordinates (26 for a modulus of 2) to tell a sum from uniform
    residues; in a calibration, so many in one of the 16 stripes.
    """
    sizes = [spec.shape.num_elements() for spec in self._specs]
    counts = sum(stripes.stripe_counts(size) for size in sizes)
    if not sum(sizes) or self._reads_nothing:
      return False
    most = counts.max() if self._tuner.calibrates else counts.sum()
    return most < wrapped_normal.fewest_coordinates(self._tuner.modulus)

  @property
  def _reads_nothing(self) -> bool:
    """Whether decoding is the same whatever the fit says."""
    is_centred = self._tuner.decoding is modes.Decoding.CENTRED
    return is_centred and self._tuner.centres_lost_rounds

  def encode(
    self,
    leaves: Sequence[tf.Tensor],
    bin_sizes: tf.Tensor,
    shared_seed: tf.Tensor,
    private_seed: tf.Tensor,
  ) -> Tuple[List[tf.Tensor], collections.OrderedDict]:
    """Returns what one client sends.

    An update of zeros does not contribute: it is exact, so that neither
    rounding noise nor dither may be accounted for it.

    Args:
      leaves: the client's tensors.
      bin_sizes: float32 [NUM_STRIPES].
      shared_seed: int64 [2], the same for all clients of a round. Dither uses
        it, stochastic rounding does not.
      private_seed: int64 [2], of this client and round. Stochastic rounding
        uses it, dither does not.

    Returns:
      Residues, int32 tensors of the leaves' shapes, and the counts
      `contributing` and `rejected`, int32 scalars of 0 or 1.
    """
    seed = private_seed
    if self._is_dither and leaves:
      seed = dither.client_seed(leaves, bin_sizes, shared_seed)
    is_finite, is_zero = _is_finite_and_is_zero(leaves)
    contributes = tf.logical_and(is_finite, tf.logical_not(is_zero))

    def residues():
      return [
        quantization.encode(
          tf.cast(leaf, dtypes.working_dtype(leaf.dtype)),
          bin_sizes,
          tf.random.experimental.stateless_fold_in(seed, index),
          modulus=self._tuner.modulus,
        )
        for index, leaf in enumerate(leaves)
      ]

    def nothing():
      return [tf.zeros(leaf.shape, tf.int32) for leaf in leaves]

    encoded = tf.cond(contributes, residues, nothing) if leaves else []
    counts = collections.OrderedDict(
      contributing=tf.cast(contributes, tf.int32),
      rejected=tf.cast(tf.logical_not(is_finite), tf.int32),
    )
    return encoded, counts

  def decode(
    self,
    residues: Sequence[tf.Tensor],
    counts: collections.OrderedDict,
    tuner_state: collections.OrderedDict,
    shared_seed: tf.Tensor,
    expected: Optional[Sequence[tf.Tensor]] = None,
  ) -> Tuple[List[tf.Tensor], collections.OrderedDict, collections.OrderedDict]:
    """Returns what the server makes of the sum.

    Args:
      residues: the clients' residues, summed modulo `modulus`: int32 in
        0 .. modulus - 1, of the leaves' shapes.
      counts: the clients' `contributing` and `rejected`, summed, int32.
      tuner_state: the one whose bin sizes the clients used.
      shared_seed: the one the clients used.
      expected: a prediction of the sum to subtract before it is read, float32
        of the leaves' shapes; None for none.

    Returns:
      The decoded sum, leaves of the codec's specs, the next tuner state and the
      measurements.
    """
    num_clients = tf.cast(counts['contributing'], tf.float64)
    bin_sizes = tf.cast(self._tuner.bin_sizes(tuner_state), tf.float64)
    raw_bins, leaf_bins = self._bins(
      residues, shared_seed, num_clients, bin_sizes
    )
    subtracted = None
    if expected is not None:
      subtracted = subtraction.Subtraction(
        expected, leaf_bins, bin_sizes, num_clients, self._tuner.modulus
      )
      raw_bins = subtracted.without(raw_bins)
      leaf_bins = subtracted.without(leaf_bins)
    sample = self._sample(raw_bins, leaf_bins, num_clients, bin_sizes)
    fitted = fitting.fit(
      sample, modulus=self._tuner.modulus, rounding=self._tuner.rounding
    )
    to_learn = fitted
    if subtracted is not None:
      fitted = subtracted.of_residual(fitted)
      to_learn = subtracted.for_tuner(fitted)
    decoder = decoding.Decoder(
      fitted,
      bin_sizes,
      modulus=self._tuner.modulus,
      decoding=self._tuner.decoding,
      centres_lost_rounds=self._tuner.centres_lost_rounds,
    )
    decoded = [None if x is None else decoder.decode(x) for x in leaf_bins]
    if subtracted is not None:
      decoded = subtracted.put_back(decoded, fitted)
    leaves = [_as_leaf(x, spec) for x, spec in zip(decoded, self._specs)]
    next_state = self._tuner.next_state(tuner_state, to_learn, num_clients)
    finished = measurements.FinishedRound(
      tuner=self._tuner,
      tuner_state=tuner_state,
      bin_sizes=bin_sizes,
      fitted=fitted,
      predicted_nmse=decoder.nmse,
      contributing=counts['contributing'],
      rejected=counts['rejected'],
      num_coordinates=sum(s.shape.num_elements() for s in self._specs),
      size_forecast=self._tuner.size_forecast(tuner_state),
      unpredicted=None if subtracted is None else subtracted.share(fitted),
    )
    return leaves, next_state, measurements.measure(finished)

  def _bins(self, residues, shared_seed, num_clients, bin_sizes):
    """Returns the centred bins of each leaf, with its dither and without."""
    raw_bins, leaf_bins = [], []
    for index, (leaf, spec) in enumerate(zip(residues, self._specs)):
      if not spec.shape.num_elements():
        raw_bins.append(None)
        leaf_bins.append(None)
        continue
      raw = self._centred_bins(leaf, spec)
      seed = tf.random.experimental.stateless_fold_in(shared_seed, index)
      bins = self._without_dither(raw, seed, num_clients, bin_sizes, spec)
      raw_bins.append(raw)
      leaf_bins.append(bins)
    return raw_bins, leaf_bins

  def _sample(self, raw_bins, leaf_bins, num_clients, bin_sizes):
    """Returns one `Sample` of all leaves."""
    counts = raw_versines = decoded_versines = tf.zeros(
      [stripes.NUM_STRIPES], tf.float64
    )
    for raw, bins, spec in zip(raw_bins, leaf_bins, self._specs):
      if bins is None:
        continue
      counts += stripes.stripe_counts(spec.shape.num_elements())
      versines = wrapped_normal.sum_versines(bins, self._tuner.modulus)
      decoded_versines += versines
      if self._is_dither:
        versines = wrapped_normal.sum_versines(raw, self._tuner.modulus)
      raw_versines += versines
    return stripe_readings.Sample(
      raw_versines, decoded_versines, counts, bin_sizes, num_clients
    )

  def _centred_bins(self, leaf, spec):
    """Returns the sum's residues as integers nearest to 0, in stripes."""
    rows = stripes.to_stripes(leaf)
    bins = quantization.centre(rows, self._tuner.modulus)
    return tf.cast(bins, dtypes.working_dtype(spec.dtype))

  def _without_dither(self, bins, seed, num_clients, bin_sizes, spec):
    """Returns the bins after the dither was subtracted, if there was one."""
    if not self._is_dither:
      return bins
    sharing = dither.num_sharing_clients(num_clients, bin_sizes)
    bins = dither.subtract(bins, seed, sharing, self._tuner.modulus)
    # Padding became arbitrary numbers, which the fit must not see.
    shape = tf.TensorShape([spec.shape.num_elements()])
    return stripes.to_stripes(stripes.from_stripes(bins, shape))


def _as_leaf(decoded, spec):
  """Returns decoded rows as a leaf in its own dtype; zeros for None."""
  if decoded is None:
    return tf.zeros(spec.shape, spec.dtype)
  return tf.cast(stripes.from_stripes(decoded, spec.shape), spec.dtype)


def _is_finite_and_is_zero(leaves):
  """Tells whether all coordinates are finite, and whether all are 0."""

  def look_at_each():
    is_finite = [tf.reduce_all(tf.math.is_finite(leaf)) for leaf in leaves]
    # Not `==`: on tensors of the graphs that TFF traces it compares identities.
    is_zero = [
      tf.reduce_all(tf.equal(leaf, tf.zeros_like(leaf))) for leaf in leaves
    ]
    return tf.reduce_all(is_finite), tf.reduce_all(is_zero)

  if not leaves:
    return look_at_each()
  # One pass over a leaf where the look takes four: a sum of squares that is
  # finite and positive answers both. It may overflow or vanish by itself.
  squares = [tf.cast(tf.nn.l2_loss(leaf), tf.float64) for leaf in leaves]
  total = tf.add_n(squares)
  is_clear = tf.logical_and(tf.math.is_finite(total), total > 0.0)
  return tf.cond(
    is_clear, lambda: (tf.constant(True), tf.constant(False)), look_at_each
  )

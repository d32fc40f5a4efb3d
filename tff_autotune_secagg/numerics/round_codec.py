# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a client sends in a round, and what the server reads from the sum."""

import collections
import math

import tensorflow as tf

from tff_autotune_secagg.factories import value_types
from tff_autotune_secagg.numerics import fitting
from tff_autotune_secagg.numerics import quantization
from tff_autotune_secagg.numerics import seeds
from tff_autotune_secagg.numerics import tuning
from tff_autotune_secagg.numerics import wrapped_normal

# Raised when the meaning of the state or of the residues changes.
_FORMAT = 1

MEASUREMENTS = (
  'bin_size',
  'calibrating',
  'blind',
  'zero_sum',
  'modulus_too_small',
  'sum_stddev',
  'wrap_probability',
  'predicted_nmse',
  'num_clients',
  'rejected_clients',
  'bits_per_coordinate',
  'bytes_per_client',
)


class Codec:
  """The TensorFlow side of a round: one structure in, one structure out."""

  def __init__(self, modulus, rounding, decoding, tuner, bin_size):
    self._modulus = modulus
    self._rounding = rounding
    self._decoding = decoding
    self._tuner = tuner
    self._bin_size = bin_size

  @property
  def settings(self):
    """What a restored state must agree on."""
    return collections.OrderedDict(
      state_format=_FORMAT,
      modulus=self._modulus,
      dither=int(self._rounding is quantization.Rounding.DITHER),
    )

  def initial_tuner_state(self):
    """Returns the tuner's first state; empty for a fixed bin size."""
    if self._tuner is None:
      return collections.OrderedDict()
    return self._tuner.initial_state()

  def bin_sizes(self, tuner_state):
    """Returns the round's bin sizes, float32 [NUM_STRIPES]."""
    if self._tuner is None:
      return tf.fill([quantization.NUM_STRIPES], tf.constant(self._bin_size))
    return self._tuner.bin_sizes(tuner_state)

  def encode(self, value, bin_sizes, shared_seed, value_type):
    """Returns the residues and int32 (contributing, rejected) of one client.

    An update of zeros does not contribute: it is exact, so that neither
    rounding noise nor dither may be accounted for it.
    """
    leaves = value_types.flatten(value)
    if self._rounding is quantization.Rounding.DITHER and leaves:
      seed = quantization.dither_seed(leaves, bin_sizes, shared_seed)
    else:
      seed = seeds.private_seed()
    is_finite = tf.reduce_all(
      [tf.reduce_all(tf.math.is_finite(leaf)) for leaf in leaves]
    )
    # Not `==`: on tensors of the graphs that TFF traces it compares identities.
    is_zero = tf.reduce_all(
      [tf.reduce_all(tf.equal(leaf, tf.zeros_like(leaf))) for leaf in leaves]
    )
    contributes = tf.logical_and(is_finite, tf.logical_not(is_zero))

    def residues():
      return [
        quantization.encode(
          tf.cast(leaf, value_types.working_dtype(leaf.dtype)),
          bin_sizes,
          tf.random.experimental.stateless_fold_in(seed, index),
          modulus=self._modulus,
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
    return value_types.pack(encoded, value_type), counts

  def decode(self, residues, counts, tuner_state, shared_seed, value_type):
    """Returns the decoded sum, the next tuner state and the measurements."""
    specs = value_types.leaf_specs(value_type)
    num_clients = tf.cast(counts['contributing'], tf.float64)
    bin_sizes = tf.cast(self.bin_sizes(tuner_state), tf.float64)
    leaf_bins, fitted = self._fit(
      value_types.flatten(residues),
      specs,
      shared_seed,
      num_clients,
      bin_sizes,
    )
    calibrating = quantization.is_calibration(bin_sizes)
    leaves = [
      self._decode_leaf(bins, spec, bin_sizes, fitted, calibrating)
      for bins, spec in zip(leaf_bins, specs)
    ]
    next_tuner_state = collections.OrderedDict()
    bin_size = tf.constant(self._bin_size) if self._tuner is None else None
    if self._tuner is not None:
      next_tuner_state = self._tuner.next_state(
        tuner_state, fitted, num_clients
      )
      bin_size = tuner_state['bin_size']
    has_clients = num_clients > 0.0
    error = tuning.round_nmse(fitted, bin_sizes, self._modulus, self._decoding)
    bits = max(1, math.ceil(math.log2(self._modulus)))
    entries = sum(spec.shape.num_elements() for spec in specs)
    values = dict(
      bin_size=bin_size,
      calibrating=calibrating,
      blind=tf.logical_and(fitted.is_blind, has_clients),
      zero_sum=fitted.is_zero,
      modulus_too_small=tuning.modulus_is_too_small(
        num_clients,
        modulus=self._modulus,
        wrap_probability=(
          None if self._tuner is None else self._tuner.wrap_probability
        ),
        rounding=self._rounding,
        decoding=self._decoding,
      ),
      sum_stddev=tf.cast(fitted.sum_stddev, tf.float32),
      wrap_probability=tf.cast(
        tuning.wrap_probability(fitted, bin_sizes, self._modulus),
        tf.float32,
      ),
      predicted_nmse=tf.cast(error, tf.float32),
      num_clients=counts['contributing'],
      rejected_clients=counts['rejected'],
      bits_per_coordinate=tf.constant(bits, tf.int32),
      bytes_per_client=tf.constant((entries * bits + 7) // 8, tf.int64),
    )
    measurements = collections.OrderedDict((k, values[k]) for k in MEASUREMENTS)
    return value_types.pack(leaves, value_type), next_tuner_state, measurements

  def _fit(self, residues, specs, shared_seed, num_clients, bin_sizes):
    """Returns the centred bins of each leaf and one fit for all of them."""
    leaf_bins = []
    dithered = quantization.dithered_clients(num_clients, bin_sizes)
    counts = raw_versines = decoded_versines = tf.zeros(
      [quantization.NUM_STRIPES], tf.float64
    )
    for index, (leaf, spec) in enumerate(zip(residues, specs)):
      size = spec.shape.num_elements()
      if not size:
        leaf_bins.append(None)
        continue
      bins = quantization.centred_bins(
        leaf,
        tf.random.experimental.stateless_fold_in(shared_seed, index),
        dithered,
        modulus=self._modulus,
        rounding=self._rounding,
        dtype=value_types.working_dtype(spec.dtype),
      )
      # Dither reads padding as arbitrary numbers; the fit must not see them.
      flat = quantization.from_stripes(bins, tf.TensorShape([size]))
      bins = quantization.to_stripes(flat)
      leaf_bins.append(bins)
      counts += quantization.stripe_counts(size)
      own = wrapped_normal.sum_versines(bins, self._modulus)
      decoded_versines += own
      if self._rounding is quantization.Rounding.DITHER:
        raw = quantization.centre(quantization.to_stripes(leaf), self._modulus)
        raw_versines += wrapped_normal.sum_versines(
          tf.cast(raw, bins.dtype), self._modulus
        )
      else:
        raw_versines += own
    fitted = fitting.fit(
      raw_versines,
      decoded_versines,
      counts,
      bin_sizes,
      num_clients,
      modulus=self._modulus,
      rounding=self._rounding,
    )
    return leaf_bins, fitted

  def _decode_leaf(self, bins, spec, bin_sizes, fitted, calibrating):
    """Returns one leaf of the sum in its own dtype."""
    if bins is None:
      return tf.zeros(spec.shape, spec.dtype)

    def posterior():
      return fitting.decode(bins, bin_sizes, fitted, modulus=self._modulus)

    def centred():
      return bins * tf.cast(bin_sizes, bins.dtype)

    if self._decoding is quantization.Decoding.POSTERIOR_MEAN:
      decoded = posterior()
    elif self._tuner is None:
      decoded = centred()
    else:
      lost = tf.logical_or(calibrating, fitted.is_blind)
      decoded = tf.cond(lost, posterior, centred)
    return tf.cast(quantization.from_stripes(decoded, spec.shape), spec.dtype)

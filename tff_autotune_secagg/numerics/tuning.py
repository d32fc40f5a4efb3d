# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The tuner that carries the bin size from round to round.

Three pure functions on a small state: the initial state, the bin sizes of a
round, and the next state from the round's fit. Nobody else reads the state.
"""

import collections
from typing import Optional

import tensorflow as tf

from tff_autotune_secagg import _checks
from tff_autotune_secagg.numerics import fitting
from tff_autotune_secagg.numerics import operating_point as bin_size_lib
from tff_autotune_secagg.numerics import quantization
from tff_autotune_secagg.numerics import wrapped_normal

# The ladder: bins from 8e-10 by factors of 8 to 2.8e4 read sums whose entries
# have a standard deviation of 1e-9 to 1e4, at any modulus.
_LADDER_BASE = 8e-10
_LADDER_RATIO = 8.0

_SMALLEST_BIN = 1e-30
_LARGEST_BIN = 1e30


class WrappedNormalTuner:
  """Sets the bin size of the next round from a wrapped-normal fit of this one.

  A round either runs at one bin size, or calibrates: then the bins are a ladder
  over 13 decades from which any scale can be read. The first round calibrates,
  and so does every round after one whose sum was blind, or 0 although clients
  had something to send: then the updates shrank a millionfold.

  State: `bin_size` (float32, units of the values, finite and positive, 1.0
  until
    the first fit) and `calibrating` (bool, the coming round is a calibration).

  Guarantees: a round without clients leaves the state as it was; one that is
    blind or whose residues are all 0 leaves the bin size as it was.

  References: Bonawitz et al. (2019, arXiv:1912.00131), section 4, for the rule
    with a given `wrap_probability`; this package's `bin_size` for the automatic
    one.
  """

  def __init__(
    self,
    *,
    modulus: int,
    wrap_probability: Optional[float] = None,
    rounding: quantization.Rounding = quantization.Rounding.STOCHASTIC,
    decoding: quantization.Decoding = quantization.Decoding.POSTERIOR_MEAN,
    drift: float = bin_size_lib.DEFAULT_DRIFT,
  ):
    """Initializes the tuner.

    Args:
      modulus: int in 2 .. 2**30, the one the sum is taken by.
      wrap_probability: None to minimize the expected error for the round's
        client count, or a float in (0, 1) for the paper's rule
        b = 2 z sigma_tot / (k - 1).
      rounding: the clients' `Rounding`.
      decoding: the server's `Decoding`, which moves the optimum a little.
      drift: expected change of ln sigma from round to round, 0 to 2; used by
        the automatic choice only.

    Raises:
      TypeError, ValueError: an argument is of the wrong kind or out of range.
    """
    self._modulus = _checks.check_modulus(modulus)
    bin_size_lib.check_tuning(wrap_probability, drift)
    self._wrap_probability = wrap_probability
    self._rounding = _checks.check_enum(
      'rounding', rounding, quantization.Rounding
    )
    self._decoding = _checks.check_enum(
      'decoding', decoding, quantization.Decoding
    )
    self._drift = float(drift)

  @property
  def modulus(self) -> int:
    """The modulus the bin sizes are meant for."""
    return self._modulus

  @property
  def rounding(self) -> quantization.Rounding:
    """The rounding mode the bin sizes are meant for."""
    return self._rounding

  @property
  def wrap_probability(self) -> Optional[float]:
    """The wrap probability of the paper's rule, None if it is automatic."""
    return self._wrap_probability

  def initial_state(self) -> collections.OrderedDict:
    """Returns the state before the first round, which calibrates."""
    return collections.OrderedDict(
      bin_size=tf.constant(1.0, tf.float32),
      calibrating=tf.constant(True),
    )

  def bin_sizes(self, state: collections.OrderedDict) -> tf.Tensor:
    """Returns the bin sizes of the coming round, float32 [NUM_STRIPES]."""
    exponent = tf.range(quantization.NUM_STRIPES, dtype=tf.float32)
    ladder = _LADDER_BASE * tf.pow(_LADDER_RATIO, exponent)
    level = tf.fill([quantization.NUM_STRIPES], state['bin_size'])
    return tf.where(state['calibrating'], ladder, level)

  def next_state(
    self,
    state: collections.OrderedDict,
    fitted: fitting.WrappedNormalFit,
    num_clients: tf.Tensor,
  ) -> collections.OrderedDict:
    """Returns the state after a round.

    Args:
      state: the state whose `bin_sizes` the round used.
      fitted: the fit of the round's sum.
      num_clients: float64 scalar, clients in the sum whose update is not 0.

    Returns:
      The next state, of the same types.
    """
    has_clients = num_clients > 0.0
    lost = tf.logical_or(fitted.is_zero, fitted.is_blind)
    learned = tf.logical_and(has_clients, tf.logical_not(lost))
    learned = tf.logical_and(learned, fitted.sum_stddev > 0.0)
    proposal = self._propose(fitted, num_clients)
    calibrating = tf.logical_or(
      state['calibrating'], tf.logical_and(has_clients, lost)
    )
    return collections.OrderedDict(
      bin_size=tf.where(learned, proposal, state['bin_size']),
      calibrating=tf.where(learned, False, calibrating),
    )

  def _propose(self, fitted, num_clients):
    """Returns the bin size for the next round, float32."""
    clients = tf.maximum(num_clients, 1.0)
    if self._wrap_probability is None:
      best = bin_size_lib.best_operation(
        clients, self._modulus, self._rounding, self._decoding, self._drift
      )
      proposal = best.bin_per_stddev * fitted.sum_stddev
    else:
      quantile = bin_size_lib.half_period_for(self._wrap_probability)
      operation = (
        self._wrap_probability,
        clients,
        self._modulus,
        self._rounding,
      )
      fixed = bin_size_lib.fixed_operation(*operation).bin_per_stddev
      fixed *= fitted.sum_stddev
      observed = fitted.observed_stddev
      rule = 2.0 * quantile * observed[0] / (self._modulus - 1)
      # Where the rule diverges, what it would reach once most entries are
      # rounded to 0 bounds it.
      rule = tf.where(
        bin_size_lib.rule_has_fixed_point(*operation),
        rule,
        tf.minimum(rule, fixed),
      )
      # A ladder has no one observed spread; the rule's fixed point stands in.
      proposal = tf.where(tf.equal(observed[0], observed[-1]), rule, fixed)
    proposal = tf.clip_by_value(proposal, _SMALLEST_BIN, _LARGEST_BIN)
    return tf.cast(proposal, tf.float32)


def modulus_is_too_small(
  num_clients: tf.Tensor,
  *,
  modulus: int,
  wrap_probability: Optional[float] = None,
  rounding: quantization.Rounding,
  decoding: quantization.Decoding,
) -> tf.Tensor:
  """Tells whether no bin size serves this many clients well, scalar bool.

  True for any reason of `bin_size.Shortage`: the predicted error is above
  `bin_size.MAX_PREDICTED_NMSE`, the paper's rule has no fixed point, or
  dither's clients may differ by too little.
  """
  lacking = bin_size_lib.shortage(
    num_clients, modulus, wrap_probability, rounding, decoding
  )
  return tf.reduce_any(lacking)


def wrap_probability(
  fitted: fitting.WrappedNormalFit, bin_sizes: tf.Tensor, modulus: int
) -> tf.Tensor:
  """Returns the fitted share of entries outside half a period, mean of stripes.

  float64 in [0, 1]; 1 for a blind round.
  """
  observed = tf.maximum(fitted.observed_stddev, 1e-300)
  half_period = modulus * bin_sizes / 2 / observed
  tails = 2.0 * wrapped_normal.normal_tail(half_period)
  mean = tf.reduce_mean(tails)
  return tf.where(fitted.is_blind, tf.ones_like(mean), mean)


def round_nmse(
  fitted: fitting.WrappedNormalFit,
  bin_sizes: tf.Tensor,
  modulus: int,
  decoding: quantization.Decoding,
) -> tf.Tensor:
  """Returns the error predicted for a finished round, mean of the stripes.

  float64; 0 for a round whose sum is 0, 1 for a blind round and for one whose
  residues are explained by rounding alone: nothing is known of their sums.
  """
  observed = tf.maximum(fitted.observed_stddev, 1e-300)
  share = 1.0 - tf.square(fitted.sum_stddev / observed)
  half_period = modulus * bin_sizes / 2 / observed
  error = tf.reduce_mean(bin_size_lib.nmse(half_period, share, decoding))
  is_lost = tf.logical_or(fitted.is_blind, tf.equal(fitted.sum_stddev, 0.0))
  error = tf.where(is_lost, tf.ones_like(error), error)
  return tf.where(fitted.is_zero, tf.zeros_like(error), error)

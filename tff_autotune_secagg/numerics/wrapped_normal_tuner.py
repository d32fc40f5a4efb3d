# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The tuner that learns the next bin size from the masked sum."""

import collections
from typing import Optional

import tensorflow as tf

from tff_autotune_secagg.numerics import fitting
from tff_autotune_secagg.numerics import modes
from tff_autotune_secagg.numerics import operating_point
from tff_autotune_secagg.numerics import stripes
from tff_autotune_secagg.numerics import tuning


class WrappedNormalTuner(tuning.Tuner):
  """Sets the bin size of the next round from a wrapped-normal fit of this one.

  A round either runs at one bin size, or calibrates: then the bins are a ladder
  over 13 decades from which any scale can be read. The first round calibrates,
  and so does every round after one whose sum was blind, or 0 although clients
  had something to send: then the updates shrank a millionfold.

  State: `bin_size` (float32, units of the values, finite and positive, 1.0
    until the first fit) and `calibrating` (bool, the coming round is a
    calibration).

  Guarantees: a round without clients leaves the state as it was; one that is
    blind or whose residues are all 0 leaves the bin size as it was.

  References: Bonawitz et al. (2019, arXiv:1912.00131), section 4, for the rule
    with a given `wrap_probability`; `operating_point` for the automatic one.
  """

  def __init__(
    self,
    *,
    modulus: int,
    wrap_probability: Optional[float] = None,
    rounding: modes.Rounding = modes.Rounding.STOCHASTIC,
    decoding: modes.Decoding = modes.Decoding.POSTERIOR_MEAN,
    drift: float = operating_point.DEFAULT_DRIFT,
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
    super().__init__(modulus=modulus, rounding=rounding, decoding=decoding)
    operating_point.check_tuning(wrap_probability, drift)
    self._wrap_probability = wrap_probability
    self._drift = float(drift)

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
    return tf.where(
      state['calibrating'], stripes.ladder(), stripes.level(state['bin_size'])
    )

  def reported_bin_size(self, state: collections.OrderedDict) -> tf.Tensor:
    """Returns the round's bin size; of a calibration, the one before."""
    return state['bin_size']

  def next_state(
    self,
    state: collections.OrderedDict,
    fitted: fitting.WrappedNormalFit,
    num_clients: tf.Tensor,
  ) -> collections.OrderedDict:
    """Returns the state after a round, see `Tuner.next_state`."""
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

  def modulus_is_too_small(self, num_clients: tf.Tensor) -> tf.Tensor:
    """Tells whether no bin size serves this many clients well, scalar bool."""
    return self._has_modulus_problems(num_clients, self._wrap_probability)

  def _propose(self, fitted, num_clients):
    """Returns the bin size for the next round, float32."""
    clients = tf.maximum(num_clients, 1.0)
    if self._wrap_probability is None:
      best = operating_point.best_operating_point(
        clients, self._modulus, self._rounding, self._decoding, self._drift
      )
      proposal = best.bin_per_stddev * fitted.sum_stddev
    else:
      proposal = self._propose_by_paper(fitted, clients)
    proposal = tf.clip_by_value(
      proposal, tuning.SMALLEST_BIN, tuning.LARGEST_BIN
    )
    return tf.cast(proposal, tf.float32)

  def _propose_by_paper(self, fitted, clients):
    """Returns the bin size of the paper's rule, float64."""
    arguments = (
      self._wrap_probability,
      clients,
      self._modulus,
      self._rounding,
    )
    fixed_point = operating_point.paper_operating_point(*arguments)
    fixed = fixed_point.bin_per_stddev * fitted.sum_stddev
    quantile = operating_point.normal_quantile(self._wrap_probability)
    observed = fitted.observed_stddev
    rule = 2.0 * quantile * observed[0] / (self._modulus - 1)
    # Where the rule diverges, what it would reach once most coordinates are
    # rounded to 0 bounds it.
    rule = tf.where(
      operating_point.rule_has_fixed_point(*arguments),
      rule,
      tf.minimum(rule, fixed),
    )
    # A ladder has no one observed deviation; the rule's fixed point stands in.
    return tf.where(tf.equal(observed[0], observed[-1]), rule, fixed)

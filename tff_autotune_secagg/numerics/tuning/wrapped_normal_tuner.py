# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The tuner that learns the next bin size from the masked sums."""

import collections
from typing import Optional, Tuple

import tensorflow as tf

from tff_autotune_secagg import _checks
from tff_autotune_secagg.numerics.reading import fitting
from tff_autotune_secagg.numerics.reading import stripes
from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.tuning import bin_size
from tff_autotune_secagg.numerics.tuning import forecasting
from tff_autotune_secagg.numerics.tuning import modulus_problems
from tff_autotune_secagg.numerics.tuning import operating_point
from tff_autotune_secagg.numerics.tuning import tuners

# As far as float32 has room for a sum, see `stripes.HIGHEST_RUNG`.
_SMALLEST_BIN = 1e-37
_LARGEST_BIN = 1e37


class WrappedNormalTuner(tuners.Tuner):
  """Sets the bin size of the next round from wrapped-normal fits of all before.

  A round either runs at one bin size, or calibrates: then the bins are a ladder
  over 13 decades from which any scale can be read. The first round calibrates,
  and so does every round after one whose sum was blind, or 0 although clients
  had something to send. A calibration that finds nothing moves the ladder, up
  if the sum was blind and down if it was 0, until it finds the sum or float32
  ends.

  The bin size is that of least expected error under the forecast of the next
  sum's size (`forecasting`); with a given `wrap_probability`, that of the
  paper's rule for the size of the last sum.

  State:
    `bin_size` (float32, units of the values, finite and positive, 1.0 until the
    first fit), `calibrating` (bool, the coming round is a calibration), `rung`
    (int32, where the ladder stands) and `forecast` (see `forecasting`; not with
    a given `wrap_probability`).

  Guarantees:
    A round without clients leaves the state as it was; one that is blind or
    whose residues are all 0 leaves the bin size as it was.

  References:
    Bonawitz et al. (2019, arXiv:1912.00131), section 4, for the rule with a
    given `wrap_probability`; `operating_point` and `forecasting` for the
    automatic one.
  """

  @_checks.names_modulus
  def __init__(
    self,
    *,
    modulus: int,
    wrap_probability: Optional[float] = None,
    rounding: modes.Rounding = modes.Rounding.STOCHASTIC,
    decoding: modes.Decoding = modes.Decoding.POSTERIOR_MEAN,
  ):
    """Initializes the tuner.

    Args:
      modulus: int in 2 .. 2**30, the one the sum is taken by.
      wrap_probability: None to minimize the expected error for the round's
        client count, or a float in (0, 1) for the paper's rule
        b = 2 z sigma_tot / (k - 1).
      rounding: the clients' `Rounding`.
      decoding: the server's `Decoding`, which moves the optimum a little.

    Raises:
      TypeError, ValueError: an argument is of the wrong kind or out of range.
    """
    super().__init__(modulus=modulus, rounding=rounding, decoding=decoding)
    operating_point.check_wrap_probability(wrap_probability)
    self._wrap_probability = wrap_probability

  @property
  def calibrates(self) -> bool:
    """True: nothing else finds the size of the first sum."""
    return True

  @property
  def wrap_probability(self) -> Optional[float]:
    """The wrap probability of the paper's rule, None if it is automatic."""
    return self._wrap_probability

  def initial_state(self) -> collections.OrderedDict:
    """Returns the state before the first round, which calibrates."""
    state = collections.OrderedDict(
      bin_size=tf.constant(1.0, tf.float32),
      calibrating=tf.constant(True),
      rung=tf.constant(0, tf.int32),
    )
    if self._wrap_probability is None:
      state['forecast'] = forecasting.initial_state()
    return state

  def bin_sizes(self, state: collections.OrderedDict) -> tf.Tensor:
    """Returns the bin sizes of the coming round, float32 [NUM_STRIPES]."""
    return tf.where(
      state['calibrating'],
      stripes.ladder(state['rung']),
      stripes.level(state['bin_size']),
    )

  def reported_bin_size(self, state: collections.OrderedDict) -> tf.Tensor:
    """Returns the round's bin size; of a calibration, the one before."""
    return state['bin_size']

  def size_forecast(
    self, state: collections.OrderedDict
  ) -> Tuple[tf.Tensor, tf.Tensor]:
    """Returns the forecast of `sum_stddev` and its uncertainty, float32.

    Before anything is known they are 0 and 30.
    """
    if self._wrap_probability is not None:
      return super().size_forecast(state)
    predicted = forecasting.forecast(state['forecast'])
    is_known = state['forecast']['num_errors'] > 0.0
    size = tf.minimum(tf.exp(predicted.mean), tf.float32.max)
    size = tf.where(is_known, size, tf.zeros_like(size))
    return tf.cast(size, tf.float32), tf.cast(predicted.stddev, tf.float32)

  def next_state(
    self,
    state: collections.OrderedDict,
    fitted: fitting.WrappedNormalFit,
    num_clients: tf.Tensor,
  ) -> collections.OrderedDict:
    """Returns the state after a round, see `Tuner.next_state`."""
    has_clients = num_clients > 0.0
    is_below = tf.logical_and(
      tf.logical_not(fitted.is_blind), fitted.sum_stddev <= 0.0
    )
    is_below = tf.logical_or(fitted.is_zero, is_below)
    is_lost = tf.logical_or(is_below, fitted.is_blind)
    learned = tf.logical_and(has_clients, tf.logical_not(is_lost))
    lost = tf.logical_and(has_clients, is_lost)
    clients = tf.maximum(num_clients, 1.0)
    next_state = collections.OrderedDict()
    if self._wrap_probability is None:
      forecast = self._learn(state, fitted, num_clients, is_lost, is_below)
      proposal = self._propose(forecast, clients)
    else:
      proposal = self._propose_by_paper(fitted, clients)
    proposal = tf.clip_by_value(proposal, _SMALLEST_BIN, _LARGEST_BIN)
    proposal = tf.cast(proposal, tf.float32)
    next_state['bin_size'] = tf.where(learned, proposal, state['bin_size'])
    next_state['calibrating'] = tf.where(
      learned, False, tf.logical_or(state['calibrating'], lost)
    )
    next_state['rung'] = _next_rung(state, learned, lost, is_below)
    if self._wrap_probability is None:
      next_state['forecast'] = forecast
    return next_state

  def modulus_is_too_small(self, num_clients: tf.Tensor) -> tf.Tensor:
    """Tells whether no bin size serves this many clients well, scalar bool."""
    return self._has_modulus_problems(num_clients, self._wrap_probability)

  def _learn(self, state, fitted, num_clients, is_lost, is_below):
    """Returns the next state of the forecast."""
    limit = tf.where(is_below, fitted.readable_from, fitted.readable_to)
    # A ladder that finds nothing does not say how far off the sum is.
    teaches_nothing = tf.logical_and(state['calibrating'], is_lost)
    observation = forecasting.Observation(
      num_clients=tf.where(
        teaches_nothing, tf.zeros_like(num_clients), num_clients
      ),
      log_size=tf.math.log(tf.maximum(fitted.sum_stddev, 1e-300)),
      log_size_stddev=fitted.log_stddev_error,
      is_readable=tf.logical_not(is_lost),
      log_limit=tf.math.log(tf.maximum(limit, 1e-300)),
      is_above=tf.logical_not(is_below),
    )
    return forecasting.update(state['forecast'], observation)

  def _propose(self, forecast, clients):
    """Returns the bin size of least expected error, float64."""
    found, _ = bin_size.best_bin_size(
      forecasting.forecast(forecast),
      clients,
      modulus=self._modulus,
      rounding=self._rounding,
      decoding=self._decoding,
    )
    return found

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
      modulus_problems.rule_has_fixed_point(*arguments),
      rule,
      tf.minimum(rule, fixed),
    )
    # A ladder has no one observed deviation; the rule's fixed point stands in.
    return tf.where(tf.equal(observed[0], observed[-1]), rule, fixed)


def _next_rung(state, learned, lost, is_below):
  """Returns where the ladder stands in the coming round.

  At 0 unless a calibration has just found nothing.
  """
  rungs = stripes.RUNGS_AT_ONCE
  moved = state['rung'] + tf.where(is_below, -rungs, rungs)
  moved = tf.clip_by_value(moved, stripes.LOWEST_RUNG, stripes.HIGHEST_RUNG)
  missed = tf.logical_and(state['calibrating'], lost)
  rung = tf.where(missed, moved, state['rung'])
  return tf.where(learned, tf.zeros_like(rung), rung)

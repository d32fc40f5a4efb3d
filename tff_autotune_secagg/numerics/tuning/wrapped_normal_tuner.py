# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The tuner that learns the next bin size from the masked sums."""

import collections
from typing import Optional, Tuple

import tensorflow as tf

from tff_autotune_secagg import _checks
from tff_autotune_secagg.numerics import subgraphs
from tff_autotune_secagg.numerics.reading import fitting
from tff_autotune_secagg.numerics.reading import stripes
from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.tuning import forecasting
from tff_autotune_secagg.numerics.tuning import modulus_problems
from tff_autotune_secagg.numerics.tuning import operating_point
from tff_autotune_secagg.numerics.tuning import tuners

# A guess of the first sum's size is taken to be off by this much of its
# logarithm, and its cohort, if unknown, for this large.
_GUESS_STDDEV = 1.5
_GUESS_CLIENTS = 10

# Where the ladder stands as long as the guess is to be tried; no ladder that
# moves comes there.
_GUESS_RUNG = 1

# A calibration of so many clients that half a period is less than this many
# standard deviations of their rounding shows little else.
_ROUNDING_STDDEVS = 7.0

# Sizes that a user may expect.
_SMALLEST_SIZE = 1e-30
_LARGEST_SIZE = 1e30

# As far as float32 has room for a sum, see `stripes.HIGHEST_RUNG`.
_SMALLEST_BIN = 1e-37
_LARGEST_BIN = 1e37


@subgraphs.traced_once
def best_bin_size(
  predicted: forecasting.Forecast,
  num_clients: tf.Tensor,
  *,
  modulus: int,
  rounding: modes.Rounding,
  decoding: modes.Decoding,
) -> Tuple[tf.Tensor, tf.Tensor]:
  """Returns the bin size of least expected error under a forecast.

  Args:
    predicted: of the round.
    num_clients: float64 scalar of at least 1, clients whose rounding noise to
      reckon with: those of the last round stand in for those of the next. Which
      cohort the size is for is a matter of the forecast.
    modulus: Python int.
    rounding: the clients' mode.
    decoding: the server's mode.

  Returns:
    The bin size in units of the values and the error expected of it, float64.
  """
  # Relative to the forecast, so that any size is as good as 1.
  nodes = (predicted.log_sizes - predicted.mean, predicted.weights)
  best = operating_point.best_operating_point(
    num_clients, modulus, rounding, decoding, *nodes
  )
  error = operating_point.expected_nmse(
    best, num_clients, rounding, decoding, *nodes
  )
  return best.bin_per_stddev * tf.exp(predicted.mean), error


class WrappedNormalTuner(tuners.Tuner):
  """Sets the bin size of the next round from wrapped-normal fits of all before.

  A round either runs at one bin size, or calibrates: then the bins are a ladder
  over 13 decades from which any scale can be read. The first round calibrates,
  and so does every round after one whose sum was blind, or could not be told
  from 0 or from rounding although clients had something to send. A calibration
  that finds nothing moves the ladder, up if the sum was blind and down if it
  was 0, until it finds the sum or float32 ends.

  The bin size is that of least expected error under the forecast of the next
  sum's size (`forecasting`); with a given `wrap_probability`, that of the
  paper's rule for the size of the last sum.

  State:
    `bin_size` (float32, units of the values, finite and positive, 1.0 until the
    first fit), `calibrating` (bool, the coming round is a calibration), `rung`
    (int32, where the ladder stands; 1 while a guess is to be tried) and
    `forecast` (see `forecasting`; not with a given `wrap_probability`).

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
    decoding: modes.Decoding = modes.Decoding.UNBIASED,
    expected_size: Optional[float] = None,
    num_clients: Optional[int] = None,
  ):
    """Initializes the tuner.

    Args:
      modulus: int in 2 .. 2**30, the one the sum is taken by.
      wrap_probability: None to minimize the expected error for the round's
        client count, or a float in (0, 1) for the paper's rule
        b = 2 z sigma_tot / (k - 1).
      rounding: the clients' `Rounding`.
      decoding: the server's `Decoding`, which moves the optimum a little.
      expected_size: a guess of the first sum's `sum_stddev`, 1e-30 to 1e30,
        units of the values; None if nothing is known. With it half of the first
        round's coordinates are quantized for that size. A guess that is wrong
        costs little: the other half finds any size, as before.
      num_clients: clients expected in the first round; used with
        `expected_size` only.

    Raises:
      TypeError, ValueError: an argument is of the wrong kind or out of range.
    """
    super().__init__(modulus=modulus, rounding=rounding, decoding=decoding)
    wrap_probability = operating_point.check_wrap_probability(wrap_probability)
    if expected_size is not None:
      expected_size = _checks.check_float(
        'expected_size',
        expected_size,
        at_least=_SMALLEST_SIZE,
        at_most=_LARGEST_SIZE,
      )
      if wrap_probability is not None:
        raise ValueError(
          '`expected_size` must be left out where `wrap_probability` is given,'
          f" found {expected_size} and {wrap_probability}: the paper's rule"
          ' begins with a calibration of its own.'
        )
    self._wrap_probability = wrap_probability
    self._expected_size = expected_size
    num_clients = _checks.check_optional_count(
      'num_clients', num_clients, _checks.MAX_COUNT
    )
    self._first_clients = num_clients or _GUESS_CLIENTS

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
      rung=tf.constant(
        0 if self._expected_size is None else _GUESS_RUNG, tf.int32
      ),
    )
    if self._wrap_probability is None:
      state['forecast'] = forecasting.initial_state()
    return state

  def bin_sizes(self, state: collections.OrderedDict) -> tf.Tensor:
    """Returns the bin sizes of the coming round, float32 [NUM_STRIPES]."""
    ladder = stripes.ladder(state['rung'])
    if self._expected_size is not None:
      # Once: a later calibration is one because the size is a surprise.
      is_guess = tf.equal(state['rung'], _GUESS_RUNG)
      ladder = tf.where(is_guess, self._ladder_around_guess(), ladder)
    return tf.where(
      state['calibrating'], ladder, stripes.level(state['bin_size'])
    )

  def _ladder_around_guess(self):
    """Returns the bin sizes of a first round whose size is guessed."""
    best = operating_point.best_operating_point(
      tf.constant(self._first_clients, tf.float64),
      self._modulus,
      self._rounding,
      self._decoding,
      *operating_point.normal_nodes(_GUESS_STDDEV),
    )
    bin_size = best.bin_per_stddev * self._expected_size
    bin_size = tf.clip_by_value(bin_size, _SMALLEST_BIN, _LARGEST_BIN)
    return stripes.ladder_around(tf.cast(bin_size, tf.float32))

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
      is_rounding=tf.logical_and(
        state['calibrating'],
        self._modulus / 2.0 < _ROUNDING_STDDEVS * tf.sqrt(num_clients / 6.0),
      ),
    )
    return forecasting.update(state['forecast'], observation)

  def _propose(self, forecast, clients):
    """Returns the bin size of least expected error, float64."""
    found, _ = best_bin_size(
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

  At 0 unless a calibration has just found nothing. After one with a guess the
  whole ladder is still to be tried.
  """
  rungs = stripes.RUNGS_AT_ONCE
  moved = state['rung'] + tf.where(is_below, -rungs, rungs)
  moved = tf.clip_by_value(moved, stripes.LOWEST_RUNG, stripes.HIGHEST_RUNG)
  is_guess = tf.equal(state['rung'], _GUESS_RUNG)
  moved = tf.where(is_guess, tf.zeros_like(moved), moved)
  missed = tf.logical_and(state['calibrating'], lost)
  rung = tf.where(missed, moved, state['rung'])
  return tf.where(learned, tf.zeros_like(rung), rung)

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Who decides the bin size of a round, and carries it from round to round.

A `Tuner` is three pure functions on a small state: the initial state, the bin
sizes of a round, and the next state from the round's fit. Nobody else reads the
state.
"""

import abc
import collections
from typing import Optional

import tensorflow as tf

from tff_autotune_secagg import _checks
from tff_autotune_secagg.numerics import fitting
from tff_autotune_secagg.numerics import modes
from tff_autotune_secagg.numerics import operating_point
from tff_autotune_secagg.numerics import stripes

_SMALLEST_BIN = 1e-30
_LARGEST_BIN = 1e30


class Tuner(abc.ABC):
  """The settings of a round and its bin sizes.

  A class of your own defines the four abstract methods and calls the
  constructor here. Bin sizes must be finite and positive, and equal unless the
  round is to be a calibration (`stripes.ladder`).
  """

  def __init__(
    self,
    *,
    modulus: int,
    rounding: modes.Rounding = modes.Rounding.STOCHASTIC,
    decoding: modes.Decoding = modes.Decoding.POSTERIOR_MEAN,
  ):
    """Initializes the settings.

    Args:
      modulus: int in 2 .. 2**30, the one the sum is taken by.
      rounding: the clients' `Rounding`.
      decoding: the server's `Decoding`.

    Raises:
      TypeError, ValueError: an argument is of the wrong kind or out of range.
    """
    self._modulus = _checks.check_modulus(modulus)
    self._rounding = _checks.check_enum('rounding', rounding, modes.Rounding)
    self._decoding = _checks.check_enum('decoding', decoding, modes.Decoding)

  @property
  def modulus(self) -> int:
    """The modulus the sum is taken by."""
    return self._modulus

  @property
  def rounding(self) -> modes.Rounding:
    """How clients round."""
    return self._rounding

  @property
  def decoding(self) -> modes.Decoding:
    """How the server decodes."""
    return self._decoding

  @property
  def centres_lost_rounds(self) -> bool:
    """Whether `Decoding.CENTRED` holds for calibration and blind rounds too.

    If not, as here, they are decoded to the posterior mean whatever is chosen:
    centred residues of such a round say nothing, at a size that can be any.
    """
    return False

  @abc.abstractmethod
  def initial_state(self) -> collections.OrderedDict:
    """Returns the state before the first round: named tensors."""

  @abc.abstractmethod
  def bin_sizes(self, state: collections.OrderedDict) -> tf.Tensor:
    """Returns the bin sizes of the coming round, float32 [NUM_STRIPES]."""

  @abc.abstractmethod
  def reported_bin_size(self, state: collections.OrderedDict) -> tf.Tensor:
    """Returns the one bin size that the measurements name, float32."""

  @abc.abstractmethod
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

  def modulus_is_too_small(self, num_clients: tf.Tensor) -> tf.Tensor:
    """Tells whether no bin size serves this many clients well, scalar bool.

    True for any of `operating_point.ModulusProblems`.
    """
    return self._has_modulus_problems(num_clients, None)

  def _has_modulus_problems(self, num_clients, wrap_probability):
    problems = operating_point.modulus_problems(
      num_clients,
      self._modulus,
      wrap_probability,
      self._rounding,
      self._decoding,
    )
    return tf.reduce_any(problems)


class FixedBinSize(Tuner):
  """One bin size for all rounds. State: empty."""

  def __init__(
    self,
    *,
    bin_size: float,
    modulus: int,
    rounding: modes.Rounding = modes.Rounding.STOCHASTIC,
    decoding: modes.Decoding = modes.Decoding.CENTRED,
  ):
    """Initializes the tuner.

    Args:
      bin_size: float in 1e-30 .. 1e30, units of the values.
      modulus: int in 2 .. 2**30, the one the sum is taken by.
      rounding: the clients' `Rounding`.
      decoding: the server's `Decoding`.

    Raises:
      TypeError, ValueError: an argument is of the wrong kind or out of range.
    """
    super().__init__(modulus=modulus, rounding=rounding, decoding=decoding)
    self._bin_size = _checks.check_float(
      'bin_size', bin_size, at_least=_SMALLEST_BIN, at_most=_LARGEST_BIN
    )

  @property
  def centres_lost_rounds(self) -> bool:
    """True: the sum is unbiased whatever it is, as far as nothing wraps."""
    return True

  def initial_state(self) -> collections.OrderedDict:
    """Returns no state."""
    return collections.OrderedDict()

  def bin_sizes(self, state: collections.OrderedDict) -> tf.Tensor:
    """Returns the bin size for each stripe, float32 [NUM_STRIPES]."""
    return stripes.level(self.reported_bin_size(state))

  def reported_bin_size(self, state: collections.OrderedDict) -> tf.Tensor:
    """Returns the bin size, float32."""
    del state  # There is none.
    return tf.constant(self._bin_size, tf.float32)

  def next_state(self, state, fitted, num_clients) -> collections.OrderedDict:
    """Returns no state."""
    del fitted, num_clients  # Unused.
    return state


class WrappedNormalTuner(Tuner):
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
    proposal = tf.clip_by_value(proposal, _SMALLEST_BIN, _LARGEST_BIN)
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

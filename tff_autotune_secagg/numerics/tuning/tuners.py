# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Who decides the bin size of a round, and carries it from round to round.

A `Tuner` is a few pure functions on a small state: the initial state, the bin
sizes of a round, and the next state from the round's fit. Nobody else reads the
state, but for `learned_size`, which reads the forecast.
"""

import abc
import collections
from typing import Tuple

import tensorflow as tf

from tff_autotune_secagg import _checks
from tff_autotune_secagg.numerics import subgraphs
from tff_autotune_secagg.numerics.reading import fitting
from tff_autotune_secagg.numerics.reading import stripes
from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.tuning import modulus_problems

# Of bin sizes that a user chooses.
_SMALLEST_BIN = 1e-30
_LARGEST_BIN = 1e30


class Tuner(abc.ABC):
  """The settings of a round and its bin sizes.

  A class of your own defines the three abstract methods, and leaves the
  constructor to this one or calls it; docs/own_tuner.md has a whole one.
  Methods are traced once and run as TensorFlow: decide by `tf.where`, not in
  Python. Bin sizes must be finite, above 0, and equal unless the round is to be
  a calibration; then they ascend (`tuning.ladder`). A factory refuses wrong
  shapes, dtypes and first bins in `create`, others in the round.
  """

  @_checks.names_modulus
  def __init__(
    self,
    *,
    modulus: int,
    rounding: modes.Rounding = modes.Rounding.STOCHASTIC,
    decoding: modes.Decoding = modes.Decoding.UNBIASED,
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
    try:
      return self._modulus
    except AttributeError:
      raise AttributeError(
        f'The constructor of `{type(self).__name__}` must call'
        ' `super().__init__(modulus=...)`, found no modulus.'
      ) from None

  @property
  def rounding(self) -> modes.Rounding:
    """How clients round."""
    return self._rounding

  @property
  def decoding(self) -> modes.Decoding:
    """How the server decodes."""
    return self._decoding

  @property
  def calibrates(self) -> bool:
    """Whether it finds the size of sums by rounds on a ladder; False here."""
    return False

  @property
  def centres_lost_rounds(self) -> bool:
    """Whether `Decoding.CENTRED` holds for calibration and blind rounds too.

    If not, as here, they are decoded as with `Decoding.UNBIASED`:
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

  def reported_bin_size(self, state: collections.OrderedDict) -> tf.Tensor:
    """Returns the bin size that the measurements of a calibration name.

    float32, the smallest unless overridden. Other rounds have one bin size, and
    their measurements name it.
    """
    return self.bin_sizes(state)[0]

  def size_forecast(
    self, state: collections.OrderedDict
  ) -> Tuple[tf.Tensor, tf.Tensor]:
    """Returns what the tuner believed of the round, for the measurements.

    Two float32: the forecast of `sum_stddev`, and the standard deviation of its
    logarithm. Both 0 for a tuner that forecasts nothing, as here.
    """
    del state  # Unused.
    return tf.constant(0.0), tf.constant(0.0)

  def modulus_is_too_small(self, num_clients: tf.Tensor) -> tf.Tensor:
    """Tells whether no bin size serves this many clients well, scalar bool.

    True for any of `modulus_problems.ModulusProblems`.
    """
    return self._has_modulus_problems(num_clients, None)

  def _has_modulus_problems(self, num_clients, wrap_probability):
    return _has_modulus_problems(
      num_clients,
      modulus=self._modulus,
      wrap_probability=wrap_probability,
      rounding=self._rounding,
      decoding=self._decoding,
    )


@subgraphs.traced_once
def _has_modulus_problems(num_clients, **settings):
  """Tells whether there are any `ModulusProblems`."""
  return tf.reduce_any(modulus_problems.find(num_clients, **settings))


class FixedBinSize(Tuner):
  """One bin size for all rounds. State: empty."""

  @_checks.names_modulus
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
      bin_size: float in 1e-30 .. 1e30, units of the values that are summed: of
        updates times weights, inside a weighted mean.
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
    del state  # There is none.
    return stripes.level(tf.constant(self._bin_size, tf.float32))

  def next_state(self, state, fitted, num_clients) -> collections.OrderedDict:
    """Returns no state."""
    del fitted, num_clients  # Unused.
    return state

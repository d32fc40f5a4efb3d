# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a rule for the bin size would have cost on recorded sizes of sums.

A round with bin size b whose sum has the size sigma has the NMSE that
`decoding_error` predicts. If b is so small that the sum can not be read, the
round is lost, the rule learns no more than that, and the next round calibrates:
it costs the mean error of the ladder and shows its own size.
"""

import functools
import math
from typing import NamedTuple, Sequence

import numpy as np
import tensorflow as tf

from tff_autotune_secagg.numerics.reading import decoding_error
from tff_autotune_secagg.numerics.reading import wrapped_normal
from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.rounding import rounding_noise
from tff_autotune_secagg.numerics.tuning import forecasting
from tff_autotune_secagg.numerics.tuning import wrapped_normal_tuner

_ROUNDING = modes.Rounding.STOCHASTIC
_DECODING = modes.Decoding.UNBIASED
# ln of the bin size over the sum's size, where readability is looked for.
_LOG_RATIOS = np.linspace(-20.0, 10.0, 6001)


class Setting(NamedTuple):
  """What decides the error of a round beside its size and bin size.

  Attributes:
    modulus: k.
    num_clients: n of every round.
    num_coordinates: of the sum, which decides what is readable.
  """

  modulus: int
  num_clients: int
  num_coordinates: int


def _observed(setting, log_ratios):
  """Half period in observed standard deviations, and the share of noise."""
  n = tf.constant(float(setting.num_clients), tf.float64)
  bins = tf.exp(tf.constant(log_ratios, tf.float64))
  client_bins = 1.0 / (bins * tf.sqrt(n))
  variance = rounding_noise.decoded_variance(client_bins, n, _ROUNDING)
  noise = n * tf.square(bins) * variance
  return setting.modulus * bins / 2 / tf.sqrt(1 + noise), noise / (1 + noise)


def errors(setting: Setting, log_ratios: np.ndarray) -> np.ndarray:
  """NMSE of rounds with the given ln(bin size / size of the sum)."""
  half_periods, shares = _observed(setting, log_ratios)
  return decoding_error.nmse(half_periods, shares, _DECODING).numpy()


@functools.lru_cache(maxsize=None)
def log_reach(setting: Setting) -> float:
  """The smallest readable ln(bin size / size of the sum)."""
  half_periods, _ = _observed(setting, _LOG_RATIOS)
  readable = wrapped_normal.is_readable(
    1.0 - wrapped_normal.mean_cosine(0.5 / half_periods),
    tf.constant(float(setting.num_coordinates), tf.float64),
    setting.modulus,
  )
  return float(_LOG_RATIOS[np.argmax(readable.numpy())])


@functools.lru_cache(maxsize=None)
def _ladder(modulus):
  tuner = wrapped_normal_tuner.WrappedNormalTuner(modulus=modulus)
  return np.log(tuner.bin_sizes(tuner.initial_state()).numpy())


class Forecasting:
  """The package's forecast, and the bin size of least expected error."""

  def __init__(self, setting: Setting):
    self._clients = tf.constant(float(setting.num_clients), tf.float64)
    self._step = _forecasting_step(setting.modulus)
    self._state = forecasting.initial_state()
    self.mean = self.stddev = self.log_bin_size = math.nan

  def observe(self, log_size: float) -> None:
    """Learns the size of a readable round."""
    self._update(log_size, True)

  def miss(self, log_limit: float) -> None:
    """Learns that a size was beyond `log_limit`."""
    self._update(log_limit, False)

  def _update(self, log_size, is_readable):
    size = tf.constant(log_size, tf.float64)
    self._state, *found = self._step(
      self._state, size, tf.constant(is_readable), self._clients
    )
    self.mean, self.stddev, self.log_bin_size = (float(x) for x in found)


@functools.lru_cache(maxsize=None)
def _forecasting_step(modulus):
  """One round of the forecast as one graph."""

  @functools.partial(tf.function, autograph=False)
  def step(state, log_size, is_readable, num_clients):
    observation = forecasting.Observation(
      num_clients=num_clients,
      log_size=log_size,
      log_size_stddev=tf.zeros_like(log_size),
      is_readable=is_readable,
      log_limit=log_size,
      is_above=tf.constant(True),
      is_rounding=tf.constant(False),
    )
    state = forecasting.update(state, observation)
    predicted = forecasting.forecast(state)
    bin_size, _ = wrapped_normal_tuner.best_bin_size(
      predicted,
      num_clients,
      modulus=modulus,
      rounding=_ROUNDING,
      decoding=_DECODING,
    )
    return state, predicted.mean, predicted.stddev, tf.math.log(bin_size)

  return step


class Smoothing:
  """Exponential smoothing with a fixed gain and a fixed margin.

  With the gain 1 it is the rule of version 0.1, the last round's size; its
  `drift` is the margin.
  """

  def __init__(self, setting: Setting, gain: float, stddev: float):
    self._gain = gain
    self.mean = None
    self.stddev = stddev
    self._log_ratio = _log_ratio(setting.modulus, setting.num_clients, stddev)

  @property
  def log_bin_size(self) -> float:
    return self.mean + self._log_ratio

  def observe(self, log_size: float) -> None:
    """Learns the size of a readable round."""
    self.mean = (
      log_size
      if self.mean is None
      else (self.mean + self._gain * (log_size - self.mean))
    )

  def miss(self, log_limit: float) -> None:
    """Starts anew from the size that the calibration will show."""
    del log_limit  # This rule learns nothing from it.
    self.mean = None


@functools.lru_cache(maxsize=None)
def _log_ratio(modulus, num_clients, stddev):
  """ln of the best bin size over a forecast size that is off by `stddev`."""
  nodes, weights = np.polynomial.hermite_e.hermegauss(15)
  zero = tf.zeros([], tf.float64)
  predicted = forecasting.Forecast(
    tf.constant(stddev * nodes, tf.float64),
    tf.constant(weights / weights.sum(), tf.float64),
    zero,
    zero,
  )
  bin_size, _ = wrapped_normal_tuner.best_bin_size(
    predicted,
    tf.constant(float(num_clients), tf.float64),
    modulus=modulus,
    rounding=_ROUNDING,
    decoding=_DECODING,
  )
  return math.log(float(bin_size))


class Replay(NamedTuple):
  """Arrays with a number for each round.

  Attributes:
    errors: NMSE.
    is_blind: bool.
    log_bin_sizes: NaN for a calibration.
    means: of the forecasts; NaN for a calibration.
    stddevs: of the forecasts; NaN for a calibration.
  """

  errors: np.ndarray
  is_blind: np.ndarray
  log_bin_sizes: np.ndarray
  means: np.ndarray
  stddevs: np.ndarray


def replay(setting: Setting, rule, sizes: Sequence[float]) -> Replay:
  """Runs a rule over the sizes of a training's sums.

  Args:
    setting: of all rounds.
    rule: a new `Forecasting` or `Smoothing`.
    sizes: standard deviation of a coordinate of each round's sum.
  """
  log_sizes = np.log(sizes)
  reach = log_reach(setting)
  rounds = len(log_sizes)
  is_blind = np.zeros(rounds, bool)
  chosen, means, stddevs = (np.full(rounds, math.nan) for _ in range(3))
  is_calibration = True
  for index, log_size in enumerate(log_sizes):
    if not is_calibration:
      chosen[index] = rule.log_bin_size
      means[index], stddevs[index] = rule.mean, rule.stddev
      is_blind[index] = chosen[index] - log_size < reach
    if is_blind[index]:
      rule.miss(chosen[index] - reach)
    else:
      rule.observe(log_size)
    is_calibration = is_blind[index]
  is_ladder = np.isnan(chosen)
  found = errors(setting, np.where(is_ladder, 0.0, chosen - log_sizes))
  ladder = _ladder(setting.modulus)[np.newaxis] - log_sizes[:, np.newaxis]
  found = np.where(is_ladder, errors(setting, ladder).mean(axis=1), found)
  return Replay(
    np.where(is_blind, 1.0, found), is_blind, chosen, means, stddevs
  )

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the rounds so far say about the size of the next sum.

The size is x = ln(standard deviation of a coordinate of the sum). In federated
training it is a slowly moving level plus fresh noise in each round, from the
clients that happened to come: the local-level model (West and Harrison 1997,
chapter 2), whose best forecast is exponential smoothing, m <- m + g (x - m),
with a gain g that depends on the two variances (Muth 1960). Neither is known,
so three gains run side by side:

- each learns the scale of its one-step errors, with forgetting and with the
  weights of a t-distribution, which bound what a single error can teach (Lange,
  Little and Taylor 1989, JASA 84);
- each is weighted by the discounted product of the densities that it gave to
  what came;
- the forecast is the mixture of their predictive t-distributions.

A surprise is an error far beyond the scales. A first one is taken for a jump:
all levels move to it, so that the next round is forecast well, and no scale
learns from it. Surprises that repeat are no jumps but noise, and are learned.

All of it is a function of past decoded sums: nothing new leaves a client.
"""

import collections
import math
from typing import NamedTuple, Optional

import numpy as np
import tensorflow as tf

from tff_autotune_secagg.numerics.tuning import local_level

_SURPRISE_STDDEVS = 4.0
_SURPRISE_LOG = 2.0
# From here on no bin size serves both ends; such a jump never teaches.
_MAX_LEARNED_LOG = math.log(100.0)
# Surprises are forgotten as quickly as errors. Out and back again, which counts
# 2, is one jump that did not stay. After the second within thirteen rounds,
# surprises are noise; after one, a further jump may still be one that stays.
_REPEATED = 2.5
# An unreadable sum is taken to be this far, in ln, beyond what can be read.
_BEYOND_REACH = 1.0
# Of the way to an unreadable sum. A size that is still this far, or just beyond
# what could be read, has stayed.
_STAYED = 0.6

# Sizes of float64 lie within e^+-710.
_MAX_LOG_SIZE = 700.0
# Before anything is known: the thirteen decades of the ladder.
_UNKNOWN_STDDEV = 30.0

_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
_NODE_WEIGHTS = _NODE_WEIGHTS / _NODE_WEIGHTS.sum()


class Forecast(NamedTuple):
  """A predictive distribution of ln(sum_stddev), as a discrete mixture.

  Attributes:
    log_sizes: float64 [45], nodes.
    weights: float64 [45], their probabilities.
    mean: float64 scalar, of the mixture; 0 before anything is known.
    stddev: float64 scalar, of the mixture; 30 before anything is known.
  """

  log_sizes: tf.Tensor
  weights: tf.Tensor
  mean: tf.Tensor
  stddev: tf.Tensor


class Observation(NamedTuple):
  """What a round showed; scalars, float64 or bool.

  Attributes:
    num_clients: clients in the sum. With 0 the round teaches nothing: use it
      for an empty round, and for a calibration that found nothing.
    log_size: ln(sum_stddev); not used if not `is_readable`.
    log_size_stddev: standard error of `log_size`: 0 for an ordinary round,
      more for a calibration, which sees few coordinates at each bin size.
    is_readable: whether the sum told its size.
    log_limit: if not `is_readable`, ln of the nearest size it can have had: the
      largest that can be read, or for a sum of 0 the smallest.
    is_above: if not `is_readable`, whether the size is above `log_limit`.
  """

  num_clients: tf.Tensor
  log_size: tf.Tensor
  log_size_stddev: tf.Tensor
  is_readable: tf.Tensor
  log_limit: tf.Tensor
  is_above: tf.Tensor


def initial_state() -> collections.OrderedDict:
  """Returns the state before the first round, thirteen float64 numbers.

  `level` [3], a forecast of ln(sum_stddev) for each gain; `squared_errors` [3],
  their discounted sum; `num_errors`, how many they are, 0 before anything is
  known; `log_weights` [3], of the gains; `num_clients`, of the last round;
  `surprises`, their discounted count; `missed`, how far above the forecast
  (below, if negative) an unreadable sum was that has not been explained yet.
  """
  zero = tf.zeros([], tf.float64)
  zeros = tf.zeros([len(local_level.GAINS)], tf.float64)
  return collections.OrderedDict(
    level=zeros,
    squared_errors=zeros,
    num_errors=zero,
    log_weights=zeros,
    num_clients=zero,
    surprises=zero,
    missed=zero,
  )


def forecast(
  state: collections.OrderedDict, num_clients: Optional[tf.Tensor] = None
) -> Forecast:
  """Returns the predictive distribution of the coming round's size.

  Each t-distribution is taken as a normal of its variance, at fifteen nodes.

  Args:
    state: of `initial_state` or `update`.
    num_clients: float64 scalar, clients of the coming round if they are known;
      those of the last round otherwise.
  """
  added = tf.zeros([], tf.float64)
  if num_clients is not None:
    state, added = local_level.change_cohort(state, num_clients)
  degrees = local_level.degrees(state)
  variance = local_level.variances(state) * degrees / (degrees - 2.0) + added
  deviations = tf.sqrt(variance)[:, tf.newaxis] * _NODES
  log_sizes = tf.reshape(state['level'][:, tf.newaxis] + deviations, [-1])
  weights = tf.nn.softmax(state['log_weights'])[:, tf.newaxis] * _NODE_WEIGHTS
  weights = tf.reshape(weights, [-1])
  mean = tf.reduce_sum(weights * log_sizes)
  variance = tf.reduce_sum(weights * tf.square(log_sizes - mean))
  stddev = tf.where(
    state['num_errors'] > 0.0,
    tf.sqrt(variance),
    tf.constant(_UNKNOWN_STDDEV, tf.float64),
  )
  return Forecast(log_sizes, weights, mean, stddev)


def update(
  state: collections.OrderedDict, observation: Observation
) -> collections.OrderedDict:
  """Returns the state after a round.

  - A readable round moves the levels and teaches the scales, unless it is a
    surprise. Its own error moves levels less and teaches nothing.
  - An unreadable one keeps the levels and widens the scales; if it was a
    surprise, it waits for the next readable round. A size that has stayed out
    there, surprise or not, was a jump. One that came back is forgotten, unless
    it has happened twice before within some ten rounds: then it is learned.
  - A cohort of n' clients after one of n moves the expected size by the middle
    of ln(n' / n) / 2 (independent clients) and ln(n' / n) (equal ones), and
    what that leaves open is not learned as noise.

  Args:
    state: of `initial_state` or `update`.
    observation: what the round showed. Numbers that are not finite teach as
      little as a round without clients.

  Returns:
    The next state, of the same types; finite.
  """
  readable = observation.is_readable
  observed = tf.where(readable, observation.log_size, observation.log_limit)
  is_usable = tf.logical_and(
    observation.num_clients > 0.0,
    tf.math.is_finite(observed + observation.log_size_stddev),
  )
  observed = tf.clip_by_value(observed, -_MAX_LOG_SIZE, _MAX_LOG_SIZE)
  error_variance = tf.square(observation.log_size_stddev)
  moved, added = local_level.change_cohort(state, observation.num_clients)
  after = _select(
    readable,
    _after_readable(moved, observed, error_variance, added),
    _after_unreadable(moved, observed, observation.is_above, added),
  )
  first = _select(readable, local_level.jump(moved, observed), moved)
  after = _select(moved['num_errors'] > 0.0, after, first)
  return _select(is_usable, after, state)


def _surprise_limit(state, variance):
  """How far an error must go, in ln, to be a surprise; scalar."""
  scale = tf.sqrt(tf.reduce_max(local_level.variances(state)) + variance)
  limit = _SURPRISE_STDDEVS * scale
  return tf.clip_by_value(limit, _SURPRISE_LOG, _MAX_LEARNED_LOG)


def _select(condition, if_true, if_false):
  """Returns one of two states."""
  return tf.nest.map_structure(
    lambda one, other: tf.where(condition, one, other), if_true, if_false
  )


def _after_readable(state, log_size, error_variance, level_variance):
  """Returns the state after a readable round that was not the first."""
  is_noise = state['surprises'] >= _REPEATED
  errors = log_size - state['level']
  nearest = tf.gather(errors, tf.argmin(tf.abs(errors)))
  limit = _surprise_limit(state, error_variance + level_variance)
  is_surprise = tf.abs(nearest) > limit
  missed = state['missed']
  distance = tf.abs(missed)
  least = tf.minimum(_STAYED * distance, distance - _BEYOND_REACH)
  stayed = nearest * tf.sign(missed) > least
  came_back = tf.logical_and(distance > _SURPRISE_LOG, tf.logical_not(stayed))
  # Out of reach, and read there: a step that has stayed, however small.
  is_step = tf.logical_and(distance > 0.0, stayed)
  is_step = tf.logical_and(is_step, tf.logical_not(is_noise))

  zero = tf.zeros_like(missed)
  teaches = tf.logical_and(came_back, is_noise)
  teaches = tf.logical_and(teaches, distance < _MAX_LEARNED_LOG)
  taught = local_level.learn(
    state, local_level.mean(state) + missed, zero, zero, teaches
  )
  state = _select(teaches, taught, state)

  is_jump = tf.logical_or(came_back, tf.logical_not(is_noise))
  is_jump = tf.logical_or(is_jump, tf.abs(nearest) > _MAX_LEARNED_LOG)
  is_jump = tf.logical_or(tf.logical_and(is_surprise, is_jump), is_step)
  learned = local_level.learn(
    state, log_size, error_variance, level_variance, is_noise
  )
  after = _select(is_jump, local_level.jump(state, log_size), learned)
  new = tf.where(came_back, zero + 2.0, tf.cast(is_surprise, tf.float64))
  surprises = local_level.ERROR_MEMORY * state['surprises'] + new
  return collections.OrderedDict(after, surprises=surprises, missed=zero)


def _after_unreadable(state, log_limit, is_above, level_variance):
  """Returns the state after a round that was out of reach."""
  side = tf.where(is_above, 1.0, -1.0)
  side = tf.cast(side, tf.float64)
  distance = side * (log_limit - local_level.mean(state)) + _BEYOND_REACH
  is_surprise = distance > _surprise_limit(state, level_variance)
  # Of several in a row the first counts: the forecast has not moved since. What
  # is no surprise, but far for scales that are wide, is noise and not kept.
  is_kept = tf.logical_or(is_surprise, tf.abs(distance) <= _SURPRISE_LOG)
  missed = tf.where(is_kept, side * distance, tf.zeros_like(distance))
  missed = tf.where(tf.abs(state['missed']) > 0.0, state['missed'], missed)
  waiting = collections.OrderedDict(state, missed=missed)
  errors = tf.maximum(side * (log_limit - state['level']), 0.0)
  errors += tf.sqrt(local_level.variances(state))
  widened = collections.OrderedDict(
    waiting,
    squared_errors=local_level.ERROR_MEMORY * state['squared_errors']
    + tf.square(errors),
    num_errors=local_level.ERROR_MEMORY * state['num_errors'] + 1.0,
  )
  return _select(is_surprise, waiting, widened)

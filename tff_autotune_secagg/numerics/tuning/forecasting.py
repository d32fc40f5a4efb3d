# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the rounds so far say about the size of the next sum.

The size is x = ln(standard deviation of a coordinate of the sum). In federated
training it is a slowly moving level plus fresh noise in each round, from the
clients that happened to come: the local-level model (West and Harrison 1997,
chapter 2), whose best forecast is exponential smoothing, m <- m + g (x - m),
with a gain g that depends on the two variances (Muth 1960). A sum of n clients
is n^c times as large as that of a client of the mean size, with c = 1/2 for
independent clients and 1 for clients that agree. Where clients shrink what they
send as cohorts grow, c goes down to 0. So the level is that of x - c ln n.

Neither g nor c is known, so nine forecasters run side by side, three gains
times three exponents:

- each learns the scale of its one-step errors, with forgetting and with the
  weights of a t-distribution, which bound what a single error can teach (Lange,
  Little and Taylor 1989, JASA 84);
- each is weighted by the discounted product of the densities that it gave to
  what came.

How many clients will come is not known either. The next cohort is taken for one
of the last twelve. If cohorts are drawn afresh in each round, each of the
twelve is as likely as the others; if they change for good, the last one counts.
The ratio of von Neumann (1941, Annals of Mathematical Statistics 12), the mean
squared difference of successive ln n over twice their variance, is near 1 for
the first and small for the second.

The forecast is the mixture of the t-distributions that all of this gives.

Before the first sum it knows nothing. The first sum sets all levels; errors of
0.2 in ln, which count for three, are the prior of the scales. A user's guess of
the first size, `expected_size`, is no part of the forecast: it moves the ladder
of the first round (`wrapped_normal_tuner`).
Before the first sum nothing is assumed: the reported size is 0, its uncertainty
30, and the first round calibrates.

A surprise is an error far beyond the scales. A first one is taken for a jump:
all levels move to it, so that the next round is forecast well, and no scale
learns from it. Surprises that repeat are no jumps but noise, and are learned.

All of it is a function of past decoded sums: nothing new leaves a client.
"""

import collections
import math
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tff_autotune_secagg.numerics import subgraphs

# The forecasters: gain and exponent of each.
_GAINS, _EXPONENTS = (
  part.reshape(-1)
  for part in np.meshgrid([1.0, 0.5, 0.25], [0.0, 0.5, 1.0], indexing='ij')
)
NUM_FORECASTERS = len(_GAINS)
# Cohorts that are remembered.
NUM_COHORTS = 12

# Squared errors are remembered over ten rounds, densities over twenty.
_ERROR_MEMORY = 0.9
_WEIGHT_MEMORY = 0.95
# Weights and floor make the variance of normal errors too small by this factor.
_CONSISTENCY = 1.2
# What is assumed before the first error, and forgotten: errors of 0.2 in ln.
_PRIOR_STDDEV = 0.2
_PRIOR_COUNT = 3.0
# What is never forgotten: three errors of 0.04 in ln, which keep scales from 0.
_FLOOR_STDDEV = 0.04
_FLOOR_COUNT = 3.0

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

# Each t-distribution is taken as a normal of its variance, at fifteen nodes.
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
_NODE_WEIGHTS = _NODE_WEIGHTS / _NODE_WEIGHTS.sum()


class Forecast(NamedTuple):
  """A predictive distribution of ln(sum_stddev), as a discrete mixture.

  Attributes:
    log_sizes: float64 [1620], nodes.
    weights: float64 [1620], their probabilities.
    mean: float64 scalar, of the mixture; 0 before anything is known.
    stddev: float64 scalar, of the mixture; 30 before anything is known, when
      the nodes mean nothing.
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
    is_rounding: whether the round showed little but its clients' rounding, so
      that the size is that of independent clients.
  """

  num_clients: tf.Tensor
  log_size: tf.Tensor
  log_size_stddev: tf.Tensor
  is_readable: tf.Tensor
  log_limit: tf.Tensor
  is_above: tf.Tensor
  is_rounding: tf.Tensor


def initial_state() -> collections.OrderedDict:
  """Returns the state before the first round, 42 float64 numbers.

  For each forecaster: `level` [9], ln of the size without its part of the
  cohort; `squared_errors` [9], their discounted sum; `log_weights` [9]. For
  all: `num_errors`, how many errors they are, 0 before anything is known;
  `surprises`, their discounted count; `missed`, how far above the forecast
  (below, if negative) an unreadable sum was that has not been explained yet;
  `cohorts` [12], the clients of the last rounds that taught something, newest
  first, 0 where there were fewer.
  """
  zero = tf.zeros([], tf.float64)
  zeros = tf.zeros([NUM_FORECASTERS], tf.float64)
  return collections.OrderedDict(
    level=zeros,
    squared_errors=zeros,
    num_errors=zero,
    log_weights=zeros,
    surprises=zero,
    missed=zero,
    cohorts=tf.zeros([NUM_COHORTS], tf.float64),
  )


@subgraphs.traced_once
def forecast(state: collections.OrderedDict) -> Forecast:
  """Returns the predictive distribution of the coming round's size.

  Args:
    state: of `initial_state` or `update`.
  """
  log_cohorts, cohort_weights = _next_cohort(state)
  # [forecasters, cohorts, nodes]
  means = tf.expand_dims(state['level'], -1) + _EXPONENTS[:, np.newaxis] * (
    log_cohorts
  )
  stddevs = tf.sqrt(_variances(state) * _degrees(state) / (_degrees(state) - 2))
  deviations = tf.reshape(stddevs, [-1, 1, 1]) * _NODES
  log_sizes = tf.reshape(tf.expand_dims(means, -1) + deviations, [-1])
  weights = tf.reshape(tf.nn.softmax(state['log_weights']), [-1, 1, 1])
  weights = weights * tf.expand_dims(cohort_weights, -1) * _NODE_WEIGHTS
  weights = tf.reshape(weights, [-1])
  mean = tf.reduce_sum(weights * log_sizes)
  variance = tf.reduce_sum(weights * tf.square(log_sizes - mean))
  stddev = tf.where(
    state['num_errors'] > 0.0,
    tf.sqrt(variance),
    tf.constant(_UNKNOWN_STDDEV, tf.float64),
  )
  return Forecast(log_sizes, weights, mean, stddev)


@subgraphs.traced_once
def update(
  state: collections.OrderedDict, observation: Observation
) -> collections.OrderedDict:
  """Returns the state after a round.

  - A readable round moves the levels and teaches the scales, unless it is a
    surprise. The larger its standard error, the less it moves the levels.
  - An unreadable one keeps the levels and widens the scales; if it was a
    surprise, it waits for the next readable round. A size that has stayed out
    there, surprise or not, was a jump. One that came back is forgotten, unless
    it has happened twice before within thirteen rounds: then it is learned.
  - If the round was out of reach and no surprise, the size now read would have
    been in reach, and this round shows little but rounding, then the level
    moves to the edge of what was out of reach. Clients that agree have a larger
    sum than such a round finds, and bins for the smaller one would lose the
    next round as well.

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
  clients = tf.maximum(observation.num_clients, 1.0)
  # What each forecaster is to explain: the size without its cohort's part.
  sizes = observed - _EXPONENTS * tf.math.log(clients)
  error_variance = tf.square(observation.log_size_stddev)
  after = _select(
    readable,
    _after_readable(state, sizes, error_variance, observation.is_rounding),
    _after_unreadable(state, sizes, observation.is_above),
  )
  first = _select(readable, _jump(state, sizes), state)
  after = _select(state['num_errors'] > 0.0, after, first)
  cohorts = tf.concat([[clients], state['cohorts'][:-1]], axis=0)
  after = collections.OrderedDict(after, cohorts=cohorts)
  return _select(is_usable, after, state)


def _next_cohort(state):
  """Returns ln of the cohorts that may come, and their probabilities, [12]."""
  cohorts = state['cohorts']
  is_filled = tf.cast(cohorts > 0.0, tf.float64)
  num_filled = tf.maximum(tf.reduce_sum(is_filled), 1.0)
  logs = tf.math.log(tf.maximum(cohorts, 1.0))
  mean = tf.reduce_sum(is_filled * logs) / num_filled
  num_others = tf.maximum(num_filled - 1.0, 1.0)
  variance = tf.reduce_sum(is_filled * tf.square(logs - mean)) / num_others
  steps = is_filled[1:] * tf.square(logs[1:] - logs[:-1])
  mean_square_step = tf.reduce_sum(steps) / num_others
  # Of rounding alone: equal cohorts are no spread.
  is_spread = variance > 1e-12
  ratio = mean_square_step / tf.where(is_spread, 2.0 * variance, 1.0)
  afresh = tf.where(is_spread, tf.minimum(ratio, 1.0), 0.0)
  newest = tf.one_hot(0, NUM_COHORTS, dtype=tf.float64)
  weights = afresh * is_filled / num_filled + (1.0 - afresh) * newest
  return logs, weights


def _degrees(state):
  """Degrees of freedom of the t-distributions, scalar, at least 3."""
  return state['num_errors'] + _FLOOR_COUNT


def _variances(state):
  """Squared scales of one-step errors, [9]."""
  floor = _FLOOR_COUNT * _FLOOR_STDDEV**2
  return (state['squared_errors'] + floor) / _degrees(state)


def _mean(state, values):
  """Mean of the forecasters' values by their weights, scalar."""
  return tf.reduce_sum(tf.nn.softmax(state['log_weights']) * values)


def _jump(state, sizes):
  """Returns the state with all levels at a size; nothing is learned from it."""
  prior = _PRIOR_COUNT * tf.maximum(_variances(state), _PRIOR_STDDEV**2)
  return collections.OrderedDict(
    state,
    level=sizes,
    squared_errors=prior,
    num_errors=tf.constant(_PRIOR_COUNT, tf.float64),
  )


def _learn(state, sizes, error_variance, is_noise):
  """Returns the state after an ordinary observation.

  Errors of the variance `error_variance` are the observation's own. With
  `is_noise` far errors teach in full.
  """
  error = sizes - state['level']
  variance = _variances(state)
  total = variance + error_variance
  num_degrees = _degrees(state)
  squares = tf.square(error) / total
  # The weight of an observation in the fit of a t-distribution's scale.
  weight = _CONSISTENCY * (num_degrees + 1.0) / (num_degrees + squares)
  weight = tf.where(is_noise, tf.ones_like(weight), weight)
  log_density = (
    tf.math.lgamma((num_degrees + 1.0) / 2.0)
    - tf.math.lgamma(num_degrees / 2.0)
    - 0.5 * tf.math.log(math.pi * num_degrees * total)
    - (num_degrees + 1.0) / 2.0 * tf.math.log1p(squares / num_degrees)
  )
  log_weights = _WEIGHT_MEMORY * state['log_weights'] + log_density
  learned = weight * tf.square(error) * variance / total
  return collections.OrderedDict(
    state,
    level=state['level'] + _GAINS * variance / total * error,
    squared_errors=_ERROR_MEMORY * state['squared_errors'] + learned,
    num_errors=_ERROR_MEMORY * state['num_errors'] + 1.0,
    log_weights=log_weights - tf.reduce_max(log_weights),
  )


def _surprise_limit(state, variance):
  """How far an error must go, in ln, to be a surprise; scalar."""
  scale = tf.sqrt(tf.reduce_max(_variances(state)) + variance)
  limit = _SURPRISE_STDDEVS * scale
  return tf.clip_by_value(limit, _SURPRISE_LOG, _MAX_LEARNED_LOG)


def _select(condition, if_true, if_false):
  """Returns one of two states."""
  return tf.nest.map_structure(
    lambda one, other: tf.where(condition, one, other), if_true, if_false
  )


def _after_readable(state, sizes, error_variance, is_rounding):
  """Returns the state after a readable round that was not the first."""
  is_noise = state['surprises'] >= _REPEATED
  errors = sizes - state['level']
  nearest = tf.gather(errors, tf.argmin(tf.abs(errors)))
  is_surprise = tf.abs(nearest) > _surprise_limit(state, error_variance)
  missed = state['missed']
  distance = tf.abs(missed)
  least = tf.minimum(_STAYED * distance, distance - _BEYOND_REACH)
  stayed = nearest * tf.sign(missed) > least
  came_back = tf.logical_and(distance > _SURPRISE_LOG, tf.logical_not(stayed))
  is_doubtful = tf.logical_and(missed > 0.0, distance <= _SURPRISE_LOG)
  is_doubtful = tf.logical_and(is_doubtful, tf.logical_not(stayed))
  is_doubtful = tf.logical_and(is_doubtful, is_rounding)
  # Out of reach, and read there: a step that has stayed, however small.
  is_step = tf.logical_and(distance > 0.0, stayed)
  is_step = tf.logical_and(is_step, tf.logical_not(is_noise))

  zero = tf.zeros_like(missed)
  teaches = tf.logical_and(came_back, is_noise)
  teaches = tf.logical_and(teaches, distance < _MAX_LEARNED_LOG)
  where_missed = sizes - _mean(state, errors) + missed
  taught = _learn(state, where_missed, zero, teaches)
  state = _select(teaches, taught, state)

  is_jump = tf.logical_or(came_back, tf.logical_not(is_noise))
  is_jump = tf.logical_or(is_jump, tf.abs(nearest) > _MAX_LEARNED_LOG)
  is_jump = tf.logical_or(tf.logical_and(is_surprise, is_jump), is_step)
  learned = _learn(state, sizes, error_variance, is_noise)
  # Where it is doubtful, nothing has come back and nothing is taught.
  limit = tf.maximum(sizes, where_missed - _BEYOND_REACH)
  jumped = _jump(state, tf.where(is_doubtful, limit, sizes))
  after = _select(tf.logical_or(is_jump, is_doubtful), jumped, learned)
  new = tf.where(came_back, zero + 2.0, tf.cast(is_surprise, tf.float64))
  surprises = _ERROR_MEMORY * state['surprises'] + new
  return collections.OrderedDict(after, surprises=surprises, missed=zero)


def _after_unreadable(state, sizes, is_above):
  """Returns the state after a round that was out of reach."""
  side = tf.cast(tf.where(is_above, 1.0, -1.0), tf.float64)
  beyond = side * (sizes - state['level'])
  distance = _mean(state, beyond) + _BEYOND_REACH
  zero = tf.zeros_like(distance)
  is_surprise = distance > _surprise_limit(state, zero)
  # Of several in a row the first counts: the forecast has not moved since. What
  # is no surprise, but far for scales that are wide, is noise and not kept.
  is_kept = tf.logical_or(is_surprise, tf.abs(distance) <= _SURPRISE_LOG)
  missed = tf.where(is_kept, side * distance, zero)
  missed = tf.where(tf.abs(state['missed']) > 0.0, state['missed'], missed)
  waiting = collections.OrderedDict(state, missed=missed)
  errors = tf.maximum(beyond, 0.0) + tf.sqrt(_variances(state))
  widened = collections.OrderedDict(
    waiting,
    squared_errors=_ERROR_MEMORY * state['squared_errors'] + tf.square(errors),
    num_errors=_ERROR_MEMORY * state['num_errors'] + 1.0,
  )
  return _select(is_surprise, waiting, widened)

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Three exponential smoothings of a level, each with a scale of its errors.

The parts of `forecasting` that know the model. A state is that of
`forecasting.initial_state`.
"""

import collections
import math

import numpy as np
import tensorflow as tf

GAINS = (1.0, 0.5, 0.25)
# Squared errors are remembered over ten rounds, densities over twenty.
ERROR_MEMORY = 0.9
_WEIGHT_MEMORY = 0.95
# Weights and floor make the variance of normal errors too small by this factor.
_CONSISTENCY = 1.2
# What is assumed before the first error, and forgotten: errors of e^0.2.
_PRIOR_STDDEV = 0.2
_PRIOR_COUNT = 3.0
# What is never forgotten: three errors of e^0.04, which keep scales from 0.
_FLOOR_STDDEV = 0.04
_FLOOR_COUNT = 3.0


def degrees(state):
  """Degrees of freedom of the t-distributions, scalar, at least 3."""
  return state['num_errors'] + _FLOOR_COUNT


def variances(state):
  """Squared scales of one-step errors, [3]."""
  floor = _FLOOR_COUNT * _FLOOR_STDDEV**2
  return (state['squared_errors'] + floor) / degrees(state)


def mean(state):
  """Mean of the levels by the weights of their gains, scalar."""
  return tf.reduce_sum(tf.nn.softmax(state['log_weights']) * state['level'])


def change_cohort(state, num_clients):
  """Returns the state for that many clients, and the variance of its levels."""
  before = tf.maximum(state['num_clients'], 1.0)
  growth = tf.math.log(tf.maximum(num_clients, 1.0) / before)
  is_known = state['num_errors'] > 0.0
  growth = tf.where(is_known, growth, tf.zeros_like(growth))
  moved = collections.OrderedDict(
    state, level=state['level'] + 0.75 * growth, num_clients=num_clients
  )
  return moved, tf.square(growth / 4.0)


def jump(state, log_size):
  """Returns the state with all levels at a size; nothing is learned from it."""
  prior = _PRIOR_COUNT * tf.maximum(variances(state), _PRIOR_STDDEV**2)
  return collections.OrderedDict(
    state,
    level=log_size + tf.zeros_like(state['level']),
    squared_errors=prior,
    num_errors=tf.constant(_PRIOR_COUNT, tf.float64),
  )


def learn(state, log_size, error_variance, level_variance, is_noise):
  """Returns the state after an ordinary observation.

  Errors of the variance `error_variance` are the observation's own, those of
  `level_variance` the levels'. With `is_noise` far errors teach in full.
  """
  error = log_size - state['level']
  variance = variances(state)
  total = variance + error_variance + level_variance
  num_degrees = degrees(state)
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
  gain = (np.array(GAINS) * variance + level_variance) / total
  learned = weight * tf.square(error) * variance / total
  return collections.OrderedDict(
    state,
    level=state['level'] + gain * error,
    squared_errors=ERROR_MEMORY * state['squared_errors'] + learned,
    num_errors=ERROR_MEMORY * state['num_errors'] + 1.0,
    log_weights=log_weights - tf.reduce_max(log_weights),
  )

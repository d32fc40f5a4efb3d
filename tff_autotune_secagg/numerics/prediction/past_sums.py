# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The sum to expect of a cohort, from the sums of the rounds before.

The prediction of a sum of n clients is n times the mean contribution of a
client, both with the same forgetting::

    prediction = n * sum_t 0.6^t x_t / sum_t 0.6^t n_t,

with x_t the decoded sum of t rounds ago and n_t its clients. Sums of clients
that agree grow like n; a sum of independent clients has a variance that grows
like n, for which this ratio of sums is the best mean. Nothing else is needed in
the first rounds, nor where cohorts vary.
"""

import collections

import tensorflow as tf

# Of a round, in the next. A mean of more sums has less of their noise, and lags
# further behind a training that moves on.
_MEMORY = 0.6


def initial_state(dim: int) -> collections.OrderedDict:
  """Returns the state before the first sum, which predicts 0.

  `total` (float32 [dim], the discounted sum of past sums, units of the values)
  and `clients` (float32, that of their clients).

  Args:
    dim: coordinates of a sum.
  """
  return collections.OrderedDict(
    total=tf.zeros([dim], tf.float32), clients=tf.zeros([], tf.float32)
  )


def predict(
  state: collections.OrderedDict, num_clients: tf.Tensor
) -> tf.Tensor:
  """Returns the sum to expect, float32 [dim]; zeros if nothing is known.

  Args:
    state: of `initial_state` or `update`.
    num_clients: scalar, clients in the sum that is to be predicted.
  """
  clients = tf.maximum(state['clients'], 1.0)
  return state['total'] * (tf.cast(num_clients, tf.float32) / clients)


def is_read(measured: collections.OrderedDict) -> tf.Tensor:
  """Tells whether the whole of a sum was read, bool scalar.

  Of a calibration a part comes through; a sum that was blind, 0 or could not be
  told from rounding was decoded to 0, which says nothing of the next one.

  Args:
    measured: of `RoundCodec.decode`.
  """
  lost = [measured[name] for name in ('calibrating', 'blind', 'zero_sum')]
  lost.append(measured['sum_stddev'] <= 0.0)
  return tf.logical_not(tf.reduce_any(lost))


def update(
  state: collections.OrderedDict,
  decoded: tf.Tensor,
  num_clients: tf.Tensor,
  is_read: tf.Tensor,
) -> collections.OrderedDict:
  """Returns the state after a round.

  Args:
    state: of `initial_state` or `update`.
    decoded: float32 or float64 [dim], the decoded sum.
    num_clients: scalar, its clients.
    is_read: bool scalar, see the function of this name. Any other round leaves
      the state as it was.

  Returns:
    The next state, finite: sums that float32 cannot hold are forgotten, with
    all before them.
  """
  total = _MEMORY * state['total'] + tf.cast(decoded, tf.float32)
  clients = _MEMORY * state['clients'] + tf.cast(num_clients, tf.float32)
  is_finite = tf.reduce_all(tf.math.is_finite(total))
  after = collections.OrderedDict(
    total=tf.where(is_finite, total, tf.zeros_like(total)),
    clients=tf.where(is_finite, clients, tf.zeros_like(clients)),
  )
  return collections.OrderedDict(
    (name, tf.where(is_read, after[name], state[name])) for name in state
  )

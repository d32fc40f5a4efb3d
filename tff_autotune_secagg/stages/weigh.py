# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Weights: multiplied in at clients, divided out at the server.

A float weight travels as two integers, so that a secure sum of integers adds it
without rounding. A client that could spoil the sum is rejected, with value and
weight together.
"""

import collections

import tensorflow as tf

from tff_autotune_secagg.numerics import dtypes
from tff_autotune_secagg.stages import stage

# A weight travels as its whole part and its fraction in units of 2**-40, both
# exact in int64 for up to 2**22 clients.
_UNIT = MAX_WEIGHT = 2.0**40


class WeighStage(stage.Stage):
  """Turns the sum behind it into a mean.

  Secure signals:
    `whole` and `fraction`, the weight, and `rejected`. A client is rejected,
    and sends zeros beside `rejected`, if its weight is negative, not finite,
    above `MAX_WEIGHT` or between 0 and 2**-40, or if the squares of a leaf's
    products do not have a finite sum.
  """

  level = 'value'
  signal_limits = collections.OrderedDict(
    whole=int(MAX_WEIGHT), fraction=int(_UNIT), rejected=1
  )

  def __init__(self, specs, *, is_weighted):
    """Initializes the stage.

    Args:
      specs: of a client's value.
      is_weighted: whether the last leaf of `encode` is the weight, a scalar of
        any float or integer dtype; if not, all weights are 1.
    """
    super().__init__(specs)
    self.out_specs = [
      tf.TensorSpec(spec.shape, dtypes.working_dtype(spec.dtype))
      for spec in specs
    ]
    self._is_weighted = is_weighted

  def encode(self, leaves, parameters):
    """Multiplies by the weight, or rejects the client."""
    del parameters  # None.
    is_valid, weight = tf.constant(True), tf.constant(1.0, tf.float64)
    if self._is_weighted:
      *leaves, weight = leaves
      weight = tf.cast(weight, tf.float64)
      # A weight below a unit would be summed as 0, but its client's value would
      # count.
      is_known = tf.logical_or(tf.equal(weight, 0.0), weight >= 1.0 / _UNIT)
      is_valid = tf.logical_and(is_known, weight <= MAX_WEIGHT)
      weight = tf.where(is_valid, weight, 0.0)
    products = [
      tf.cast(leaf, dtypes.working_dtype(leaf.dtype)) for leaf in leaves
    ]
    if self._is_weighted:
      products = [p * tf.cast(weight, p.dtype) for p in products]
    # 0 times infinity is NaN, so the value needs no check of its own. The norm
    # bounds the coordinates of every rotation, so none of them can overflow.
    # The sum of squares is twice what TensorFlow computes in one pass.
    finite = [tf.math.is_finite(2.0 * tf.nn.l2_loss(p)) for p in products]
    is_valid = tf.reduce_all(finite + [is_valid])
    if products:
      products = tf.cond(
        is_valid,
        lambda: products,
        lambda: [tf.zeros_like(p) for p in products],
      )
    weight = tf.where(is_valid, weight, 0.0)
    whole = tf.floor(weight)
    signals = collections.OrderedDict(
      whole=tf.cast(whole, tf.int64),
      fraction=tf.cast(tf.round((weight - whole) * _UNIT), tf.int64),
      rejected=tf.cast(tf.logical_not(is_valid), tf.int32),
    )
    return products, signals

  def decode(self, leaves, signals, state):
    """Divides by the sum of weights; 0 if that is 0."""
    weight_sum = tf.cast(signals['whole'], tf.float64)
    weight_sum += tf.cast(signals['fraction'], tf.float64) / _UNIT
    means = []
    for leaf, spec in zip(leaves, self._specs):
      mean = tf.math.divide_no_nan(leaf, tf.cast(weight_sum, leaf.dtype))
      means.append(tf.cast(mean, spec.dtype))
    measurements = collections.OrderedDict(
      weight_sum=tf.cast(weight_sum, tf.float32),
      rejected_clients=signals['rejected'],
    )
    return means, state, measurements

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Weighted values whose weights are summed exactly.

A float weight travels as two integers, so that a secure sum of integers adds it
without rounding. A client that could spoil the sum is rejected, with value and
weight together.
"""

import collections
from typing import List, Optional, Sequence, Tuple

import tensorflow as tf

from tff_autotune_secagg.numerics import dtypes

# A weight travels as its whole part and its fraction in units of 2**-40, both
# exact in int64 for up to 2**22 clients.
_WEIGHT_BITS = 40
_UNIT = 2.0**_WEIGHT_BITS
MAX_WEIGHT = 2.0**_WEIGHT_BITS

# Largest value of each of a client's signals.
SIGNAL_LIMITS = collections.OrderedDict(
  whole=2**_WEIGHT_BITS, fraction=2**_WEIGHT_BITS, rejected=1
)


def weigh(
  leaves: Sequence[tf.Tensor], weight: Optional[tf.Tensor]
) -> Tuple[List[tf.Tensor], collections.OrderedDict]:
  """Multiplies a client's value by its weight, or rejects the client.

  Args:
    leaves: float tensors.
    weight: scalar of any float or integer dtype; None for a weight of 1.

  Returns:
    The products in the leaves' `working_dtype`, and the signals `whole` and
    `fraction` (int64, the weight) and `rejected` (int32). A client is rejected,
    and all but the last are 0, if the weight is negative, not finite, above
    `MAX_WEIGHT` or between 0 and 2**-40, or if the squares of a leaf's products
    do not have a finite sum.
  """
  products = [
    tf.cast(leaf, dtypes.working_dtype(leaf.dtype)) for leaf in leaves
  ]
  if weight is None:
    is_valid, weight = tf.constant(True), tf.constant(1.0, tf.float64)
  else:
    weight = tf.cast(weight, tf.float64)
    # A weight below a unit would be summed as 0, and its client's value not.
    is_known = tf.logical_or(tf.equal(weight, 0.0), weight >= 1.0 / _UNIT)
    is_valid = tf.logical_and(is_known, weight <= MAX_WEIGHT)
    weight = tf.where(is_valid, weight, 0.0)
    products = [p * tf.cast(weight, p.dtype) for p in products]
  # 0 times infinity is NaN, so that the value needs no look of its own. The
  # norm bounds the coordinates of every rotation: what passes here passes it.
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


def divide(
  leaves: Sequence[tf.Tensor],
  sums: collections.OrderedDict,
  specs: Sequence[tf.TensorSpec],
) -> Tuple[List[tf.Tensor], tf.Tensor]:
  """Divides the summed products by the summed weights.

  Args:
    leaves: sums of the products of `weigh`.
    sums: sums of its signals.
    specs: of the results.

  Returns:
    The mean, of `specs`, which is 0 if the weights add up to 0, and the sum of
    the weights (float32).
  """
  weight_sum = tf.cast(sums['whole'], tf.float64)
  weight_sum += tf.cast(sums['fraction'], tf.float64) / _UNIT
  means = []
  for leaf, spec in zip(leaves, specs):
    mean = tf.math.divide_no_nan(leaf, tf.cast(weight_sum, leaf.dtype))
    means.append(tf.cast(mean, spec.dtype))
  return means, tf.cast(weight_sum, tf.float32)

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fits of rounds that never were, for tests of what is made of a fit."""

import numpy as np
import tensorflow as tf

from tff_autotune_secagg.numerics.reading import fitting


def fitted(
  sum_stddev: float = 1.0,
  observed=None,
  gain=None,
  max_gain=None,
  is_blind: bool = False,
  is_zero: bool = False,
  log_stddev_error: float = 0.0,
  readable_from: float = 1e-6,
  readable_to: float = 1e6,
) -> fitting.WrappedNormalFit:
  """Returns a fit.

  Args:
    sum_stddev: number.
    observed: a number or [16]; `sum_stddev` if None.
    gain: a number or [16]; the share of signal in what is observed if None, as
      if no standard error were in the way.
    max_gain: a number or [16]; twice the gain if None.
    is_blind: bool.
    is_zero: bool.
    log_stddev_error: number.
    readable_from: number.
    readable_to: number.
  """
  observed = sum_stddev if observed is None else observed
  if gain is None:
    share = np.divide(sum_stddev, np.maximum(observed, 1e-300))
    gain = np.square(np.minimum(share, 1.0))
  max_gain = 2.0 * np.asarray(gain) if max_gain is None else max_gain
  return fitting.WrappedNormalFit(
    sum_stddev=tf.constant(sum_stddev, tf.float64),
    observed_stddev=_of_stripes(observed),
    gain=_of_stripes(gain),
    max_gain=_of_stripes(max_gain),
    is_blind=tf.constant(is_blind),
    is_zero=tf.constant(is_zero),
    log_stddev_error=tf.constant(log_stddev_error, tf.float64),
    readable_from=tf.constant(readable_from, tf.float64),
    readable_to=tf.constant(readable_to, tf.float64),
  )


def _of_stripes(number):
  return tf.constant(np.broadcast_to(number, [16]), tf.float64)

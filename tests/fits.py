# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fits of rounds that never were, for tests of what is made of a fit."""

import numpy as np
import tensorflow as tf

from tff_autotune_secagg.numerics.reading import fitting


def fitted(
  sum_stddev: float = 1.0,
  observed=None,
  is_blind: bool = False,
  is_zero: bool = False,
  log_stddev_error: float = 0.0,
  readable_from: float = 1e-6,
  readable_to: float = 1e6,
) -> fitting.WrappedNormalFit:
  """Returns a fit; `observed`, a number or [16], is `sum_stddev` by default."""
  observed = sum_stddev if observed is None else observed
  return fitting.WrappedNormalFit(
    sum_stddev=tf.constant(sum_stddev, tf.float64),
    observed_stddev=tf.constant(np.broadcast_to(observed, [16]), tf.float64),
    is_blind=tf.constant(is_blind),
    is_zero=tf.constant(is_zero),
    log_stddev_error=tf.constant(log_stddev_error, tf.float64),
    readable_from=tf.constant(readable_from, tf.float64),
    readable_to=tf.constant(readable_to, tf.float64),
  )

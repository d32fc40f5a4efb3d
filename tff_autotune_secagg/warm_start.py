# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a new training can take over from an earlier one."""

import collections
import math
from typing import Any

import tensorflow as tf
import tree

from tff_autotune_secagg.numerics.prediction import past_sums
from tff_autotune_secagg.numerics.tuning import forecasting
from tff_autotune_secagg.stages import rotate


def learned_size(state: Any) -> float:
  """Returns the size of sums that a training has learned, for the next one.

  Give it to `expected_size=` of an aggregator whose first sums will be about as
  large as the last ones of this state: then half of the first round comes
  through, where otherwise most of it is lost. It is in units of updates times
  client weights if the mean is weighted.

  Args:
    state: of an `AutotunedSecureSumFactory` or of anything around it, up to a
      whole learning process; also one that was loaded from a checkpoint.

  Returns:
    The forecast of the next `sum_stddev`; with `predict_sum` the size of what
    is predicted and of what is not, together.

  Raises:
    ValueError: the state has no forecast, such as that of an aggregator with
      `wrap_probability`, or has not seen a sum yet.
  """
  leaves = {
    tuple(map(str, path[-3:])): leaf
    for path, leaf in tree.flatten_with_path(state)
  }
  prefix = ('tuner', 'forecast')
  initial = forecasting.initial_state()
  found = collections.OrderedDict(
    (name, tf.constant(leaves[(*prefix, name)], tf.float64))
    for name in initial
    if (*prefix, name) in leaves
  )
  if len(found) < len(initial):
    raise ValueError(
      '`state` must hold the forecast of a `WrappedNormalTuner` without'
      ' `wrap_probability`, found none in it.'
    )
  if not float(found['num_errors']):
    raise ValueError(
      '`state` must have seen a round whose sum was read, found one that has'
      ' not: leave `expected_size` out.'
    )
  size = float(tf.exp(forecasting.forecast(found).mean))
  return math.hypot(size, _predicted_size(leaves, float(found['cohorts'][0])))


def _predicted_size(leaves, num_clients):
  """Returns the size of the sum that is predicted; 0 without a prediction."""
  past = collections.OrderedDict(
    (path[-1], tf.constant(leaf))
    for path, leaf in leaves.items()
    if path[-2:-1] == ('prediction',)
  )
  if not past:
    return 0.0
  expected = past_sums.predict(past, tf.constant(num_clients))
  # Of a rotated coordinate; padding is none of the sum's.
  width = rotate.width(expected.shape.num_elements())
  return float(tf.norm(expected)) / math.sqrt(max(width, 1))

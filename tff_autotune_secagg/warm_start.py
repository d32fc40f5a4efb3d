# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a new training can take over from an earlier one."""

import collections
from typing import Any

import tensorflow as tf
import tree

from tff_autotune_secagg.numerics.tuning import forecasting


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
    The forecast of the next `sum_stddev`.

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
  return float(tf.exp(forecasting.forecast(found).mean))

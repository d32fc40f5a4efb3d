# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The bin size for a round whose size is forecast."""

from typing import Tuple

import tensorflow as tf

from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.tuning import forecasting
from tff_autotune_secagg.numerics.tuning import operating_point


def best_bin_size(
  predicted: forecasting.Forecast,
  num_clients: tf.Tensor,
  *,
  modulus: int,
  rounding: modes.Rounding,
  decoding: modes.Decoding,
) -> Tuple[tf.Tensor, tf.Tensor]:
  """Returns the bin size of least expected error under a forecast.

  Args:
    predicted: of the round.
    num_clients: float64 scalar of at least 1, clients of the round.
    modulus: Python int.
    rounding: the clients' mode.
    decoding: the server's mode.

  Returns:
    The bin size in units of the values and the error expected of it, float64.
  """
  # Relative to the forecast, so that any size is as good as 1.
  nodes = (predicted.log_sizes - predicted.mean, predicted.weights)
  best = operating_point.best_operating_point(
    num_clients, modulus, rounding, decoding, *nodes
  )
  error = operating_point.expected_nmse(
    best, num_clients, rounding, decoding, *nodes
  )
  return best.bin_per_stddev * tf.exp(predicted.mean), error

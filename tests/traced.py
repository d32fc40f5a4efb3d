# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Functions of the package as graphs, traced once for all tests."""

import functools

import tensorflow as tf

from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.tuning import bin_size


@functools.lru_cache(maxsize=None)
def best_bin_size(
  modulus: int,
  rounding: modes.Rounding = modes.Rounding.STOCHASTIC,
  decoding: modes.Decoding = modes.Decoding.POSTERIOR_MEAN,
):
  """`bin_size.best_bin_size` of a forecast and a number of clients."""
  return tf.function(
    functools.partial(
      bin_size.best_bin_size,
      modulus=modulus,
      rounding=rounding,
      decoding=decoding,
    ),
    autograph=False,
  )

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Functions of the package as graphs, traced once for all tests."""

import functools

import tensorflow as tf

from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.tuning import wrapped_normal_tuner


@functools.lru_cache(maxsize=None)
def best_bin_size(
  modulus: int,
  rounding: modes.Rounding = modes.Rounding.STOCHASTIC,
  decoding: modes.Decoding = modes.Decoding.UNBIASED,
):
  """`best_bin_size` of a forecast and a number of clients."""
  return tf.function(
    functools.partial(
      wrapped_normal_tuner.best_bin_size,
      modulus=modulus,
      rounding=rounding,
      decoding=decoding,
    ),
    autograph=False,
  )

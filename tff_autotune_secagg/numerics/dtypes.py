# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The dtype that a round computes in."""

import tensorflow as tf


def working_dtype(dtype: tf.DType) -> tf.DType:
  """Returns the dtype to compute a leaf in: float64 for itself, or float32."""
  return tf.float64 if dtype == tf.float64 else tf.float32

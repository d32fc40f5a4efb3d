# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The package's rotation of many vectors by one call."""

import tensorflow as tf

from tff_autotune_secagg.numerics.rotation import hadamard
from tff_autotune_secagg.numerics.rotation import randomized_hadamard


def rotate(rows: tf.Tensor, seed: tf.Tensor, num_rotations: int = 1):
  """`randomized_hadamard.rotate` of each row.

  Args:
    rows: float32 or float64 [n, d], d static.
    seed: int64 [2], the same for all rows.
    num_rotations: One after the other, at least 1.

  Returns:
    Tensor [n, padded_dim(d)] of the dtype of `rows`.
  """
  dim = rows.shape[-1]
  width = hadamard.padded_dim(dim)
  rows = tf.pad(rows, [[0, 0], [0, width - dim]])
  for number in range(num_rotations):
    signs = randomized_hadamard.flip_signs(
      tf.ones([width], rows.dtype),
      tf.random.experimental.stateless_fold_in(seed, number, alg='philox'),
    )
    rows = hadamard.transform(rows * signs)
  return rows

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The dtype in which residues are summed exactly."""

import collections

import tensorflow as tf

from tff_autotune_secagg.numerics.rounding import quantization
from tff_autotune_secagg.stages import stage


class WireStage(stage.Stage):
  """Reduces integers modulo `modulus`, in a dtype that sums them exactly."""

  takes_integers = True
  measures_on_one_level = True  # There are none, here and behind.

  def __init__(self, specs, *, modulus, in_modulus=None):
    """Initializes the stage.

    Args:
      specs: of a client's integer leaves.
      modulus: Python int.
      in_modulus: of the residues that come in; None if any integers may come
        in.

    Raises:
      ValueError: residues of another modulus come in: their sum would be lost.
    """
    if in_modulus not in (None, modulus):
      raise ValueError(
        f'`modulus` must be {in_modulus}, that of the residues to sum, found'
        f' {modulus}: give both factories the same.'
      )
    super().__init__(specs)
    self.out_specs = [
      tf.TensorSpec(spec.shape, quantization.sum_dtype(modulus))
      for spec in specs
    ]
    self._modulus = modulus
    self._is_reduced = in_modulus is not None

  def encode(self, leaves, parameters):
    """Reduces and casts."""
    del parameters  # None.
    if not self._is_reduced:
      leaves = [quantization.reduce_modulo(x, self._modulus) for x in leaves]
    cast = [tf.cast(x, spec.dtype) for x, spec in zip(leaves, self.out_specs)]
    return cast, collections.OrderedDict()

  def decode(self, leaves, signals, state):
    """Casts back."""
    del signals  # None.
    cast = [tf.cast(x, spec.dtype) for x, spec in zip(leaves, self._specs)]
    return cast, state, collections.OrderedDict()

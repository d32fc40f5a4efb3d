# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Weights: multiplied in at clients, divided out at the server."""

import collections

import tensorflow as tf

from tff_autotune_secagg.numerics import dtypes
from tff_autotune_secagg.numerics import weights
from tff_autotune_secagg.stages import stage


class WeighStage(stage.Stage):
  """Turns the sum behind it into a mean.

  Its signals are the weight, as two integers, and whether the client was
  rejected.
  """

  signal_limits = weights.SIGNAL_LIMITS

  def __init__(self, specs, *, is_weighted):
    """Initializes the stage.

    Args:
      specs: of a client's value.
      is_weighted: whether `encode` finds the weight as one more leaf, the last;
        if not, all weights are 1.
    """
    self._specs = specs
    self._is_weighted = is_weighted

  @property
  def out_specs(self):
    """Products in the dtype of the round."""
    return [
      tf.TensorSpec(spec.shape, dtypes.working_dtype(spec.dtype))
      for spec in self._specs
    ]

  def encode(self, leaves, parameters):
    """Multiplies by the weight."""
    del parameters  # None.
    weight = None
    if self._is_weighted:
      *leaves, weight = leaves
    return weights.weigh(leaves, weight)

  def decode(self, leaves, signals, state):
    """Divides by the sum of weights."""
    mean, weight_sum = weights.divide(leaves, signals, self._specs)
    measurements = collections.OrderedDict(
      weight_sum=weight_sum, rejected_clients=signals['rejected']
    )
    return mean, state, measurements

  def nest_state(self, own, inner):
    """The state of the sum is `value`."""
    del own  # None.
    return collections.OrderedDict(value=inner)

  def unnest_state(self, state):
    """The state of the sum is `value`."""
    return collections.OrderedDict(), state['value']

  def nest_measurements(self, own, inner):
    """The measurements of the sum are `value`."""
    return collections.OrderedDict(value=inner, **own)

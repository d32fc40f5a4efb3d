# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sums that the server predicts before it reads them."""

from tff_autotune_secagg.factories import chain
from tff_autotune_secagg.factories import rotation
from tff_autotune_secagg.stages import predict


class PredictedSumFactory(chain.ChainedFactory):
  """A rotated, quantized sum from which a prediction is subtracted first.

  Clients do what they do without it. The server subtracts what past sums say of
  this sum, reads the rest, and adds what it has subtracted.

  Types:
    As of the factory inside.
  State:
    `settings`, `seed` and `round` of the rotation, `prediction` (`total`,
    float32 of the size of a flattened value, and `clients`), `quantized`
    (`seed`, `round` and `tuner` of `QuantizeModFactory`) and `inner`.
  Measurements:
    Those of `QuantizeModFactory`, with `prediction_gain`: the squared size of
    what is left to read over that of the sum. The error of the round falls by
    about this factor. It is 1 where nothing is subtracted. `sum_stddev` and
    `predicted_nmse` are of the sum, `size_forecast` and `wrap_probability` of
    what is left to read.
  """

  def __init__(self, rotated: rotation.HadamardRotationFactory):
    """Initializes the factory.

    Args:
      rotated: the sum to predict, a `HadamardRotationFactory` around a
        `QuantizeModFactory`.
    """
    builders, inner_factory = rotated.unchain()
    (_, of_rotation), (_, of_quantization) = builders[:2]
    options = dict(rotation=of_rotation, quantization=of_quantization)
    super().__init__(
      [(predict.PredictStage, options), *builders[2:]], inner_factory
    )

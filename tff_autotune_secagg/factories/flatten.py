# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Any structure of float tensors as one vector."""

import tensorflow_federated as tff

from tff_autotune_secagg.factories import chain
from tff_autotune_secagg.factories import value_types
from tff_autotune_secagg.stages import flatten


class FlattenFactory(chain.ChainedFactory):
  """Hands a structure of float tensors on as one vector.

  One vector means one rotation, one padding and one fit. Unlike
  `tff.aggregators.concat_factory` it takes mixed float dtypes, scalars, empty
  tensors and structures without a Python container.

  At clients:
    Leaves are cast to float64 if one of them is float64, else to float32, and
    concatenated.
  At server:
    The inner result is split and cast back.
  Types:
    `value_type` is any structure of float16, bfloat16, float32 and float64
    tensors of defined shape; the result has the same type and containers.
  State:
    That of the inner process.
  Measurements:
    Those of the inner process.

  Limits:
    The cast back rounds, and overflows to infinity, as the dtype does: a sum of
    float16 leaves above 65,504 is infinite.
  """

  def __init__(
    self,
    inner_factory: tff.aggregators.UnweightedAggregationFactory,
  ):
    """Initializes the factory.

    Args:
      inner_factory: aggregates the vector.

    Raises:
      TypeError: `inner_factory` is no unweighted factory.
    """
    inner_factory = value_types.check_sum_factory(
      'inner_factory', inner_factory
    )
    super().__init__([(flatten.FlattenStage, {})], inner_factory)

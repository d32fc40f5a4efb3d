# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""TFF's zeroing and clipping, as `tff.learning.secure_aggregator` has them."""

import math

import tensorflow_federated as tff


def limited(
  factory: tff.aggregators.AggregationFactory,
  *,
  zeroing: bool,
  clipping: bool,
) -> tff.aggregators.AggregationFactory:
  """Puts TFF's adaptive limits of clients' updates around a factory.

  TFF keeps its own composition private. What it learns of the clients, it
  learns by secure sums.

  Args:
    factory: aggregates the updates, weighted or not; most often a mean.
    zeroing: whether a client with an extremely large coordinate is replaced by
      zeros, before anything else.
    clipping: whether norms are clipped to the estimate of their 80 % quantile,
      which begins at 1.

  Returns:
    A factory that is weighted if `factory` is; `factory` itself if neither is
    wanted.
  """
  if clipping:
    factory = tff.aggregators.clipping_factory(
      _norm_quantile(1.0, 0.8, 0.2),
      factory,
      clipped_count_sum_factory=_secure_count(),
    )
  if zeroing:
    factory = tff.aggregators.zeroing_factory(
      _norm_quantile(10.0, 0.98, math.log(10.0), multiplier=2.0, increment=1.0),
      factory,
      zeroed_count_sum_factory=_secure_count(),
    )
  return factory


def _norm_quantile(initial_estimate, target_quantile, learning_rate, **options):
  """Returns a secure quantile estimate with the settings of TFF's defaults."""
  return tff.aggregators.PrivateQuantileEstimationProcess.no_noise(
    initial_estimate=initial_estimate,
    target_quantile=target_quantile,
    learning_rate=learning_rate,
    secure_estimation=True,
    **options,
  )


def _secure_count():
  """Returns the secure sum of zeros and ones."""
  return tff.aggregators.SecureSumFactory(
    upper_bound_threshold=1, lower_bound_threshold=0
  )

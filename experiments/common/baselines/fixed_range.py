# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The sum deployed before autotuning: clipped to a range, few levels each.

Made for experiments: it checks little and takes one float32 vector.
"""

import collections
import math

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from experiments.common.baselines import levels
from tff_autotune_secagg.numerics.rounding import quantization


def adaptive_range() -> tff.templates.EstimationProcess:
  """TFF's estimate of a range, from the clients' largest values.

  It is twice their 95 % quantile, estimated as in
  `tff.learning.secure_aggregator`.
  """
  return tff.aggregators.PrivateQuantileEstimationProcess.no_noise(
    initial_estimate=50.0,
    target_quantile=0.95,
    learning_rate=1.0,
    multiplier=2.0,
    secure_estimation=True,
  )


class FixedRangeSumFactory(tff.aggregators.UnweightedAggregationFactory):
  """Sums a float32 vector by the scheme deployed before autotuning.

  At clients: values are clipped to `[-clip_range, clip_range]` and rounded at
  random to one of `num_levels` equidistant levels, numbered from 0.
  At server: the sum of the level numbers by the smallest modulus that no sum of
  at most `num_clients` numbers reaches, turned into values with the securely
  summed number of clients.

  Types: `value_type` is a float32 tensor. The result type equals it.
  State: that of the estimate of the range; empty for a constant.
  Measurements: `bin_size`, the distance of two levels in value units.
  Guarantees: unbiased for values in the range; exact decoding for any number of
    clients up to `num_clients`.
  Limits: values beyond the range are clipped silently.
  Reference: Bonawitz et al. (2019), arXiv:1912.00131, section 2. The adaptive
    range: Andrew et al. (2021), arXiv:1905.03871, as TFF has it.
  """

  def __init__(self, *, clip_range, num_levels: int, num_clients: int):
    """Initializes the factory.

    Args:
      clip_range: Positive float, in units of the summed values; or an
        estimation process of one, which is given each client's largest
        absolute value.
      num_levels: Levels of one client, at least 2.
      num_clients: The largest number of clients of a round.

    Raises:
      ValueError: If an argument is out of its range.
    """
    if isinstance(clip_range, tff.templates.EstimationProcess):
      self._range_process = clip_range
    elif 0 < clip_range < math.inf:
      self._range_process = _constant(clip_range)
    else:
      raise ValueError(
        f'`clip_range` must be a positive finite float, found {clip_range!r}.'
      )
    if num_levels < 2:
      raise ValueError(
        f'`num_levels` must be an int of at least 2, found {num_levels!r}. '
        'Raise the bits per coordinate or lower the clients per round.'
      )
    self._num_levels = num_levels
    self._modulus = quantization.sum_modulus(num_levels, num_clients)

  def create(self, value_type):
    modular_sum = tff.aggregators.SecureModularSumFactory(self._modulus).create(
      tff.TensorType(np.int32, value_type.shape)
    )

    def step_of(clip_range):
      return 2 * clip_range / (self._num_levels - 1)

    @tff.tensorflow.computation(value_type)
    def largest(value):
      return tf.reduce_max(tf.abs(value))

    @tff.tensorflow.computation(value_type, np.float32)
    def encode(value, clip_range):
      return levels.round_to_levels(
        value, -clip_range, step_of(clip_range), self._num_levels
      )

    @tff.tensorflow.computation(
      modular_sum.next.type_signature.result['result'].member,
      np.int32,
      np.float32,
    )
    def decode(level_sum, count, clip_range):
      return (
        tf.cast(level_sum, tf.float32) * step_of(clip_range)
        - tf.cast(count, tf.float32) * clip_range
      )

    @tff.tensorflow.computation(np.float32)
    def measure(clip_range):
      return collections.OrderedDict(bin_size=step_of(clip_range))

    @tff.federated_computation(
      self._range_process.initialize.type_signature.result,
      tff.FederatedType(value_type, tff.CLIENTS),
    )
    def next_fn(state, value):
      clip_range = self._range_process.report(state)
      numbers = tff.federated_map(
        encode, (value, tff.federated_broadcast(clip_range))
      )
      level_sum = modular_sum.next(modular_sum.initialize(), numbers).result
      count = tff.federated_secure_sum(tff.federated_value(1, tff.CLIENTS), 1)
      return tff.templates.MeasuredProcessOutput(
        self._range_process.next(state, tff.federated_map(largest, value)),
        tff.federated_map(decode, (level_sum, count, clip_range)),
        tff.federated_map(measure, clip_range),
      )

    return tff.templates.AggregationProcess(
      self._range_process.initialize, next_fn
    )


def _constant(value: float) -> tff.templates.EstimationProcess:
  """Always reports `value`, and looks at nothing."""

  @tff.federated_computation()
  def init_fn():
    return tff.federated_value((), tff.SERVER)

  state_type = init_fn.type_signature.result

  @tff.federated_computation(
    state_type, tff.FederatedType(np.float32, tff.CLIENTS)
  )
  def next_fn(state, unused_largest):
    return state

  @tff.federated_computation(state_type)
  def report_fn(unused_state):
    return tff.federated_value(np.float32(value), tff.SERVER)

  return tff.templates.EstimationProcess(init_fn, next_fn, report_fn)

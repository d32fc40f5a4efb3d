# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Aggregation factories of the schemes that the package is compared with.

Made for experiments: they check little and take one float32 vector.
"""

import collections
import math

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff


def _round_to_levels(value, lowest, step, num_levels):
  """Rounds to a neighbour in `lowest + step * {0 .. num_levels - 1}`, unbiased.

  Args:
    value: float32 tensor, clipped here to the range of the levels.
    lowest: float32 scalar, the lowest level.
    step: float32 scalar, positive.
    num_levels: Python int, at least 2.

  Returns:
    int32 tensor of level numbers. Unseeded: each client and round differs.
  """
  position = tf.clip_by_value(
    (value - lowest) / step, 0.0, float(num_levels - 1)
  )
  below = tf.floor(position)
  up = tf.random.uniform(tf.shape(value)) < position - below
  return tf.cast(below, tf.int32) + tf.cast(up, tf.int32)


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
  At server: the sum of the level numbers modulo `num_clients * num_levels`,
  which no sum of at most `num_clients` numbers reaches, turned into values with
  the securely summed number of clients.

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
    self._modulus = num_clients * num_levels

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
      return _round_to_levels(
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
      levels = tff.federated_map(
        encode, (value, tff.federated_broadcast(clip_range))
      )
      level_sum = modular_sum.next(modular_sum.initialize(), levels).result
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


class ClippedMeanFactory(tff.aggregators.WeightedAggregationFactory):
  """Scales an inner mean down whose sum is larger than sums usually are.

  The sum, mean times weights, is what a secure sum sees, and what is damped
  where it is larger than expected. It grows with the clients' weights, too.

  At clients: nothing of its own.
  At server: the inner result is scaled down so that its sum has at most
  `factor` times the usual norm, which is the geometric mean of the norms
  before, the last one counting a tenth. The first sum defines it and is not
  clipped.

  Types: those of the inner mean.
  State: `log_norm` (float32), `num_rounds` (int32) and `inner`.
  Measurements: `is_clipped` (bool) and `inner`.
  Limits: a sum of norm 0 or not finite teaches nothing and is not clipped.
  """

  _DECAY = 0.9

  def __init__(self, inner_factory, *, factor: float):
    """Initializes the factory.

    Args:
      inner_factory: A `tff.aggregators.WeightedAggregationFactory`.
      factor: Positive float.
    """
    self._inner_factory = inner_factory
    self._factor = factor

  def create(self, value_type, weight_type):
    inner = self._inner_factory.create(value_type, weight_type)
    own_type = tff.to_type(
      collections.OrderedDict(log_norm=np.float32, num_rounds=np.int32)
    )

    @tff.tensorflow.computation
    def initial():
      return collections.OrderedDict(log_norm=0.0, num_rounds=0)

    @tff.tensorflow.computation(
      own_type, inner.next.type_signature.result['result'].member, weight_type
    )
    def clip(own, mean, weight_sum):
      norm = tf.linalg.global_norm(tf.nest.flatten(mean)) * weight_sum
      log_norm = tf.math.log(norm)
      teaches = tf.math.is_finite(log_norm)
      is_first = tf.equal(own['num_rounds'], 0)
      usual = tf.where(is_first, log_norm, own['log_norm'])
      excess = log_norm - usual - math.log(self._factor)
      is_clipped = tf.logical_and(teaches, excess > 0)
      scale = tf.where(is_clipped, tf.exp(-excess), 1.0)
      learned = self._DECAY * usual + (1 - self._DECAY) * log_norm
      new_own = collections.OrderedDict(
        log_norm=tf.where(teaches, learned, own['log_norm']),
        num_rounds=own['num_rounds'] + tf.cast(teaches, tf.int32),
      )
      clipped = tf.nest.map_structure(lambda leaf: leaf * scale, mean)
      return new_own, clipped, is_clipped

    @tff.federated_computation()
    def init_fn():
      own = tff.federated_eval(initial, tff.SERVER)
      return tff.federated_zip(
        collections.OrderedDict(own=own, inner=inner.initialize())
      )

    @tff.federated_computation(
      init_fn.type_signature.result,
      tff.FederatedType(value_type, tff.CLIENTS),
      tff.FederatedType(weight_type, tff.CLIENTS),
    )
    def next_fn(state, value, weight):
      output = inner.next(state['inner'], value, weight)
      own, mean, is_clipped = tff.federated_map(
        clip, (state['own'], output.result, tff.federated_sum(weight))
      )
      return tff.templates.MeasuredProcessOutput(
        tff.federated_zip(collections.OrderedDict(own=own, inner=output.state)),
        mean,
        tff.federated_zip(
          collections.OrderedDict(
            is_clipped=is_clipped, inner=output.measurements
          )
        ),
      )

    return tff.templates.AggregationProcess(init_fn, next_fn)


class LocallyQuantizedSumFactory(tff.aggregators.UnweightedAggregationFactory):
  """Sums float32 vectors that each client quantizes to a range of its own.

  At clients: values are rounded at random to `num_levels` levels between the
  client's own least and greatest value.
  At server: the sum of the decoded vectors, in the clear: each client's own
  range must be known to read its levels.

  Types: `value_type` is a float32 tensor. The result type equals it.
  State: empty. Measurements: empty.
  Guarantees: unbiased.
  Reference: Suresh et al. (2017), arXiv:1611.00429, section 2.
  """

  def __init__(self, *, num_levels: int):
    self._num_levels = num_levels

  def create(self, value_type):
    @tff.tensorflow.computation(value_type)
    def quantize(value):
      lowest = tf.reduce_min(value)
      step = (tf.reduce_max(value) - lowest) / (self._num_levels - 1)
      # A constant vector has no range; any positive step returns it exactly.
      step = tf.where(step > 0, step, 1.0)
      levels = _round_to_levels(value, lowest, step, self._num_levels)
      return lowest + tf.cast(levels, tf.float32) * step

    @tff.federated_computation()
    def init_fn():
      return tff.federated_value((), tff.SERVER)

    @tff.federated_computation(
      init_fn.type_signature.result,
      tff.FederatedType(value_type, tff.CLIENTS),
    )
    def next_fn(state, value):
      result = tff.federated_sum(tff.federated_map(quantize, value))
      return tff.templates.MeasuredProcessOutput(
        state, result, tff.federated_value((), tff.SERVER)
      )

    return tff.templates.AggregationProcess(init_fn, next_fn)


class KashinFactory(tff.aggregators.UnweightedAggregationFactory):
  """Represents a vector by Kashin coefficients around an inner aggregation.

  In the place of a rotation. At clients: the coefficients of TFMOT's research
  stage `KashinHadamardEncodingStage`, whose largest entry is smaller than after
  a rotation, at the price of up to twice as many entries.
  At server: the stage's decoding, which is linear.

  Types: `value_type` is a float32 vector. The result type equals it.
  State: `seed` (int64 [2]), `round` (int64) and `inner`.
  Measurements: those of the inner process.
  Reference: Lyubarskii and Vershynin (2010), arXiv:math/0611343; Caldas et al.
    (2018), arXiv:1812.07210.
  """

  def __init__(self, inner_factory, *, seed: int):
    self._inner_factory = inner_factory
    self._seed = seed

  @staticmethod
  def num_coefficients(dim: int) -> int:
    """Coefficients that the stage makes of `dim` values."""
    # The rule is the stage's own: the next power of two, doubled if little of
    # it would be padding.
    padded = 2 ** (dim - 1).bit_length()
    return 2 * padded if dim / padded > 0.85 else padded

  def create(self, value_type):
    from tensorflow_model_optimization.python.core.internal import (
      tensor_encoding,
    )

    stage = tensor_encoding.stages.research.KashinHadamardEncodingStage()
    dim = value_type.shape[0]

    def params(seed):
      return {
        stage.ETA_PARAMS_KEY: 0.9,
        stage.DELTA_PARAMS_KEY: 1.0,
        stage.SEED_PARAMS_KEY: seed,
      }

    @tff.tensorflow.computation
    def initial_seed():
      return collections.OrderedDict(
        seed=tf.constant([self._seed, 0], tf.int64),
        round=tf.constant(0, tf.int64),
      )

    own_type = initial_seed.type_signature.result

    @tff.tensorflow.computation(own_type)
    def round_seed(own):
      return tf.random.experimental.stateless_fold_in(own['seed'], own['round'])

    @tff.tensorflow.computation(value_type, round_seed.type_signature.result)
    def encode(value, seed):
      encoded = stage.encode(value, params(seed))
      return tf.reshape(
        encoded[stage.ENCODED_VALUES_KEY], [self.num_coefficients(dim)]
      )

    coefficients_type = encode.type_signature.result
    inner_process = self._inner_factory.create(coefficients_type)

    @tff.tensorflow.computation(
      coefficients_type, round_seed.type_signature.result
    )
    def decode(coefficients, seed):
      decoded = stage.decode(
        {stage.ENCODED_VALUES_KEY: coefficients[tf.newaxis, :]},
        params(seed),
        shape=tf.constant([dim]),
      )
      return tf.reshape(decoded, [dim])

    @tff.tensorflow.computation(own_type)
    def advance(own):
      return collections.OrderedDict(seed=own['seed'], round=own['round'] + 1)

    @tff.federated_computation()
    def init_fn():
      return tff.federated_zip(
        collections.OrderedDict(
          own=tff.federated_eval(initial_seed, tff.SERVER),
          inner=inner_process.initialize(),
        )
      )

    @tff.federated_computation(
      init_fn.type_signature.result,
      tff.FederatedType(value_type, tff.CLIENTS),
    )
    def next_fn(state, value):
      seed = tff.federated_map(round_seed, state['own'])
      coefficients = tff.federated_map(
        encode, (value, tff.federated_broadcast(seed))
      )
      output = inner_process.next(state['inner'], coefficients)
      result = tff.federated_map(decode, (output.result, seed))
      new_state = tff.federated_zip(
        collections.OrderedDict(
          own=tff.federated_map(advance, state['own']), inner=output.state
        )
      )
      return tff.templates.MeasuredProcessOutput(
        new_state, result, output.measurements
      )

    return tff.templates.AggregationProcess(init_fn, next_fn)

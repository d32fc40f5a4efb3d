# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Kashin coefficients in the place of a rotation.

Made for experiments: it checks little and takes one float32 vector.
"""

import collections

import tensorflow as tf
import tensorflow_federated as tff


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

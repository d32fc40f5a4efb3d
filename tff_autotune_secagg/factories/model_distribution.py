# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The wiring of a low-bit download: the server codes, each client decodes."""

import collections
from typing import Optional

from absl import logging
import tensorflow as tf
import tensorflow_federated as tff

from tff_autotune_secagg.factories import value_types
from tff_autotune_secagg.numerics import seeds
from tff_autotune_secagg.numerics.download import low_bit_leaves
from tff_autotune_secagg.stages import state_guard


def create_process(
  weights_type: tff.StructType, *, bits: int, seed: Optional[int], owner: str
) -> tff.learning.templates.DistributionProcess:
  """Creates the process that sends `ModelWeights` in few bits.

  Args:
    weights_type: of `tff.learning.models.ModelWeights`.
    bits: of a coded parameter.
    seed: of the rotations, None to draw one.
    owner: who refuses a state with other settings.

  Returns:
    A `tff.learning.templates.DistributionProcess`.
  """
  specs = value_types.leaf_specs(weights_type)
  codec = low_bit_leaves.LowBitLeaves(
    specs,
    num_trainable=len(value_types.leaf_specs(weights_type.trainable)),
    bits=bits,
  )
  settings = collections.OrderedDict(bits=bits, dim=codec.dim)
  if not codec.dim:
    logging.warning(
      '%s codes nothing of this model, which goes down as it is: it codes'
      ' trainable float tensors of at least %d values, and there is none.',
      owner,
      low_bit_leaves.MIN_SIZE,
    )

  @tff.tensorflow.computation
  def initialize():
    initial = seeds.initial_state(seed, seeds.DOWNLOAD_STREAM)
    return collections.OrderedDict(
      settings=state_guard.as_state(settings), **initial
    )

  @tff.federated_computation
  def init_fn():
    return tff.federated_eval(initialize, tff.SERVER)

  @tff.tensorflow.computation(initialize.type_signature.result, weights_type)
  def encode(state, weights):
    known = state_guard.assert_settings(state['settings'], settings, owner)
    # Nothing of a state that is refused reaches a client.
    with tf.control_dependencies(list(known.values())):
      round_seed = seeds.round_seed(state)
    message, nmse = codec.encode(value_types.flatten(weights), round_seed)
    next_state = collections.OrderedDict(
      settings=known, **seeds.next_state(state)
    )
    measured = collections.OrderedDict(
      download_nmse=nmse,
      download_bytes_per_client=tf.constant(codec.bytes_per_client, tf.int64),
    )
    return message, next_state, measured

  @tff.tensorflow.computation(encode.type_signature.result[0])
  def decode(message):
    return value_types.pack(codec.decode(message), weights_type)

  @tff.federated_computation(
    init_fn.type_signature.result, tff.FederatedType(weights_type, tff.SERVER)
  )
  def next_fn(state, weights):
    message, next_state, measured = tff.federated_map(encode, (state, weights))
    received = tff.federated_map(decode, tff.federated_broadcast(message))
    return tff.templates.MeasuredProcessOutput(next_state, received, measured)

  return tff.learning.templates.DistributionProcess(init_fn, next_fn)

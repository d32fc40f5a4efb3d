# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What leaves a client: every aggregation that a ready composition contains.

Read from the traced computation, so that nothing an inner factory does can stay
unseen. Every one is a secure sum: one modular sum of residues, and beside it
only what the docstring of the composition names.
"""

import functools

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

import tff_autotune_secagg as autotune

_DIM = 1500
_PADDED = 1536
_VALUE_TYPE = tff.to_type(
  (
    tff.TensorType(np.float32, [_DIM - 1]),
    tff.TensorType(np.float32),
  )
)
_WEIGHT_TYPE = tff.TensorType(np.float32)

# Intrinsics by what they do with values of clients.
_LOCAL = {
  'federated_apply',
  'federated_eval_at_clients',
  'federated_eval_at_server',
  'federated_map',
  'federated_map_all_equal',
  'federated_value_at_clients',
  'federated_value_at_server',
  'federated_zip_at_clients',
  'federated_zip_at_server',
}
_TO_CLIENTS = {'federated_broadcast'}

_RESIDUES = ('federated_secure_modular_sum', f'int32[{_PADDED}]')
_WIDE_RESIDUES = ('federated_secure_modular_sum', f'int64[{_PADDED}]')
# The signals of all stages are one secure sum.
_COUNTS = ('federated_secure_sum', '<<contributing=int32,rejected=int32>>')
_WEIGHT_AND_COUNTS = (
  'federated_secure_sum',
  '<<whole=int64,fraction=int64,rejected=int32>,'
  '<contributing=int32,rejected=int32>>',
)


def _intrinsics(computation):
  """(name, type) of the intrinsics in a computation, inner ones included."""
  found = []

  def visit(block):
    if isinstance(block, tff.framework.Intrinsic):
      found.append((block.uri, block.type_signature))
    return block, False

  tff.framework.transform_preorder(computation.to_building_block(), visit)
  return found


def _from_clients(computation):
  """(name, type of the clients' part) of what is neither local nor downward."""
  leaving = []
  for name, type_signature in _intrinsics(computation):
    if name in _LOCAL | _TO_CLIENTS:
      continue
    parameter = type_signature.parameter
    if isinstance(parameter, tff.StructType):
      parameter = parameter[0]
    leaving.append((name, str(parameter.member)))
  return leaving


def _to_clients(computation):
  return [
    str(type_signature.parameter.member)
    for name, type_signature in _intrinsics(computation)
    if name in _TO_CLIENTS
  ]


@functools.lru_cache(maxsize=None)
def _sum_process(modulus, rounding):
  factory = autotune.AutotunedSecureSumFactory(
    modulus=modulus, rounding=rounding
  )
  return factory.create(_VALUE_TYPE)


def _ready_process(**options):
  factory = autotune.autotuned_secure_aggregator(**options)
  if options.get('weighted', True):
    return factory.create(_VALUE_TYPE, _WEIGHT_TYPE)
  return factory.create(_VALUE_TYPE)


def _model_fn():
  keras_model = tf.keras.Sequential(
    [tf.keras.layers.InputLayer([3]), tf.keras.layers.Dense(1)]
  )
  spec = (tf.TensorSpec([None, 3]), tf.TensorSpec([None, 1]))
  return tff.learning.models.from_keras_model(
    keras_model, loss=tf.keras.losses.MeanSquaredError(), input_spec=spec
  )


class WhatLeavesAClientTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('power_of_two', 2**8, autotune.Rounding.STOCHASTIC, _RESIDUES),
    ('other_modulus', 1000, autotune.Rounding.DITHER, _WIDE_RESIDUES),
  )
  def test_sum_sends_residues_and_two_counts(self, modulus, rounding, residues):
    process = _sum_process(modulus, rounding)
    self.assertCountEqual(_from_clients(process.next), [residues, _COUNTS])
    self.assertEmpty(_from_clients(process.initialize))
    tff.test.assert_not_contains_unsecure_aggregation(process.next)

  @parameterized.named_parameters(('weighted', True), ('unweighted', False))
  def test_mean_adds_the_weight_and_one_count(self, weighted):
    process = _ready_process(zeroing=False, clipping=False, weighted=weighted)
    self.assertCountEqual(
      _from_clients(process.next), [_RESIDUES, _WEIGHT_AND_COUNTS]
    )
    tff.test.assert_not_contains_unsecure_aggregation(process.next)

  def test_zeroing_and_clipping_add_two_signals_each(self):
    process = _ready_process(zeroing=True, clipping=True)
    leaving = _from_clients(process.next)
    for expected in (_RESIDUES, _WEIGHT_AND_COUNTS):
      leaving.remove(expected)
    # TFF's secure sum of one signal counts clients, and those above and below
    # its range as well. A quantile's signal is a pair, the other a count.
    self.assertLen(leaving, 2 * 2 * 4)
    self.assertEqual(
      {name for name, _ in leaving}, {'federated_secure_sum_bitwidth'}
    )
    members = [member for _, member in leaving]
    self.assertCountEqual(members, ['<int64,int64>'] * 2 + ['int32'] * 14)
    tff.test.assert_not_contains_unsecure_aggregation(process.next)

  @parameterized.named_parameters(('fixed_clip', 1.0), ('adaptive_clip', None))
  def test_distributed_dp_sends_residues_and_a_one(self, l2_norm_clip):
    process = autotune.distributed_dp_aggregator(
      noise_multiplier=1.0, min_clients=10, l2_norm_clip=l2_norm_clip
    ).create(_VALUE_TYPE)
    self.assertCountEqual(
      _from_clients(process.next),
      [_RESIDUES, ('federated_secure_sum', '<<num_clients=int32>>')],
    )
    # The clip norm and the rotation's seed; the modulus is TFF's.
    self.assertCountEqual(
      _to_clients(process.next), ['<<>,float32,int64[2],<>,<>>', 'int32']
    )
    tff.test.assert_not_contains_unsecure_aggregation(process.next)

  @parameterized.named_parameters(
    ('dropped', autotune.drop_metrics, []),
    ('in_the_clear', None, ['federated_sum'] * 2),
  )
  def test_private_training_sends_no_metrics_if_told(self, metrics, more):
    """TFF's default sums the loss and the number of examples: the control."""
    process = tff.learning.algorithms.build_unweighted_fed_avg(
      _model_fn,
      tff.learning.optimizers.build_sgdm(0.1),
      model_aggregator=autotune.distributed_dp_aggregator(
        noise_multiplier=1.0, min_clients=10, l2_norm_clip=1.0
      ),
      metrics_aggregator=metrics,
    )
    names = [name for name, _ in _from_clients(process.next)]
    ours = ['federated_secure_modular_sum', 'federated_secure_sum']
    self.assertCountEqual(set(names), {*ours, *more})
    if not more:
      self.assertCountEqual(names, ours)

  def test_clients_receive_the_round_seeds_and_the_bin_sizes(self):
    process = _sum_process(2**8, autotune.Rounding.STOCHASTIC)
    # Nothing for the vector, the rotation's seed, the bin sizes with the
    # dither's seed, nothing for the modular sum; TFF tells clients the modulus.
    self.assertCountEqual(
      _to_clients(process.next),
      ['<<>,int64[2],<float32[16],int64[2]>,<>>', 'int32'],
    )

  def test_an_unsecure_composition_is_seen(self):
    # The negative control: what the list is made of shows plain sums.
    process = tff.aggregators.MeanFactory().create(_VALUE_TYPE, _WEIGHT_TYPE)
    names = {name for name, _ in _from_clients(process.next)}
    self.assertEqual(names, {'federated_sum'})


if __name__ == '__main__':
  absltest.main()

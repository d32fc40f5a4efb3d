# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every composition runs wherever TFF's own secure aggregator does.

TFF ships computations as protocol buffers, whose parser gives up at 100 nested
messages with "Error parsing message". What counts is how deep an aggregator is
by itself: a builder of learning processes puts the same levels around any.
"""

import functools

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests import factory_conformance
import tff_autotune_secagg as autotune

setUpModule = factory_conformance.set_up_context

_MOST_NESTED = 100
_UPDATE = tff.to_type([(np.float32, [4, 3]), (np.float32, [3])])
_WEIGHT = tff.TensorType(np.float32)

# None, each alone, and all: what each puts around the sum, and the deepest.
_NONE = dict(zeroing=False, clipping=False, weighted=False)
_ALL = dict(zeroing=True, clipping=True, weighted=True)
_SWITCHES = [_NONE, *({**_NONE, name: True} for name in _NONE), _ALL]


def _depth(message) -> int:
  """Returns how many messages are nested in each other."""
  deepest = 0
  for field, value in message.ListFields():
    if field.message_type is None:
      continue
    members = value if field.label == field.LABEL_REPEATED else [value]
    deepest = max([deepest, *(_depth(member) for member in members)])
  return 1 + deepest


def _depth_of(factory) -> int:
  types = [_UPDATE]
  if isinstance(factory, tff.aggregators.WeightedAggregationFactory):
    types.append(_WEIGHT)
  process = factory.create(*types)
  return _depth(tff.framework.serialize_computation(process.next))


@functools.lru_cache(maxsize=None)
def _depth_of_tff(**switches) -> int:
  factory = tff.learning.secure_aggregator(**switches)
  if switches == _ALL:  # The deepest are these with measurements.
    factory = tff.learning.add_debug_measurements(factory)
  return _depth_of(factory)


def _nested_sum():
  """The sum out of its parts, as a user may nest them."""
  return autotune.FlattenFactory(
    autotune.HadamardRotationFactory(
      autotune.QuantizeModFactory(
        autotune.ExactModularSumFactory(modulus=256),
        tuner=autotune.WrappedNormalTuner(modulus=256),
      )
    )
  )


class DepthTest(parameterized.TestCase):
  @parameterized.parameters(*_SWITCHES)
  def test_is_not_deeper_than_tff_with_the_same_switches(self, **switches):
    ours = autotune.autotuned_secure_aggregator(**switches)
    if switches == _ALL:
      ours = tff.learning.add_debug_measurements(ours)
    self.assertLessEqual(_depth_of(ours), _depth_of_tff(**switches))

  @parameterized.named_parameters(
    ('ready_made', lambda: autotune.AutotunedSecureSumFactory(modulus=256)),
    ('parts', _nested_sum),
    ('mean', lambda: autotune.SecureMeanFactory(_nested_sum())),
    (
      'unweighted_mean',
      lambda: autotune.SecureUnweightedMeanFactory(_nested_sum()),
    ),
  )
  def test_sums_and_means_are_not_deeper_than_tff(self, build):
    theirs = _depth_of_tff(**{**_NONE, 'weighted': True})
    self.assertLessEqual(_depth_of(build()), theirs)

  def test_distributed_dp_is_not_deeper_than_tff(self):
    theirs = tff.learning.ddp_secure_aggregator(
      noise_multiplier=1.0, expected_clients_per_round=100
    )
    for l2_norm_clip in (1.0, None):
      ours = autotune.distributed_dp_aggregator(
        noise_multiplier=1.0, min_clients=10, l2_norm_clip=l2_norm_clip
      )
      self.assertLess(_depth_of(ours), _depth_of(theirs))

  def test_depth_counts_what_the_parser_counts(self):
    value = tff.to_type(np.float32)
    depths = []
    for _ in range(3):
      value = tff.to_type([value])
      identity = tff.federated_computation(lambda x: x, value)
      depths.append(_depth(tff.framework.serialize_computation(identity)))
    # A structure in a structure: a type, its structure, its element.
    self.assertEqual(np.diff(depths).tolist(), [3, 3])


def _model():
  spec = (
    tf.TensorSpec([None, 4], tf.float32),
    tf.TensorSpec([None, 1], tf.float32),
  )
  keras_model = tf.keras.Sequential(
    [
      tf.keras.layers.InputLayer(input_shape=(4,)),
      tf.keras.layers.Dense(1),
    ]
  )
  return tff.learning.models.from_keras_model(
    keras_model, loss=tf.keras.losses.MeanSquaredError(), input_spec=spec
  )


def _sgd():
  return tff.learning.optimizers.build_sgdm(0.1)


def _fed_avg(aggregator):
  # FedProx puts the same levels around the aggregator.
  return tff.learning.algorithms.build_weighted_fed_avg(
    _model, _sgd(), _sgd(), model_aggregator=aggregator
  )


def _mime_lite(aggregator):
  # The unweighted builder puts fewer levels around it.
  return tff.learning.algorithms.build_weighted_mime_lite(
    _model, _sgd(), _sgd(), model_aggregator=aggregator
  )


def _scheduled_mime_lite(aggregator):
  return tff.learning.algorithms.build_mime_lite_with_optimizer_schedule(
    _model, lambda round_num: 0.1, _sgd(), model_aggregator=aggregator
  )


def _fed_sgd(aggregator):
  return tff.learning.algorithms.build_fed_sgd(
    _model, _sgd(), model_aggregator=aggregator
  )


class BuildersTest(parameterized.TestCase):
  """The deepest switches in each builder, the deepest of all in the runtime."""

  @parameterized.named_parameters(
    ('weighted_fed_avg', _fed_avg),
    ('fed_sgd', _fed_sgd),
    ('scheduled_mime_lite', _scheduled_mime_lite),
  )
  def test_is_parsed(self, build):
    self._build(build)

  @pytest.mark.slow
  def test_runs(self):
    process = self._build(_mime_lite)
    batches = [
      tf.data.Dataset.from_tensor_slices(
        (np.ones([4, 4], np.float32), np.ones([4, 1], np.float32))
      ).batch(2)
      for _ in range(2)
    ]
    output = process.next(process.initialize(), batches)
    for weights in process.get_model_weights(output.state).trainable:
      self.assertTrue(np.all(np.isfinite(weights)))

  def _build(self, build):
    aggregator = tff.learning.add_debug_measurements(
      autotune.autotuned_secure_aggregator(**_ALL)
    )
    process = build(aggregator)
    depth = _depth(tff.framework.serialize_computation(process.next))
    self.assertLess(depth, _MOST_NESTED)
    return process


if __name__ == '__main__':
  absltest.main()

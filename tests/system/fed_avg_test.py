# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Federated averaging with the aggregator against a plain mean in NumPy."""

import collections

from absl.testing import absltest
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests import factory_conformance
from tff_autotune_secagg import aggregators
from tff_autotune_secagg import metrics as autotune_metrics

setUpModule = factory_conformance.set_up_context

_INPUTS, _OUTPUTS = 6, 3
_RATE = 0.1
_SPEC = (
  tf.TensorSpec([None, _INPUTS], tf.float32),
  tf.TensorSpec([None, _OUTPUTS], tf.float32),
)


def _model():
  layer = tf.keras.layers.Dense(
    _OUTPUTS, kernel_initializer='zeros', input_shape=[_INPUTS]
  )
  return tff.learning.models.from_keras_model(
    tf.keras.Sequential([layer]),
    loss=tf.keras.losses.MeanSquaredError(),
    input_spec=_SPEC,
  )


def _client_data(num_examples, seed):
  """Linear regression on 2 batches, with targets of the client's own."""
  rng = np.random.default_rng(seed)
  x = rng.standard_normal([num_examples, _INPUTS]).astype(np.float32)
  y = x @ rng.standard_normal([_INPUTS, _OUTPUTS]).astype(np.float32)
  half = (num_examples + 1) // 2
  return [(x[:half], y[:half]), (x[half:], y[half:])]


def _dataset(batches):
  parts = (np.concatenate(part) for part in zip(*batches))
  data = tf.data.Dataset.from_tensor_slices(tuple(parts))
  return data.batch(len(batches[0][0]))


def _local_step(weights, batches):
  """What training on the batches adds to the weights, as one vector."""
  kernel, bias = (np.float64(w) for w in weights)
  for x, y in batches:
    # Of the mean of squares over examples and outputs.
    slope = 2 * (x @ kernel + bias - y) / y.size
    kernel = kernel - _RATE * x.T @ slope
    bias = bias - _RATE * slope.sum(axis=0)
  return _flat([kernel, bias]) - _flat(weights)


def _flat(weights):
  return np.concatenate([np.ravel(w) for w in weights])


@pytest.mark.slow
class FedAvgTest(absltest.TestCase):
  def _check_follows_plain_mean(self, build, is_weighted, **options):
    """Each round's step of the global model is that of the plain mean."""
    secure = build(
      model_fn=_model,
      client_optimizer_fn=tff.learning.optimizers.build_sgdm(_RATE),
      server_optimizer_fn=tff.learning.optimizers.build_sgdm(1.0),
      model_aggregator=aggregators.autotuned_secure_aggregator(
        modulus=2**16, seed=1, clipping=False, weighted=is_weighted, **options
      ),
    )
    sizes = [4, 8, 20, 36]
    data = [_client_data(size, seed=size) for size in sizes]
    datasets = [_dataset(batches) for batches in data]
    state, losses = secure.initialize(), []
    for number in range(4):
      weights = secure.get_model_weights(state).trainable
      output = secure.next(state, datasets)
      state = output.state
      step = _flat(secure.get_model_weights(state).trainable) - _flat(weights)
      plain_step = np.average(
        [_local_step(weights, batches) for batches in data],
        axis=0,
        weights=sizes if is_weighted else None,
      )
      metrics = output.metrics
      losses.append(metrics['client_work']['train']['loss'])
      error = np.linalg.norm(step - plain_step) / np.linalg.norm(plain_step)
      if number:
        # The first round calibrates; then 16 bits leave about 1e-3.
        self.assertLess(error, 0.01)
      else:
        self.assertLess(error, 1.5)
    self.assertLess(losses[-1], losses[0])
    self.assertEqual(losses, sorted(losses, reverse=True))
    found = autotune_metrics.round_measurements(metrics)
    self.assertEqual(found['bits_per_coordinate'], 16)
    self.assertEqual(found['num_clients'], 4)
    return collections.OrderedDict(found)

  def test_weighted_follows_the_plain_mean(self):
    found = self._check_follows_plain_mean(
      tff.learning.algorithms.build_weighted_fed_avg, is_weighted=True
    )
    self.assertEqual(found['bytes_per_client'], 2048)  # 1024 entries.

  def test_unweighted_follows_the_plain_mean(self):
    self._check_follows_plain_mean(
      tff.learning.algorithms.build_unweighted_fed_avg,
      is_weighted=False,
      zeroing=False,
    )

  def test_an_aggregator_of_the_other_kind_is_refused_by_its_argument(self):
    for build, is_weighted in (
      (tff.learning.algorithms.build_unweighted_fed_avg, True),
      (tff.learning.algorithms.build_weighted_fed_avg, False),
    ):
      with self.assertRaisesRegex(
        TypeError,
        r'found tff_autotune_secagg\.autotuned_secure_aggregator\(weighted='
        rf'{is_weighted}\)\.$',
      ):
        build(
          model_fn=_model,
          client_optimizer_fn=tff.learning.optimizers.build_sgdm(_RATE),
          model_aggregator=aggregators.autotuned_secure_aggregator(
            weighted=is_weighted
          ),
        )


if __name__ == '__main__':
  absltest.main()

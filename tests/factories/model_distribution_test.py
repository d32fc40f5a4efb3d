# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The wiring of the low-bit download, alone and in TFF's builders."""

import asyncio
import collections
import functools

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests import factory_conformance
import tff_autotune_secagg as autotune
from tff_autotune_secagg.factories import value_types
from tff_autotune_secagg.numerics.download import low_bit_leaves

setUpModule = factory_conformance.set_up_context

_ALGORITHMS = tff.learning.algorithms
_FEATURES = 64
_SPEC = (
  tf.TensorSpec([None, _FEATURES], tf.float32),
  tf.TensorSpec([None, 1], tf.float32),
)
_DIM = _FEATURES * 20  # The first kernel; all else is small.


def _keras_model():
  return tf.keras.Sequential(
    [
      tf.keras.layers.InputLayer([_FEATURES]),
      tf.keras.layers.Dense(
        20, kernel_initializer=tf.keras.initializers.GlorotUniform(seed=1)
      ),
      tf.keras.layers.BatchNormalization(),
      tf.keras.layers.Dense(
        1, kernel_initializer=tf.keras.initializers.GlorotUniform(seed=2)
      ),
    ]
  )


def _model_fn():
  return tff.learning.models.from_keras_model(
    _keras_model(), loss=tf.keras.losses.MeanSquaredError(), input_spec=_SPEC
  )


def _functional(trainable, predict):
  """A functional model whose weights are all trained."""
  return tff.learning.models.FunctionalModel(
    initial_weights=(trainable, ()),
    predict_on_batch_fn=predict,
    loss_fn=tf.function(
      lambda output, label, weight=None: tf.reduce_mean(
        tf.square(output - label)
      )
    ),
    input_spec=_SPEC,
  )


def _functional_model():
  @tf.function
  def predict(weights, x, training):
    del training  # Unused.
    (kernel, bias), _ = weights
    return tf.reduce_sum(tf.matmul(x, kernel), 1, keepdims=True) + bias

  kernel = np.random.default_rng(1).standard_normal([_FEATURES, 20]) / 10
  return _functional((np.float32(kernel), np.zeros(1, np.float32)), predict)


def _reconstruction_model_fn():
  """Clients share the first kernel and reconstruct the last layer."""
  model = _keras_model()
  return tff.learning.models.ReconstructionModel.from_keras_model_and_layers(
    keras_model=model,
    global_layers=model.layers[:-1],
    local_layers=model.layers[-1:],
    input_spec=_SPEC,
  )


def _mixed_precision_model(dtypes):
  """A functional model with a kernel and a bias of each dtype."""
  kernels = [
    (np.random.default_rng(2).standard_normal([_FEATURES, 20]) / 10).astype(d)
    for d in dtypes
  ]

  @tf.function
  def predict(weights, x, training):
    del training  # Unused.
    outputs = [
      tf.cast(tf.matmul(tf.cast(x, kernel.dtype), kernel), tf.float32)
      for kernel in weights[0]
    ]
    return tf.reduce_sum(tf.add_n(outputs), 1, keepdims=True)

  return _functional(tuple(kernels), predict)


def _sgd():
  return tff.learning.optimizers.build_sgdm(0.01)


def _data(round_num):
  rng = np.random.default_rng(round_num)
  return [
    tf.data.Dataset.from_tensor_slices(
      (
        rng.standard_normal([6, _FEATURES]).astype(np.float32),
        rng.standard_normal([6, 1]).astype(np.float32),
      )
    ).batch(3)
    for _ in range(3)
  ]


@functools.lru_cache(maxsize=None)
def _training(bits=8):
  return _ALGORITHMS.build_weighted_fed_avg(
    _model_fn,
    _sgd(),
    model_distributor=autotune.low_bit_model_distributor(
      _model_fn, bits=bits, seed=3
    ),
    model_aggregator=tff.aggregators.MeanFactory(),
  )


@functools.lru_cache(maxsize=None)
def _plain_training():
  return _ALGORITHMS.build_weighted_fed_avg(
    _model_fn, _sgd(), model_aggregator=tff.aggregators.MeanFactory()
  )


@functools.lru_cache(maxsize=None)
def _alone(bits=8, dim=1500):
  """A distributor and what one round of it gives a client, TFF's way."""
  specs = tff.learning.models.ModelWeights(
    (
      tf.TensorSpec([dim], tf.float32),
      tf.TensorSpec([1100], tf.bfloat16),
      tf.TensorSpec([7], tf.float32),
    ),
    (tf.TensorSpec([1200], tf.float32), tf.TensorSpec([], tf.int64)),
  )
  weights_type = tff.types.tensorflow_to_type(specs)
  process = autotune.low_bit_model_distributor(weights_type, bits=bits, seed=3)

  # TFF runs nothing that has clients without a value at them.
  @tff.federated_computation(
    process.initialize.type_signature.result,
    tff.FederatedType(weights_type, tff.SERVER),
    tff.FederatedType(np.int32, tff.CLIENTS),
  )
  def run(state, weights, number):
    output = process.next(state, weights)
    return output.state, output.result, output.measurements, number

  return process, run


def _weights(dim=1500):
  rng = np.random.default_rng(1)
  return tff.learning.models.ModelWeights(
    (
      np.float32(rng.standard_normal(dim)),
      rng.standard_normal(1100).astype(tf.bfloat16.as_numpy_dtype),
      np.float32(rng.standard_normal(7)),
    ),
    (np.float32(rng.standard_normal(1200)), np.int64(2**40 + 1)),
  )


class AloneTest(absltest.TestCase):
  def test_all_clients_get_the_coded_model_and_the_exact_rest(self):
    process, run = _alone()
    weights = _weights()
    state = process.initialize()
    received = []
    for number in (1, 2):
      state, results, measured, _ = run(state, weights, [0, 0])
      self.assertEqual(state['round'], number)
      received += results
      found = measured['download_nmse']
      predicted = low_bit_leaves.predicted_nmse(8, 1500 + 1100)
      self.assertBetween(found / predicted, 0.7, 1.4)
    leaves = [value_types.flatten(result) for result in received]
    for one, other in zip(leaves[0], leaves[1]):
      np.testing.assert_array_equal(one, other)
    # The next round rotates anew.
    self.assertTrue(np.any(leaves[0][0] != leaves[2][0]))
    for index, wanted in ((2, weights.trainable[2]), (3, weights[1][0])):
      np.testing.assert_array_equal(leaves[0][index], wanted)
    self.assertEqual(leaves[0][4], 2**40 + 1)
    for index in (0, 1):
      wanted = np.float64(weights.trainable[index])
      error = np.sum((np.float64(leaves[0][index]) - wanted) ** 2)
      self.assertLess(error / np.sum(wanted**2), 2 * predicted + 4.0**-9)

  def test_bytes_are_those_of_the_broadcast(self):
    output = _training().next(_training().initialize(), _data(1))
    measured = output.metrics['distributor']['download_bytes_per_client']
    model = _training().get_model_weights(output.state)
    floats = sum(leaf.nbytes for leaf in value_types.flatten(model))
    self.assertLess(measured, floats / 2)
    # Whatever else FedAvg sends goes down with both.
    plain, ours = _form(_plain_training()), _form(_training())
    saved = _broadcast_bytes(plain) - _broadcast_bytes(ours)
    self.assertEqual(saved, floats - measured)
    # What decodes it is sent along once.
    grown = _bytes_of(ours.work) - _bytes_of(plain.work)
    self.assertBetween(grown, 1_000, 20_000)


def _form(process):
  return tff.backends.mapreduce.get_map_reduce_form_for_computation(
    process.next
  )


def _broadcast_bytes(form):
  """Bytes of what `prepare` sends down."""
  return sum(
    np.dtype(leaf.dtype).itemsize * int(np.prod(leaf.shape))
    for leaf in tff.structure.flatten(form.prepare.type_signature.result)
  )


def _bytes_of(computation):
  return len(
    tff.framework.serialize_computation(computation).SerializeToString()
  )


class BuildersTest(parameterized.TestCase):
  @parameterized.named_parameters(
    (
      'unweighted_fed_avg',
      lambda **options: _ALGORITHMS.build_unweighted_fed_avg(
        _model_fn, _sgd(), **options
      ),
    ),
    (
      'fed_prox',
      lambda **options: _ALGORITHMS.build_weighted_fed_prox(
        _model_fn, 0.1, _sgd(), **options
      ),
    ),
    (
      'fed_sgd',
      lambda **options: _ALGORITHMS.build_fed_sgd(_model_fn, **options),
    ),
    (
      'mime_lite',
      lambda **options: _ALGORITHMS.build_weighted_mime_lite(
        _model_fn, _sgd(), **options
      ),
    ),
    (
      'schedule',
      lambda **options: (
        _ALGORITHMS.build_weighted_fed_avg_with_optimizer_schedule(
          _model_fn,
          lambda round_num: 0.01,
          tff.learning.optimizers.build_sgdm,
          **options,
        )
      ),
    ),
    (
      'reconstruction',
      lambda model_distributor: _ALGORITHMS.build_fed_recon(
        _reconstruction_model_fn,
        loss_fn=tf.keras.losses.MeanSquaredError,
        model_distributor=model_distributor,
      ),
      _reconstruction_model_fn,
    ),
    (
      'evaluation',
      lambda **options: _ALGORITHMS.build_fed_eval(_model_fn, **options),
    ),
  )
  def test_takes_it(self, build, model_fn=_model_fn):
    process = build(
      model_distributor=autotune.low_bit_model_distributor(model_fn)
    )
    self.assertIn(
      'download_nmse', str(process.next.type_signature.result.metrics)
    )

  def test_a_functional_model_trains_with_it(self):
    model = _functional_model()
    process = _ALGORITHMS.build_weighted_fed_avg(
      model,
      _sgd(),
      model_distributor=autotune.low_bit_model_distributor(model, bits=2),
    )
    output = process.next(process.initialize(), _data(1))
    found = output.metrics['distributor']['download_nmse']
    predicted = low_bit_leaves.predicted_nmse(2, _DIM)
    self.assertBetween(found / predicted, 0.7, 1.4)

  def test_a_model_of_other_precisions_trains_with_it(self):
    dtypes = [np.float16, np.float64]  # TFF takes no mean of bfloat16.
    model = _mixed_precision_model(dtypes)
    process = _ALGORITHMS.build_weighted_fed_avg(
      model,
      _sgd(),
      model_distributor=autotune.low_bit_model_distributor(model),
      model_aggregator=tff.aggregators.MeanFactory(),
    )
    state = process.initialize()
    output = process.next(state, _data(1))
    before = process.get_model_weights(state).trainable
    after = process.get_model_weights(output.state).trainable
    for dtype, one, other in zip(dtypes, before, after):
      self.assertEqual(np.asarray(other).dtype, dtype)
      self.assertFalse(np.array_equal(one, other))
    found = output.metrics['distributor']['download_nmse']
    self.assertLess(found, 2 * low_bit_leaves.predicted_nmse(8, 2 * _DIM))


class StateTest(absltest.TestCase):
  def test_a_training_continues_as_if_undisturbed(self):
    process = _training()
    state = process.initialize()
    for number in (1, 2):
      state = process.next(state, _data(number)).state
    manager = tff.program.FileProgramStateManager(
      self.create_tempdir().full_path
    )
    asyncio.run(manager.save(state, 2))
    loaded, version = asyncio.run(autotune.load_latest_state(manager, process))
    self.assertEqual(version, 2)
    self.assertEqual(loaded.distributor['round'], 2)
    weights = [
      process.get_model_weights(process.next(s, _data(3)).state).trainable
      for s in (state, loaded)
    ]
    for one, other in zip(*weights):
      np.testing.assert_array_equal(one, other)

  def test_another_setting_is_refused_by_name(self):
    process, run = _alone()
    other, other_run = _alone(bits=4)
    with self.assertRaisesRegex(ValueError, '`bits` 8'):
      other_run(process.initialize(), _weights(), [0])
    with self.assertRaisesRegex(ValueError, '`bits` 4'):
      run(other.initialize(), _weights(), [0])
    state = collections.OrderedDict(process.initialize())
    state['settings'] = collections.OrderedDict(bits=8, dim=2599)
    with self.assertRaisesRegex(ValueError, '`dim` 2599'):
      run(state, _weights(), [0])

  def test_a_running_training_takes_it_up(self):
    plain = _plain_training()
    before = plain.next(plain.initialize(), _data(1)).state
    process = _training()
    state = process.initialize()
    state = process.set_model_weights(state, plain.get_model_weights(before))
    output = process.next(state, _data(2))
    self.assertLess(output.metrics['distributor']['download_nmse'], 1e-4)


class SmallModelTest(absltest.TestCase):
  def test_a_model_of_which_nothing_is_coded_says_so_and_arrives(self):
    weights_type = tff.types.tensorflow_to_type(
      tff.learning.models.ModelWeights((tf.TensorSpec([3], tf.float32),), ())
    )
    with self.assertLogs(level='WARNING') as logs:
      process = autotune.low_bit_model_distributor(weights_type)
    self.assertIn('codes nothing of this model', logs.output[0])

    @tff.federated_computation(
      process.initialize.type_signature.result,
      tff.FederatedType(weights_type, tff.SERVER),
      tff.FederatedType(np.int32, tff.CLIENTS),
    )
    def run(state, weights, number):
      output = process.next(state, weights)
      return output.result, output.measurements, number

    wanted = np.float32([1.5, np.nan, 1e-38])
    weights = tff.learning.models.ModelWeights((wanted,), ())
    (received,), measured, _ = run(process.initialize(), weights, [0])
    np.testing.assert_array_equal(received.trainable[0], wanted)
    self.assertEqual(measured['download_bytes_per_client'], 3 * 4)


class ArgumentsTest(parameterized.TestCase):
  @parameterized.parameters(1, 9, 8.0, True)
  def test_bits(self, bits):
    with self.assertRaisesRegex(
      (TypeError, ValueError),
      '^`bits` must be an int of at least 2 and at most 8, found ',
    ):
      autotune.low_bit_model_distributor(_model_fn, bits=bits)

  @parameterized.parameters(
    (None, 'NoneType'),
    (tff.TensorType(np.float32, [3]), r'float32\[3\]'),
    (tff.to_type([np.float32]), '<float32>'),
  )
  def test_model(self, model, found):
    with self.assertRaisesRegex(
      TypeError,
      '^`model` must be a model function, a '
      '`tff.learning.models.FunctionalModel` or the type of '
      f'`tff.learning.models.ModelWeights`, found {found}',
    ):
      autotune.low_bit_model_distributor(model)


if __name__ == '__main__':
  absltest.main()

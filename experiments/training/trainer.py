# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Federated averaging on images with any aggregator: `run(config)` -> rows."""

import asyncio
import collections
import time
from typing import Any, Callable, Dict, Iterator, Mapping, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from experiments.common import aggregator_factories
from experiments.common import arms
from experiments.common import checkpoints
from experiments.common import client_data
from experiments.common import datasets
from experiments.common import models
from experiments.common import partitions
from experiments.common import seeds
from experiments.training import settings
import tff_autotune_secagg as autotune

Row = Dict[str, Any]

# Test images per batch of an evaluation; only the memory depends on it.
_EVAL_BATCH_SIZE = 500


def load_data(config: settings.Config, **kwargs) -> datasets.ImageData:
  """Loads the data set of `config`; `kwargs` as for `datasets.load`."""
  if config.smoke:
    return datasets.synthetic(
      config.dataset, num_train=10 * config.num_clients, num_test=20
    )
  return datasets.load(config.dataset, **kwargs)


def sample_clients(config: settings.Config, round_num: int) -> np.ndarray:
  """Numbers of the clients of one round, int64 vector, sorted."""
  rng = seeds.generator(config.seed, seeds.Stream.SAMPLING, round_num)
  size = config.clients_per_round
  if config.fewest_clients_per_round:
    ends = np.log([config.fewest_clients_per_round, size])
    size = int(np.round(np.exp(rng.uniform(*ends))))
  return np.sort(rng.choice(config.num_clients, size, replace=False))


def partition(config: settings.Config, data: datasets.ImageData):
  """Splits the training images among the clients as `config` says."""
  if config.partition == 'iid':
    return partitions.partition_iid(
      data.train_labels, config.num_clients, config.partition_seed
    )
  return partitions.partition_dirichlet(
    data.train_labels,
    config.num_clients,
    config.partition_seed,
    config.dirichlet_concentration,
  )


def _sgd(learning_rate, momentum):
  # TFF takes None, not 0, for SGD without momentum.
  return tff.learning.optimizers.build_sgdm(learning_rate, momentum or None)


def _server_optimizer(config: settings.Config):
  if config.server_optimizer == 'adam':
    return tff.learning.optimizers.build_adam(config.server_learning_rate)
  return _sgd(config.server_learning_rate, config.server_momentum)


def _build_model(config: settings.Config, data: datasets.ImageData):
  return models.build(
    config.model,
    image_shape=data.image_shape,
    channel_statistics=data.channel_statistics,
    num_classes=data.num_classes,
    width=config.width,
    seed=seeds.integer(config.seed, seeds.Stream.MODEL),
  )


def _build_aggregator(config: settings.Config, keras_model):
  return aggregator_factories.build(
    config.aggregator,
    aggregator_factories.Round(
      num_clients=config.clients_per_round,
      leaf_sizes=tuple(
        int(w.shape.num_elements()) for w in keras_model.trainable_weights
      ),
      seed=seeds.integer(config.seed, seeds.Stream.AGGREGATION),
    ),
  )


def _build_distributor(config: settings.Config, model):
  """The process by which the model goes down; None for TFF's, as floats."""
  if config.model_download_bits == arms.FLOAT_BITS:
    return None
  return autotune.low_bit_model_distributor(
    model,
    bits=config.model_download_bits,
    seed=seeds.integer(config.seed, seeds.Stream.DOWNLOAD),
  )


def check(config: settings.Config, data: datasets.ImageData) -> None:
  """Raises ValueError if a setting would end the run once it has begun.

  Builds all that a `Trainer` is made of, and compiles nothing.

  Args:
    config: The settings.
    data: The data set that `load_data(config)` returns.
  """
  partition(config, data)
  model = _build_model(config, data)
  _sgd(config.client_learning_rate, config.client_momentum)
  _server_optimizer(config)
  factory = _build_aggregator(config, model).factory
  weights = model.trainable_weights
  types = [tff.to_type([(np.float32, tuple(w.shape)) for w in weights])]
  if isinstance(factory, tff.aggregators.WeightedAggregationFactory):
    types.append(tff.TensorType(np.float32))
  factory.create(*types)


class Trainer:
  """A learning process, its model and what its aggregator sends.

  Attributes:
    process: The `tff.learning.templates.LearningProcess`.
    aggregator: The `aggregator_factories.Built` inside it.
  """

  def __init__(
    self,
    config: settings.Config,
    data: datasets.ImageData,
    metrics_aggregator: Optional[Callable[..., tff.Computation]] = None,
  ):
    """Initializes the trainer.

    Args:
      config: The settings.
      data: The data set that `load_data(config)` returns.
      metrics_aggregator: Of the clients' metrics, as TFF's builders take it;
        None for TFF's, sums in the clear.
    """
    self._config = config
    self._data = data
    self._parts = partition(config, data)
    keras_model = _build_model(config, data)
    self.aggregator = _build_aggregator(config, keras_model)
    weighted = isinstance(
      self.aggregator.factory, tff.aggregators.WeightedAggregationFactory
    )
    algorithm = (
      tff.learning.algorithms.build_weighted_fed_avg
      if weighted
      else tff.learning.algorithms.build_unweighted_fed_avg
    )
    self._model = tff.learning.models.functional_model_from_keras(
      keras_model,
      tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
      client_data.element_spec(data),
      _METRICS,
    )
    self.process = algorithm(
      self._model,
      _sgd(config.client_learning_rate, config.client_momentum),
      _server_optimizer(config),
      model_aggregator=self.aggregator.factory,
      model_distributor=_build_distributor(config, self._model),
      metrics_aggregator=metrics_aggregator,
      # The same numbers. The default sets up the loop anew for each client: a
      # round of 100 clients of 60 images took 2.3 s with it, and 1.2 s so.
      loop_implementation=tff.learning.LoopImplementation.DATASET_ITERATOR,
    )
    weights = keras_model.trainable_weights
    self._model_bytes = sum(
      w.dtype.size * int(w.shape.num_elements()) for w in weights
    )
    self._evaluate_batch = self._build_evaluation([w.shape for w in weights])

  def row(self, round_num: int, metrics) -> Row:
    """What a round's metrics say of training, sums and bytes."""
    train = metrics['client_work']['train']  # Empty if they stay at clients.
    row = {
      'round': round_num,
      **{f'train_{name}': float(train[name]) for name in _METRICS if train},
      'aggregator': scalar_measurements(metrics['aggregator']),
      'bits_per_coordinate': self.aggregator.bits_per_coordinate,
      'bytes_per_client': self.aggregator.bytes_per_client,
      'download_bytes_per_client': self._model_bytes,
    }
    # TFF's own distributor measures nothing.
    row.update(scalar_measurements(metrics['distributor'] or {}))
    return row

  def client_data(self, round_num: int):
    """Datasets of the clients of one round."""
    return [
      client_data.client_dataset(
        self._data,
        self._parts[client],
        batch_size=self._config.batch_size,
        num_epochs=self._config.local_epochs,
        seed=self._config.seed,
        round_num=round_num,
        client=int(client),
        augment=self._config.augment,
      )
      for client in sample_clients(self._config, round_num)
    ]

  def _build_evaluation(self, weight_shapes):
    """A callable (weights, images, labels) -> (summed loss, hits)."""
    # In a graph and a session: the functional model refuses `tf.function`, and
    # making it has made its Keras model unusable.
    with tf.Graph().as_default() as graph:
      placeholder = tf.compat.v1.placeholder
      weights = [placeholder(tf.float32, shape) for shape in weight_shapes]
      images = placeholder(tf.uint8, (None,) + tuple(self._data.image_shape))
      labels = placeholder(tf.int32, (None,))
      logits = self._model.predict_on_batch(
        (tuple(weights), ()), images, training=False
      )
      losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
      hits = tf.equal(tf.argmax(logits, axis=1, output_type=tf.int32), labels)
      fetches = (tf.reduce_sum(losses), tf.math.count_nonzero(hits))
      session = tf.compat.v1.Session(graph=graph)
    return session.make_callable(fetches, [*weights, images, labels])

  def evaluate(self, state) -> Row:
    """Loss and accuracy of the model in `state` on the whole test set."""
    return self.evaluate_weights(
      self.process.get_model_weights(state).trainable
    )

  def evaluate_weights(self, weights) -> Row:
    """As `evaluate`, of the trainable weights."""
    images, labels = self._data.test_images, self._data.test_labels
    loss, hits = 0.0, 0
    for start in range(0, len(labels), _EVAL_BATCH_SIZE):
      batch = slice(start, start + _EVAL_BATCH_SIZE)
      batch_loss, batch_hits = self._evaluate_batch(
        *weights, images[batch], labels[batch]
      )
      loss += float(batch_loss)
      hits += int(batch_hits)
    return {
      'test_loss': loss / len(labels),
      'test_accuracy': hits / len(labels),
    }


# Constructors, so that the order of the metrics' state is the one of the keys.
_METRICS = collections.OrderedDict(
  loss=lambda: tf.keras.metrics.SparseCategoricalCrossentropy(from_logits=True),
  accuracy=tf.keras.metrics.SparseCategoricalAccuracy,
)


def scalar_measurements(measurements, prefix='') -> Row:
  """Flattens an aggregator's measurements: 'a/b/c' -> number.

  Args:
    measurements: Nested mappings; arrays of more than 16 values are dropped.
    prefix: Put before each key.

  Returns:
    A flat dict of numbers and short lists.
  """
  flat = {}
  if isinstance(measurements, Mapping):
    for key, value in measurements.items():
      flat.update(scalar_measurements(value, f'{prefix}{key}/'))
  elif measurements is not None and np.size(measurements):
    array = np.asarray(measurements)
    if array.size <= 16 and array.dtype.kind in 'biuf':
      flat[prefix.rstrip('/')] = array.tolist()
  return flat


def run(
  config: settings.Config,
  data: datasets.ImageData,
  *,
  state_manager: Optional[tff.program.ProgramStateManager] = None,
  checkpoint_every: int = 10,
  on_ready: Callable[[int], None] = lambda round_num: None,
) -> Iterator[Row]:
  """Trains and yields one row for each round.

  A row that was yielded has been taken by the caller before the checkpoint of
  its round is written, so a caller that stores rows durably has every row up to
  the newest checkpoint. Every random draw outside the aggregator depends only
  on the seeds and the round, so a run that continues from a checkpoint yields
  the rows that an undisturbed run yields; bit for bit if the aggregator draws
  no randomness of its own either (`rounding=dither`).

  Args:
    config: The settings.
    data: The data set that `load_data(config)` returns.
    state_manager: Where checkpoints are kept, and the one to continue from;
      None for no checkpoints.
    checkpoint_every: Rounds between two checkpoints.
    on_ready: Called once with the round to continue from (0 at the start),
      before the first row.

  Yields:
    Dicts with `round` (from 1), `train_loss`, `train_accuracy`, with
    `test_loss` and `test_accuracy` in rounds that are evaluated, `aggregator`
    (its measurements), `bits_per_coordinate`, `bytes_per_client` (of the
    update), `download_bytes_per_client` (of the model) and, where the model is
    coded, `download_nmse`; and `wall_seconds` (of the round, evaluation
    included).
  """
  learner = Trainer(config, data)
  if state_manager is None:
    state, first = learner.process.initialize(), 0
  else:
    state, first = asyncio.run(
      autotune.load_latest_state(state_manager, learner.process)
    )
  on_ready(first)
  for round_num in range(first + 1, config.num_rounds + 1):
    start = time.monotonic()
    output = learner.process.next(state, learner.client_data(round_num))
    state = output.state
    row = learner.row(round_num, output.metrics)
    if round_num % config.eval_every == 0 or round_num == config.num_rounds:
      row.update(learner.evaluate(state))
    row['wall_seconds'] = round(time.monotonic() - start, 3)
    yield row
    if state_manager is not None and (
      round_num % checkpoint_every == 0 or round_num == config.num_rounds
    ):
      checkpoints.save(state_manager, state, round_num)

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Trains with 8-bit secure sums: `tff.learning.programs.train_model`.

A file to copy and to change. It trains a small network on scikit-learn's
handwritten digits, which are split among 30 clients; ten are drawn for each
round. TFF's program runs the rounds; its managers write, below --output_dir,

  metrics.csv    one row a round, the aggregator's measurements among them
  tensorboard/   the same, for `tensorboard --logdir`
  checkpoints/   the state of the program, after each round
  model/         the model, every ten rounds and at the end

The same command continues where an interrupted one stopped.

  python -m examples.program_train --output_dir=/tmp/digits
"""

import asyncio
import collections
from concurrent import futures
import os
from typing import Callable, List

from absl import app
from absl import flags
import numpy as np
from sklearn import datasets
import tensorflow as tf
import tensorflow_federated as tff

import tff_autotune_secagg as autotune

_SEED = 1
_NUM_CLIENTS = 30
_TEST_SIZE = 360
_BATCH_SIZE = 10
_CLIENT_LEARNING_RATE = 0.1
# Older ones are removed. The first, round 0, stays: other runs can start there.
_CHECKPOINTS_KEPT = 3

_ELEMENT_SPEC = collections.OrderedDict(
  x=tf.TensorSpec([None, 8, 8, 1], tf.float32),
  y=tf.TensorSpec([None], tf.int32),
)


class Digits:
  """Handwritten digits, split at random into a test set and equal clients."""

  def __init__(self, clients_per_round: int):
    """Loads the images.

    Args:
      clients_per_round: Clients drawn without replacement for each round.
    """
    images, labels = datasets.load_digits(return_X_y=True)
    order = np.random.default_rng(_SEED).permutation(len(labels))
    images = np.float32(images[order].reshape([-1, 8, 8, 1]) / 16)
    labels = np.int32(labels[order])
    self._clients_per_round = clients_per_round
    self._images = np.array_split(images[_TEST_SIZE:], _NUM_CLIENTS)
    self._labels = np.array_split(labels[_TEST_SIZE:], _NUM_CLIENTS)
    self.test_images = images[:_TEST_SIZE]
    self.test_labels = labels[:_TEST_SIZE]

  def client_data(self, round_num: int) -> List[tf.data.Dataset]:
    """The batches of the clients of a round, the same in every call."""
    rng = np.random.default_rng([_SEED, round_num])
    clients = rng.choice(_NUM_CLIENTS, self._clients_per_round, replace=False)
    return [
      tf.data.Dataset.from_tensor_slices(
        collections.OrderedDict(x=self._images[client], y=self._labels[client])
      )
      .shuffle(len(self._labels[client]), seed=int(rng.integers(2**31)))
      .batch(_BATCH_SIZE)
      for client in clients
    ]


def build_model() -> tf.keras.Model:
  """A small network; the last layer gives logits."""

  def initializer(number):
    return tf.keras.initializers.GlorotUniform(seed=_SEED + number)

  return tf.keras.Sequential(
    [
      tf.keras.layers.Conv2D(
        16,
        3,
        activation='relu',
        kernel_initializer=initializer(0),
        input_shape=(8, 8, 1),
      ),
      tf.keras.layers.Flatten(),
      tf.keras.layers.Dense(10, kernel_initializer=initializer(1)),
    ]
  )


def build_process(modulus: int) -> tff.learning.templates.LearningProcess:
  """Federated averaging over secure sums modulo `modulus`."""

  def model_fn():
    return tff.learning.models.from_keras_model(
      build_model(),
      loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
      input_spec=_ELEMENT_SPEC,
      metrics=[tf.keras.metrics.SparseCategoricalAccuracy()],
    )

  return tff.learning.algorithms.build_weighted_fed_avg(
    model_fn,
    client_optimizer_fn=tff.learning.optimizers.build_sgdm(
      _CLIENT_LEARNING_RATE
    ),
    # The only line that differs from training without secure aggregation.
    model_aggregator=autotune.autotuned_secure_aggregator(modulus=modulus),
  )


class _AsyncContext(tff.framework.AsyncContext):
  """Another context's computations as coroutines, in a thread of their own.

  A program writes checkpoints and metrics of one round while the next one runs,
  so that computing must not hold up the event loop.
  """

  def __init__(self, context: tff.framework.SyncContext):
    self._context = context
    self._thread = futures.ThreadPoolExecutor(max_workers=1)

  async def invoke(self, comp, arg):
    return await asyncio.get_running_loop().run_in_executor(
      self._thread, self._context.invoke, comp, arg
    )


def data_source(client_data: Callable[[int], list], federated_type: tff.Type):
  """A source of clients that are chosen by the number of the round alone.

  Checkpoints hold the iterator. All that it has to remember is the round, so a
  run that continues sees the clients that an undisturbed run sees.

  Args:
    client_data: Takes a round, from 1, and returns the data of its clients.
    federated_type: Type of the data of a cohort.

  Returns:
    A `tff.program.FederatedDataSource`.
  """

  class Iterator(tff.program.FederatedDataSourceIterator):
    def __init__(self, rounds: int = 0):
      self._rounds = rounds

    @classmethod
    def from_bytes(cls, buffer: bytes) -> 'Iterator':
      return cls(int(buffer))

    def to_bytes(self) -> bytes:
      return str(self._rounds).encode()

    @property
    def federated_type(self) -> tff.Type:
      return federated_type

    def select(self, k=None):
      del k  # `client_data` knows the number of clients.
      self._rounds += 1
      return client_data(self._rounds)

  class Source(tff.program.FederatedDataSource):
    @property
    def federated_type(self) -> tff.Type:
      return federated_type

    def iterator(self) -> Iterator:
      return Iterator()

  return Source()


def _metrics_manager(output_dir: str) -> tff.program.ReleaseManager:
  return tff.program.GroupingReleaseManager(
    [
      tff.program.CSVFileReleaseManager(
        os.path.join(output_dir, 'metrics.csv'), key_fieldname='round'
      ),
      tff.program.TensorBoardReleaseManager(
        os.path.join(output_dir, 'tensorboard')
      ),
    ]
  )


def _accuracy(process, state, digits: Digits) -> float:
  """Share of the test images that the model in `state` gets right."""
  model = build_model()
  process.get_model_weights(state).assign_weights_to(model)
  logits = model.predict(digits.test_images, verbose=0)
  return float(np.mean(np.argmax(logits, axis=1) == digits.test_labels))


def train(
  output_dir: str,
  *,
  num_rounds: int,
  clients_per_round: int = 10,
  modulus: int = 256,
) -> float:
  """Runs what is left of the program; returns the final test accuracy.

  Args:
    output_dir: Folder to write to and to continue from.
    num_rounds: Rounds of the whole program.
    clients_per_round: Clients in a round.
    modulus: Of the secure sums; log2 of it is the bits per coordinate.
  """
  autotune.simulation.set_local_context()
  context = tff.framework.get_context_stack().current
  digits = Digits(clients_per_round)
  process = build_process(modulus)
  initial_state = process.initialize()
  source = data_source(
    digits.client_data, process.next.type_signature.parameter[1]
  )
  checkpoints = tff.program.FileProgramStateManager(
    os.path.join(output_dir, 'checkpoints'), keep_total=_CHECKPOINTS_KEPT
  )
  program_context = tff.program.NativeFederatedContext(_AsyncContext(context))
  with tff.framework.get_context_stack().install(program_context):
    asyncio.run(
      tff.learning.programs.train_model(
        train_process=process,
        initial_train_state=initial_state,
        train_data_source=source,
        train_per_round_clients=clients_per_round,
        train_total_rounds=num_rounds,
        program_state_manager=checkpoints,
        model_output_manager=tff.program.SavedModelFileReleaseManager(
          os.path.join(output_dir, 'model')
        ),
        train_metrics_manager=_metrics_manager(output_dir),
        # `EvaluationManager` would evaluate at clients, beside the training;
        # here the server does it at the end.
        evaluation_manager=None,
        evaluation_periodicity=num_rounds,
      )
    )
  program_state, _ = asyncio.run(
    checkpoints.load_latest(
      tff.learning.programs.ProgramState(initial_state, 0, 0, source.iterator())
    )
  )
  return _accuracy(process, program_state.state, digits)


def define_flags() -> None:
  """Defines the flags of `main`."""
  flags.DEFINE_string(
    'output_dir', None, 'Folder to write to and to continue from.'
  )
  flags.DEFINE_integer('num_rounds', 30, 'Rounds of training.', lower_bound=1)
  flags.DEFINE_integer(
    'modulus', 256, 'log2 of it is the bits per coordinate.', lower_bound=2
  )
  flags.DEFINE_boolean('smoke', False, 'Two rounds of two clients.')
  flags.mark_flag_as_required('output_dir')


def main(argv) -> None:
  if len(argv) > 1:
    raise app.UsageError(f'Only flags are taken, found {argv[1:]!r}.')
  options = dict(num_rounds=flags.FLAGS.num_rounds)
  if flags.FLAGS.smoke:
    options = dict(num_rounds=2, clients_per_round=2)
  accuracy = train(
    flags.FLAGS.output_dir, modulus=flags.FLAGS.modulus, **options
  )
  print(f'Test accuracy: {100 * accuracy:.2f} %')
  print(f'Metrics: {flags.FLAGS.output_dir}/metrics.csv')


if __name__ == '__main__':
  define_flags()
  app.run(main)

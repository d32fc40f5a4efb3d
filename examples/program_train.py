# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
r"""The demo's training as a program: `tff.learning.programs.train_model`.

Trains on scikit-learn's handwritten digits with 8-bit secure sums. TFF's
program runs the rounds; its managers write, below --output_dir,

  metrics.csv    one row a round, the aggregator's measurements among them
  tensorboard/   the same, for `tensorboard --logdir`
  checkpoints/   the state of the program, after each round
  model/         the model, every ten rounds and at the end

The same command continues where an interrupted one stopped.

  python -m examples.program_train --output_dir=/tmp/digits
"""

import asyncio
from concurrent import futures
import os

from absl import app
from absl import flags

from experiments.common import quiet  # isort: skip. Before TensorFlow is imported.
import tensorflow_federated as tff

from experiments.training import trainer
from tff_autotune_secagg import simulation

del quiet  # Imported for its side effect.

# Older ones are removed. The first, round 0, stays: other runs can start there.
_CHECKPOINTS_KEPT = 3


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


def data_source(trainer: trainer.Trainer, federated_type: tff.Type):
  """Clients and batches as the demo draws them: by the seed and the round.

  Checkpoints hold the iterator. All that it has to remember is the round, so a
  run that continues sees the clients that an undisturbed run sees.

  Args:
    trainer: knows the data of each round.
    federated_type: type of the data of a cohort.

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
      del k  # The trainer knows the number of clients.
      self._rounds += 1
      return trainer.client_data(self._rounds)

  class Source(tff.program.FederatedDataSource):
    @property
    def federated_type(self) -> tff.Type:
      return federated_type

    def iterator(self) -> Iterator:
      return Iterator()

  return Source()


def train(config: trainer.Config, output_dir: str) -> float:
  """Runs what is left of the program; returns the final test accuracy."""
  simulation.set_local_context()
  context = tff.framework.get_context_stack().current
  data = trainer.load_data(config)
  trainer = trainer.Trainer(config, data)
  process = trainer.process
  initial_state = process.initialize()
  source = data_source(trainer, process.next.type_signature.parameter[1])
  checkpoints = tff.program.FileProgramStateManager(
    os.path.join(output_dir, 'checkpoints'), keep_total=_CHECKPOINTS_KEPT
  )
  metrics = tff.program.GroupingReleaseManager(
    [
      tff.program.CSVFileReleaseManager(
        os.path.join(output_dir, 'metrics.csv'), key_fieldname='round'
      ),
      tff.program.TensorBoardReleaseManager(
        os.path.join(output_dir, 'tensorboard')
      ),
    ]
  )
  program_context = tff.program.NativeFederatedContext(_AsyncContext(context))
  with tff.framework.get_context_stack().install(program_context):
    asyncio.run(
      tff.learning.programs.train_model(
        train_process=process,
        initial_train_state=initial_state,
        train_data_source=source,
        train_per_round_clients=config.clients_per_round,
        train_total_rounds=config.num_rounds,
        program_state_manager=checkpoints,
        model_output_manager=tff.program.SavedModelFileReleaseManager(
          os.path.join(output_dir, 'model')
        ),
        train_metrics_manager=metrics,
        # The demo evaluates outside of TFF; `EvaluationManager` would do it by
        # federated evaluation, beside the training.
        evaluation_manager=None,
        evaluation_periodicity=config.num_rounds,
      )
    )
  program_state, _ = asyncio.run(
    checkpoints.load_latest(
      tff.learning.programs.ProgramState(initial_state, 0, 0, source.iterator())
    )
  )
  return trainer.evaluate(program_state.state)['test_accuracy']


def define_flags() -> None:
  """Defines the flags of `main`."""
  flags.DEFINE_string(
    'output_dir', None, 'Folder to write to and to continue from.'
  )
  flags.DEFINE_integer('num_rounds', 30, 'Rounds of training.', lower_bound=1)
  flags.DEFINE_integer(
    'modulus', 256, 'log2 of it is the bits per coordinate.', lower_bound=2
  )
  flags.DEFINE_boolean(
    'smoke', False, 'Shrink everything to seconds, on random images.'
  )
  flags.mark_flag_as_required('output_dir')


def main(argv) -> None:
  if len(argv) > 1:
    raise app.UsageError(f'Only flags are taken, found {argv[1:]!r}.')
  config = trainer.Config(
    dataset='digits',
    model='digits_cnn',
    aggregator=f'autotuned:modulus={flags.FLAGS.modulus}',
    num_clients=30,
    num_rounds=flags.FLAGS.num_rounds,
  )
  if flags.FLAGS.smoke:
    config = trainer.smoke(config)
  accuracy = train(config, flags.FLAGS.output_dir)
  print(f'Test accuracy: {100 * accuracy:.2f} %')
  print(f'Metrics: {flags.FLAGS.output_dir}/metrics.csv')


if __name__ == '__main__':
  define_flags()
  app.run(main)

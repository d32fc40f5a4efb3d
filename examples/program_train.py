# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""A file to copy: a program of TFF's that Ctrl-C ends and that continues then.

python -m examples.program_train FOLDER
"""

import asyncio
import fcntl
import os
import sys

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')  # Silence; before imports.

import numpy as np
from sklearn import datasets
import tensorflow as tf
import tensorflow_federated as tff

import tff_autotune_secagg as autotune


def model_fn():
  return tff.learning.models.from_keras_model(
    tf.keras.Sequential([tf.keras.layers.Dense(10, input_shape=[64])]),
    loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    input_spec=(tf.TensorSpec([None, 64]), tf.TensorSpec([None], tf.int64)),
  )


def client_data(round_num):  # Ten of 30 clients, the same in every call.
  images, labels = datasets.load_digits(return_X_y=True)
  images, tensors = np.float32(images / 16), tf.data.Dataset.from_tensor_slices
  chosen = np.random.default_rng(round_num).permutation(30)[:10]
  return [tensors((images[i::30], labels[i::30])).batch(10) for i in chosen]


class Progress(tff.program.ReleaseManager):
  async def release(self, value, key):
    metrics = await tff.program.materialize_value(value)
    found = autotune.round_measurements(metrics)
    text = 'bin size {bin_size:.2g}, predicted error {predicted_nmse:.2g}'
    text = 'looking for a bin size' if found['calibrating'] else text
    loss = metrics['model_metrics']['loss']
    print(f'round {key}: loss {loss:.3f},', text.format(**found), flush=True)


def hold(folder):  # Returns a lock that ends with the program.
  try:
    os.makedirs(folder, exist_ok=True)
    lock = open(f'{folder}/lock', 'w')
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return lock
  except OSError as error:
    rule = 'must be a folder to write to that no other run has'
    sys.exit(f'{folder!r} {rule}, found: {error.strerror}.')


def main(folder, num_rounds=20):
  lock = hold(folder)
  autotune.simulation.set_local_context()  # A simulation, without cryptography.
  process = tff.learning.algorithms.build_weighted_fed_avg(
    model_fn,
    client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.3),
    model_aggregator=autotune.autotuned_secure_aggregator(modulus=2**8),
  )
  data_type = process.next.type_signature.parameter[1]
  states = tff.program.FileProgramStateManager(f'{folder}/states')
  models = tff.program.SavedModelFileReleaseManager(f'{folder}/model')
  table = tff.program.CSVFileReleaseManager(
    f'{folder}/metrics.csv', key_fieldname='round'
  )
  program = tff.learning.programs.train_model(
    train_process=process,
    initial_train_state=process.initialize(),
    train_data_source=autotune.simulation.CohortSource(client_data, data_type),
    train_per_round_clients=10,
    train_total_rounds=num_rounds,
    program_state_manager=states,
    model_output_manager=models,
    train_metrics_manager=tff.program.GroupingReleaseManager(
      [Progress(), table]
    ),
    evaluation_manager=None,
    evaluation_periodicity=num_rounds,
  )
  done = max(asyncio.run(states.get_versions()) or [0])
  if done:
    text = 'Continuing after' if done < num_rounds else 'Finished with'
    print(f'{text} round {done}.', flush=True)
  try:
    autotune.simulation.run_program(program)
  except KeyboardInterrupt:
    print('Interrupted; the same command continues.', file=sys.stderr)
    sys.exit(130)  # What shells report for Ctrl-C.
  lock.close()


if __name__ == '__main__':
  if len(sys.argv) != 2 or sys.argv[1].startswith('-'):
    sys.exit('Usage: python -m examples.program_train FOLDER')
  main(sys.argv[1])

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the checkpoints that `old_checkpoints_test` loads, now and later.

Run it in the commit that changes the format of a state, and commit what it
writes beside the others:

  python -m tests.checkpoints.write tests/checkpoints/format_3
"""

import asyncio
import os
import shutil
import sys
import tempfile

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

import tff_autotune_secagg as autotune

NUM_ROUNDS = 3
_VALUE_TYPE = tff.TensorType(np.float32, [1024])


def aggregation():
  """A weighted mean with all that keeps a state, repeatable by its dither."""
  return autotune.autotuned_secure_aggregator(
    clipping=True, rounding=autotune.Rounding.DITHER, seed=1
  ).create(_VALUE_TYPE, tff.TensorType(np.float32))


def private_aggregation():
  """A private mean whose clip norm adapts."""
  return autotune.distributed_dp_aggregator(
    noise_multiplier=1.0,
    min_clients=3,
    seed=1,
    client_seed_fn=_client_seed,
    allow_guessable_noise=True,
  ).create(_VALUE_TYPE)


def training():
  """Federated averaging of a linear model."""

  def model_fn():
    spec = (tf.TensorSpec([None, 4]), tf.TensorSpec([None, 1]))
    layers = [
      tf.keras.layers.InputLayer([4]),
      tf.keras.layers.Dense(1, kernel_initializer='zeros'),
    ]
    return tff.learning.models.from_keras_model(
      tf.keras.Sequential(layers),
      loss=tf.keras.losses.MeanSquaredError(),
      input_spec=spec,
    )

  return tff.learning.algorithms.build_weighted_fed_avg(
    model_fn,
    client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1),
    model_aggregator=autotune.autotuned_secure_aggregator(
      rounding=autotune.Rounding.DITHER, seed=1
    ),
  )


PROCESSES = dict(
  aggregation=aggregation,
  private_aggregation=private_aggregation,
  training=training,
)


def run_round(name, process, state, number):
  """Returns the output of round `number`, from 1, of the process `name`."""
  rng = np.random.default_rng([9, number])
  if name == 'training':
    return process.next(state, [_dataset(rng) for _ in range(3)])
  values = list(rng.normal(size=(3, 1024)).astype(np.float32))
  if name == 'aggregation':
    return process.next(state, values, [np.float32(w) for w in (1, 2, 5)])
  return process.next(state, values)


def run(name, process):
  """Returns the state after `NUM_ROUNDS` rounds."""
  state = process.initialize()
  for number in range(1, NUM_ROUNDS + 1):
    state = run_round(name, process, state, number).state
  return state


def manager(folder):
  """The state manager of the checkpoints in a folder."""
  return tff.program.FileProgramStateManager(folder)


def _client_seed():
  # The same noise in every run, so that a run can be repeated.
  return tf.constant([1, 2], tf.int64)


def _dataset(rng):
  features = rng.normal(size=(6, 4)).astype(np.float32)
  targets = rng.normal(size=(6, 1)).astype(np.float32)
  return tf.data.Dataset.from_tensor_slices((features, targets)).batch(3)


def main(folder):
  """Writes an archive of a checkpoint for each process."""
  autotune.simulation.set_local_context()
  for name, build in PROCESSES.items():
    state = run(name, build())
    with tempfile.TemporaryDirectory() as states:
      asyncio.run(manager(states).save(state, NUM_ROUNDS))
      shutil.make_archive(os.path.join(folder, name), 'zip', states)
  autotune.simulation.close()


if __name__ == '__main__':
  main(sys.argv[1])

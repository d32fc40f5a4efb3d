# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""A training that continues, to copy: python -m examples.program_train DIR."""

import argparse
import os
import sys

if __name__ == '__main__':  # Answers `--help` before TensorFlow is loaded.
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('folder', help='of checkpoints, metrics and the model')
  arguments = parser.parse_args()
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


def show(number, metrics):
  loss = metrics['model_metrics']['loss']
  error = autotune.round_measurements(metrics)['predicted_nmse']
  print(f'round {number}: loss {loss:.3f}, error {error:.2g}', flush=True)


def main(folder, num_rounds=20):
  tf.get_logger().setLevel('CRITICAL')  # TFF leaves assertions unused.
  autotune.simulation.set_local_context()  # A simulation, without cryptography.
  secure = autotune.autotuned_secure_aggregator(modulus=2**8)
  process = tff.learning.algorithms.build_weighted_fed_avg(
    model_fn, tff.learning.optimizers.build_sgdm(0.3), model_aggregator=secure
  )
  try:
    autotune.programs.train_in_folder(
      process,
      client_data,
      folder,
      num_rounds=num_rounds,
      on_ready=lambda done: print(f'{done} of {num_rounds} rounds are done.'),
      on_round=show,
    )
  except (OSError, KeyboardInterrupt) as error:
    sys.exit(str(error) or 'Interrupted; the same command continues.')


if __name__ == '__main__':
  main(arguments.folder)

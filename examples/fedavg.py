# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""A file to copy: federated averaging of digits over 8-bit secure sums."""

import argparse
import os

if __name__ == '__main__':  # Answers `--help` before TensorFlow is loaded.
  argparse.ArgumentParser(description=__doc__).parse_args()
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')  # Silence; before imports.

import numpy as np
from sklearn import datasets
import tensorflow as tf
import tensorflow_federated as tff

import tff_autotune_secagg as autotune

NUM_CLIENTS, CLIENTS_PER_ROUND, NUM_TEST = 30, 10, 360


def build_model():
  return tf.keras.Sequential([tf.keras.layers.Dense(10, input_shape=[64])])


def model_fn():
  return tff.learning.models.from_keras_model(
    build_model(),
    loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    input_spec=(tf.TensorSpec([None, 64]), tf.TensorSpec([None], tf.int64)),
  )


def main(num_rounds=20):
  tf.get_logger().setLevel('CRITICAL')  # TFF leaves assertions unused.
  autotune.simulation.set_local_context()  # A simulation, without cryptography.
  rng = np.random.default_rng()
  images, labels = datasets.load_digits(return_X_y=True)
  order = rng.permutation(len(labels))
  images, labels = np.float32(images[order] / 16), labels[order]
  xy = [np.array_split(a[NUM_TEST:], NUM_CLIENTS) for a in (images, labels)]
  clients = [tf.data.Dataset.from_tensor_slices(a).batch(10) for a in zip(*xy)]
  process = tff.learning.algorithms.build_weighted_fed_avg(
    model_fn,
    client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.3),
    model_aggregator=autotune.autotuned_secure_aggregator(modulus=2**8),
  )
  state, model = process.initialize(), build_model()
  for round_num in range(1, num_rounds + 1):
    chosen = rng.choice(NUM_CLIENTS, CLIENTS_PER_ROUND, replace=False)
    output = process.next(state, [clients[i] for i in chosen])
    state = output.state
    process.get_model_weights(state).assign_weights_to(model)
    guesses = np.argmax(model(images[:NUM_TEST]), axis=1)
    accuracy = np.mean(guesses == labels[:NUM_TEST])
    found = autotune.round_measurements(output.metrics)
    text = 'bin size {bin_size:.2g}, predicted error {predicted_nmse:.2g}'
    text = 'looking for a bin size' if found['calibrating'] else text
    print(f'round {round_num}: accuracy {accuracy:.1%},', text.format(**found))


if __name__ == '__main__':
  main()

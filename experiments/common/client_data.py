# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The batches of a client in a round."""

import numpy as np
import tensorflow as tf

from experiments.common import datasets
from experiments.common import seeds


def _augment(images: np.ndarray, rng: np.random.Generator) -> np.ndarray:
  """Mirrors half of the images and shifts each by at most two pixels."""
  flip = rng.random(len(images)) < 0.5
  images = np.where(flip[:, None, None, None], images[:, :, ::-1], images)
  height, width = images.shape[1:3]
  padded = np.pad(images, ((0, 0), (2, 2), (2, 2), (0, 0)), mode='edge')
  offsets = rng.integers(0, 5, (len(images), 2))
  return np.stack(
    [p[y : y + height, x : x + width] for p, (y, x) in zip(padded, offsets)]
  )


def element_spec(data: datasets.ImageData):
  """The `tf.TensorSpec` pair of one batch of `client_dataset`."""
  return (
    tf.TensorSpec((None,) + tuple(data.image_shape), tf.uint8),
    tf.TensorSpec((None,), tf.int32),
  )


def client_dataset(
  data: datasets.ImageData,
  indices: np.ndarray,
  *,
  batch_size: int,
  num_epochs: int,
  seed: int,
  round_num: int,
  client: int,
  augment: bool = False,
) -> tf.data.Dataset:
  """Batches of one client in one round, the same whenever asked for.

  Args:
    data: The data set.
    indices: int array, the client's training examples.
    batch_size: Examples per batch; the last batch of an epoch may be smaller.
    num_epochs: Passes over the examples, each in a fresh order.
    seed: Seed of the run.
    round_num: The round.
    client: The client.
    augment: Whether to mirror and shift the images at random.

  Returns:
    A `tf.data.Dataset` with elements of `element_spec(data)`.
  """
  rng = seeds.generator(seed, seeds.Stream.BATCHES, round_num, client)
  dataset = None
  for _ in range(num_epochs):
    # Shuffled here and not by tf.data, whose order depends on more than a
    # seed. Nor is there a `map`: tracing one takes longer than to train.
    order = rng.permutation(indices)
    images = data.train_images[order]
    if augment:
      images = _augment(images, rng)
    epoch = tf.data.Dataset.from_tensor_slices(
      (images, data.train_labels[order])
    ).batch(batch_size)
    dataset = epoch if dataset is None else dataset.concatenate(epoch)
  return dataset

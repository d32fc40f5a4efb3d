# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keras models for the data sets, with explicit seeds and He initialization."""

from typing import Callable, Dict, Sequence

import numpy as np


class _Builder:
  """Makes layers with He initialization, each from its own seed.

  Attributes:
    layers: Keras's own, for those without weights.
  """

  def __init__(self, keras, seed: int):
    self.layers = keras.layers
    self._initializers = keras.initializers
    self._seed = seed

  def _initializer(self):
    self._seed += 1  # One seed for all layers would correlate their weights.
    return self._initializers.HeNormal(seed=self._seed)

  def conv(
    self, filters, size, *, strides=1, padding='same', activation='relu'
  ):
    return self.layers.Conv2D(
      filters,
      size,
      strides=strides,
      padding=padding,
      activation=activation,
      kernel_initializer=self._initializer(),
    )

  def dense(self, units, activation=None):
    return self.layers.Dense(
      units, activation=activation, kernel_initializer=self._initializer()
    )


def _filters(count: int, width: float) -> int:
  return max(1, int(round(count * width)))


def _logistic(build, num_classes, width):
  del width  # Unused.
  return [build.layers.Flatten(), build.dense(num_classes)]


def _small_cnn(build, num_classes, width):
  """Two strided convolutions and a linear layer."""
  return [
    build.conv(_filters(16, width), 3, strides=2),
    build.conv(_filters(32, width), 3, strides=2),
    build.layers.Flatten(),
    build.dense(num_classes),
  ]


def _digits_cnn(build, num_classes, width):
  """As `_small_cnn`, for images too small to be halved twice."""
  return [
    build.conv(_filters(16, width), 3),
    build.conv(_filters(32, width), 3, strides=2),
    build.layers.Flatten(),
    build.dense(num_classes),
  ]


def _deep_cnn(build, num_classes, width):
  """Seven convolutions and a linear layer, and nothing that normalizes.

  Errors of a layer's weights are passed on through all that follow.
  """
  filters = _filters(32, width)
  return [
    *(build.conv(filters, 3) for _ in range(4)),
    build.conv(filters, 3, strides=2),
    *(build.conv(filters, 3) for _ in range(2)),
    build.layers.Flatten(),
    build.dense(num_classes),
  ]


def _all_cnn_c(build, num_classes, width):
  """All-CNN-C of Springenberg et al. (2015), arXiv:1412.6806, table 1.

  1,369,738 parameters for 32x32x3 images, 10 classes and width 1. Without the
  dropout of the original, and with no ReLU between the last convolution and
  the averaging, so that logits of both signs are possible.
  """
  narrow, wide = _filters(96, width), _filters(192, width)
  return [
    build.conv(narrow, 3),
    build.conv(narrow, 3),
    build.conv(narrow, 3, strides=2),
    build.conv(wide, 3),
    build.conv(wide, 3),
    build.conv(wide, 3, strides=2),
    build.conv(wide, 3, padding='valid'),
    build.conv(wide, 1),
    build.conv(num_classes, 1, activation=None),
    build.layers.GlobalAveragePooling2D(),
  ]


_MODELS: Dict[str, Callable] = {
  'logistic': _logistic,
  'digits_cnn': _digits_cnn,
  'small_cnn': _small_cnn,
  'deep_cnn': _deep_cnn,
  'all_cnn_c': _all_cnn_c,
}
NAMES = tuple(_MODELS)


def build(
  name: str,
  *,
  image_shape: Sequence[int],
  num_classes: int,
  channel_statistics=None,
  width: float = 1.0,
  seed: int = 0,
):
  """Builds an uncompiled Keras model that maps uint8 images to logits.

  Args:
    name: One of `NAMES`.
    image_shape: Height, width and channels.
    num_classes: Number of logits.
    channel_statistics: Mean and standard deviation of the pixels per channel,
      by which images are standardized; None to leave them as they are.
    width: Positive factor on the number of filters of each convolution.
    seed: Seed of the initial weights: same seed, same weights.

  Returns:
    The `tf.keras.Model`, built, with float32 weights.

  Raises:
    ValueError: If there is no such model or `width` is not positive.
  """
  if name not in _MODELS:
    raise ValueError(
      f'`model` must be one of {", ".join(NAMES)}, found {name!r}.'
    )
  if not width > 0:
    raise ValueError(f'`width` must be a positive float, found {width!r}.')
  # Not above: the names of the models must not need TensorFlow.
  from tensorflow import keras

  layers = [keras.Input(tuple(image_shape), dtype='uint8')]
  mean, stddev = channel_statistics or (np.zeros(1), np.ones(1))
  layers.append(
    keras.layers.Rescaling(
      scale=(1 / stddev).tolist(), offset=(-mean / stddev).tolist()
    )
  )
  layers += _MODELS[name](_Builder(keras, seed), num_classes, width)
  return keras.Sequential(layers)

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""A strongly convex problem whose examples lie with uneven clients.

Softmax regression: the mean over all examples of the cross-entropy, plus half
of `l2` times the squared norm of the weights. The last class has no weights, as
one is enough to set the others off against: with weights for all of them some
directions would have no gradient but that of `l2`, and tell of nothing else.

All is float64, so that the excess of the loss over its least value can be told
down to `FLOOR`.
"""

from typing import NamedTuple, Tuple

import numpy as np
import scipy.optimize

from experiments.common import datasets
from experiments.common import partitions

# Smaller excesses are rounding of the loss, which is of the order of 1.
FLOOR = 1e-15

# By what the least loss found may be above the true one.
_MAX_GAP = 1e-14


class Gradients(NamedTuple):
  """Loss and gradients at some weights.

  Attributes:
    loss: Of all examples.
    clients: float64 [num_clients, dim], the gradient of each client's own
      objective: the mean over its examples, plus the term in `l2`.
  """

  loss: float
  clients: np.ndarray


class Problem:
  """Features and labels, by client.

  Attributes:
    dim: Number of weights.
    sizes: float64 [num_clients], examples of each client: its weight in the
      mean.
    optimum: float64 [dim], the weights of least loss.
    least_loss: The loss there, at most 1e-14 above the least one.
    data: The `datasets.ImageData`.
  """

  def __init__(
    self,
    data: datasets.ImageData,
    *,
    num_examples: int,
    num_features: int,
    num_clients: int,
    dirichlet_concentration: float,
    l2: float,
    seed: int,
  ):
    """Initializes the problem; arguments as of `settings.Config`.

    Raises:
      ValueError: There are too few images or components for the settings.
    """
    self.data = data
    if num_examples > len(data.train_labels):
      raise ValueError(
        f'`num_examples` must be at most the {len(data.train_labels)} training '
        f'images, found {num_examples}.'
      )
    labels = data.train_labels[:num_examples]
    features = _whitened(data.train_images[:num_examples], num_features)
    parts = partitions.partition_dirichlet(
      labels, num_clients, seed, dirichlet_concentration
    )
    order = np.concatenate(parts)
    self._features = features[order]
    self._targets = np.eye(data.num_classes)[labels[order]]
    self._l2 = l2
    self.sizes = np.array([len(part) for part in parts], float)
    ends = np.cumsum(self.sizes).astype(int)
    self._slices = [slice(a, b) for a, b in zip([0, *ends[:-1]], ends)]
    self._shape = features.shape[1], data.num_classes - 1
    self.dim = features.shape[1] * (data.num_classes - 1)
    self.optimum, self.least_loss = self._minimize()

  def gradients(self, weights: np.ndarray) -> Gradients:
    """The `Gradients` at float64 [dim] `weights`."""
    loss, residuals = self._loss_and_residuals(weights)
    sums = [
      (self._features[own].T @ residuals[own]).ravel() for own in self._slices
    ]
    clients = np.array(sums) / self.sizes[:, np.newaxis]
    return Gradients(loss, clients + self._l2 * weights)

  def loss(self, weights: np.ndarray) -> float:
    """The loss of all examples at float64 [dim] `weights`."""
    return self._loss_and_residuals(weights)[0]

  def mean(self, clients: np.ndarray) -> np.ndarray:
    """The exact mean of [num_clients, dim], weighted by examples."""
    return self.sizes @ clients / self.sizes.sum()

  def _loss_and_residuals(self, weights) -> Tuple[float, np.ndarray]:
    """The loss, and predicted probabilities minus targets, but of the last."""
    logits = self._features @ weights.reshape(self._shape)
    logits = np.pad(logits, [(0, 0), (0, 1)])  # 0 of the last class.
    logits -= logits.max(axis=1, keepdims=True)
    exponentials = np.exp(logits)
    totals = exponentials.sum(axis=1, keepdims=True)
    losses = np.log(totals[:, 0]) - np.sum(self._targets * logits, axis=1)
    penalty = self._l2 / 2 * np.sum(np.square(weights))
    residuals = exponentials / totals - self._targets
    return losses.mean() + penalty, residuals[:, :-1]

  def _loss_and_gradient(self, weights):
    loss, residuals = self._loss_and_residuals(weights)
    gradient = (self._features.T @ residuals).ravel() / len(residuals)
    return loss, gradient + self._l2 * weights

  def _minimize(self) -> Tuple[np.ndarray, float]:
    found = scipy.optimize.minimize(
      self._loss_and_gradient,
      np.zeros(self.dim),
      jac=True,
      method='L-BFGS-B',
      options=dict(maxiter=5000, maxfun=5000, maxcor=30, ftol=0.0, gtol=1e-12),
    ).x
    loss, gradient = self._loss_and_gradient(found)
    # The objective is convex beyond half of l2 times a square.
    gap = np.sum(np.square(gradient)) / (2 * self._l2)
    if gap > _MAX_GAP:
      raise ValueError(
        f'The least loss must be found to {_MAX_GAP:g}, found a bound of '
        f'{gap:.2g}: raise `l2` or lower `num_features`.'
      )
    return found, loss


def _whitened(images: np.ndarray, num_features: int) -> np.ndarray:
  """Principal components of variance 1, and a constant 1 at the end.

  Args:
    images: [examples, ...].
    num_features: How many components, those of the largest variance.

  Returns:
    float64 [examples, num_features + 1].
  """
  pixels = images.reshape(len(images), -1).astype(float)
  pixels -= pixels.mean(axis=0)
  left, scales, _ = np.linalg.svd(pixels, full_matrices=False)
  rank = int(np.sum(scales > 1e-9 * scales[0]))
  if num_features > rank:
    raise ValueError(
      f'`num_features` must be at most {rank}, the components that the pixels '
      f'of {len(images)} images have, found {num_features}.'
    )
  components = left[:, :num_features] * np.sqrt(len(images))
  return np.column_stack([components, np.ones(len(images))])

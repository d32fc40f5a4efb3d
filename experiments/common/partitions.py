# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Splits of the examples of a data set among clients."""

from typing import List

import numpy as np

from experiments.common import seeds


def partition_iid(
  labels: np.ndarray, num_clients: int, seed: int
) -> List[np.ndarray]:
  """Deals examples to clients at random, in sizes that differ by at most one.

  Args:
    labels: int array of shape [examples].
    num_clients: Number of clients, at most the number of examples.
    seed: Seed of the partition.

  Returns:
    One sorted int array of example indices for each client.
  """
  _check_num_clients(labels, num_clients)
  order = seeds.generator(seed, seeds.Stream.PARTITION).permutation(len(labels))
  return [np.sort(part) for part in np.array_split(order, num_clients)]


def partition_dirichlet(
  labels: np.ndarray, num_clients: int, seed: int, concentration: float
) -> List[np.ndarray]:
  """Splits each class among the clients by proportions from a Dirichlet.

  Both the classes that a client sees and the number of its examples differ
  between clients, the more the smaller `concentration` is. A client that would
  get nothing receives one example of the client that has most.

  Args:
    labels: int array of shape [examples].
    num_clients: Number of clients, at most the number of examples.
    seed: Seed of the partition.
    concentration: Positive parameter of the symmetric Dirichlet distribution.

  Returns:
    One sorted int array of example indices for each client.

  Reference: Yurochkin et al. (2019), arXiv:1905.12022.
  """
  _check_num_clients(labels, num_clients)
  if not concentration > 0:
    raise ValueError(
      f'`concentration` must be a positive float, found {concentration!r}.'
    )
  rng = seeds.generator(seed, seeds.Stream.PARTITION)
  parts: List[List[int]] = [[] for _ in range(num_clients)]
  for label in np.unique(labels):
    members = rng.permutation(np.flatnonzero(labels == label))
    shares = rng.dirichlet(np.full(num_clients, concentration))
    cuts = np.round(np.cumsum(shares)[:-1] * len(members)).astype(int)
    for part, piece in zip(parts, np.split(members, cuts)):
      part.extend(piece.tolist())
  for part in parts:
    if not part:
      part.append(max(parts, key=len).pop())
  return [np.sort(np.array(part, dtype=np.int64)) for part in parts]


def _check_num_clients(labels, num_clients):
  if not 1 <= num_clients <= len(labels):
    raise ValueError(
      f'`num_clients` must be from 1 to the {len(labels)} training examples, '
      f'found {num_clients}.'
    )

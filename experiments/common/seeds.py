# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Named random streams, so that no two parts of a run share randomness.

Every draw of an experiment comes from `generator(seed, STREAM, ...)`: the run's
integer seed, the stream of the part that draws, and the position in the run
(round, client). A round can therefore be replayed without the rounds before it,
which is what makes an interrupted run continue as if never stopped.
"""

import enum

import numpy as np


class Stream(enum.IntEnum):
  """The parts of a run that draw random numbers."""

  PARTITION = 0
  SAMPLING = 1
  BATCHES = 2
  MODEL = 3
  AGGREGATION = 4
  VECTORS = 5
  DOWNLOAD = 6
  DROPOUT = 7


def generator(seed: int, stream: Stream, *position: int) -> np.random.Generator:
  """Returns the generator of one stream at one position of a run.

  Args:
    seed: Nonnegative int, the seed of the run.
    stream: Which part of the run draws.
    *position: Nonnegative ints, for instance the round and the client.
  """
  # The length is part of the entropy: SeedSequence ignores trailing zeros.
  entropy = [seed, int(stream), len(position), *position]
  return np.random.default_rng(np.random.SeedSequence(entropy))


def integer(seed: int, stream: Stream, *position: int) -> int:
  """Returns an int in [0, 2**31) for interfaces that take a single seed."""
  return int(generator(seed, stream, *position).integers(2**31))

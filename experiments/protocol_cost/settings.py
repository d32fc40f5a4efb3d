# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The settings of the count."""

import dataclasses
from typing import Tuple


@dataclasses.dataclass(frozen=True)
class Config:
  """What is measured.

  Attributes:
    num_clients: Cohorts, each run through the protocol.
    dim: Entries of the vectors that are masked in those runs.
    bits: Bits of a value in the clear.
    dims: Entries that the table is for; keys and shares do not depend on them.
    threshold_share: Survivors needed, as a share of the clients.
    seed: Of the vectors and keys.
  """

  num_clients: Tuple[int, ...] = (10, 30, 100)
  dim: int = 1024
  bits: Tuple[int, ...] = (4, 8, 16)
  dims: Tuple[int, ...] = (2**16, 2**20)
  threshold_share: float = 2 / 3
  seed: int = 1


# What a smoke run shrinks.
SMOKE = dict(num_clients=(3,), bits=(8,), dims=(64,))

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The room that a sum needs if no sum may wrap."""


def sum_modulus(num_levels: int, num_clients: int) -> int:
  """Returns the smallest modulus that tells all sums apart.

  A client sends 0 .. num_levels - 1.
  """
  return num_clients * (num_levels - 1) + 1


def most_levels(bits: int, num_clients: int) -> int:
  """Returns the most levels of a client whose sums fit into `bits`."""
  return (2**bits - 1) // num_clients + 1

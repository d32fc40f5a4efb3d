# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the masks of a secure sum cost beside the vector that they hide.

No TFF here, and no TensorFlow.
"""

import math


def num_bytes(num_clients: int) -> int:
  """Bytes of keys and shares of a client, in both directions.

  In the masking protocol of Bonawitz et al. (2017, CCS). Of and for each
  client: 64 of public keys, of which a client sends its own; two encrypted
  shares of 33 bytes and a tag of 16, sent and received; one share of 33 to
  unmask. And one bit to say who survived.

  Args:
    num_clients: Python int, clients that share out keys with each other.

  Returns:
    int: 26 kB for 100 clients, 267 kB for 1,024.
  """
  sent = 64 + num_clients * (2 * 33 + 16) + num_clients * 33
  received = num_clients * (64 + 2 * 33 + 16) + math.ceil(num_clients / 8)
  return sent + received

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What secure aggregation costs on the wire, by bits and clients.

Runs the masking protocol of Bonawitz et al. (2017) and counts the bytes of its
messages. The expansion is a client's traffic over that of sending
its vector in the clear at the same bits per value, as that paper defines it.
Sums with headroom, as deployed there, need log2(n) bits more on every value;
autotuned modular sums do not, and pay for keys and shares alone. How many bits
an error needs is another question, which `tff_autotune_secagg.planner` answers.
"""

import math
from typing import Any, Dict, Iterator, List

import numpy as np

from experiments.common import masking_protocol
from experiments.common import seeds
from experiments.common import tables
from experiments.common import traffic
from experiments.protocol_cost import settings
from tff_autotune_secagg.numerics.rounding import quantization

# Abstract of Bonawitz et al. (2017): 16-bit values, n clients, d entries.
QUOTED_EXPANSION = {(2**10, 2**20): 1.73, (2**14, 2**24): 1.98}


def check(config: settings.Config) -> None:
  """Raises ValueError if a sum needs more than the words that masks are of."""
  largest = quantization.sum_modulus(
    2 ** max(config.bits), max(config.num_clients)
  )
  if largest > masking_protocol.MAX_MODULUS:
    raise ValueError(
      f'`bits` must leave room for the sum of {max(config.num_clients)} clients'
      f' in 32 bits, found {max(config.bits)}.'
    )


def measure(
  num_clients: int, modulus: int, config: settings.Config
) -> Dict[str, int]:
  """Runs the protocol once; bytes of the first client, both directions."""
  rng = seeds.generator(config.seed, seeds.Stream.VECTORS, num_clients)
  vectors = rng.integers(0, modulus, size=(num_clients, config.dim))
  outcome = masking_protocol.run(
    vectors,
    modulus,
    math.ceil(config.threshold_share * num_clients),
    random_bytes=rng.bytes,
  )
  if not np.array_equal(outcome.total, np.sum(vectors, axis=0) % modulus):
    raise RuntimeError('The protocol must give the sum, found another vector.')
  sent, received = outcome.sent[1], outcome.received[1]
  return dict(
    vector=sent['mask'],
    other=sum(sent.values()) + sum(received.values()) - sent['mask'],
  )


def _row(scheme, num_clients, dim, bits, vector, other, source, quoted=None):
  plain = quantization.payload_bytes(dim, bits)
  return dict(
    scheme=scheme,
    num_clients=num_clients,
    dim=dim,
    bits=bits,
    bits_on_wire=8 * vector / dim,
    plain_bytes=plain,
    float32_bytes=4 * dim,
    vector_bytes=vector,
    other_bytes=other,
    expansion=(vector + other) / plain,
    share_of_float32=(vector + other) / (4 * dim),
    source=source,
    quoted_expansion=quoted,
  )


def run(config: settings.Config) -> Iterator[Dict[str, Any]]:
  """Yields a row for each cohort, dimension, number of bits and scheme.

  `source` is 'measured' where the protocol ran with so many clients: its vector
  message is measured at `config.dim` and scaled to the row's dimension, the
  other messages are counted as they were. It is 'computed' for the sizes of the
  paper, from `traffic.key_bytes`, which is equal to every measurement.
  """
  for num_clients in config.num_clients:
    for bits in config.bits:
      moduli = {
        'headroom': quantization.sum_modulus(2**bits, num_clients),
        'autotuned': 2**bits,
      }
      for scheme, modulus in moduli.items():
        found = measure(num_clients, modulus, config)
        if found['other'] != traffic.key_bytes(num_clients):
          raise RuntimeError(
            f'`traffic.key_bytes` must equal what was measured, found'
            f' {traffic.key_bytes(num_clients)} and {found["other"]}.'
          )
        for dim in config.dims:
          vector = math.ceil(found['vector'] * dim / config.dim)
          yield _row(
            scheme, num_clients, dim, bits, vector, found['other'], 'measured'
          )
  for (num_clients, dim), quoted in QUOTED_EXPANSION.items():
    other = traffic.key_bytes(num_clients)
    for bits in config.bits:
      moduli = {
        'headroom': quantization.sum_modulus(2**bits, num_clients),
        'autotuned': 2**bits,
      }
      for scheme, modulus in moduli.items():
        vector = quantization.payload_bytes(dim, quantization.num_bits(modulus))
        is_quoted = scheme == 'headroom' and bits == 16
        yield _row(
          scheme,
          num_clients,
          dim,
          bits,
          vector,
          other,
          'computed',
          quoted if is_quoted else None,
        )


def format_table(rows: List[Dict[str, Any]]) -> str:
  """The rows as a Markdown table, the two schemes side by side."""
  heads = (
    'clients',
    'entries',
    'bits',
    'headroom: bits on wire',
    'expansion',
    'quoted',
    'autotuned: expansion',
    'of float32',
    '',
  )
  pairs: Dict[Any, Dict[str, Any]] = {}
  for row in rows:
    key = (row['num_clients'], row['dim'], row['bits'])
    pairs.setdefault(key, {})[row['scheme']] = row
  lines = []
  for key, pair in pairs.items():
    wide, tuned = pair['headroom'], pair['autotuned']
    lines.append(
      (
        *key,
        f'{wide["bits_on_wire"]:.0f}',
        f'{wide["expansion"]:.2f}',
        wide['quoted_expansion'] or '',
        f'{tuned["expansion"]:.2f}',
        f'{tuned["share_of_float32"]:.3f}',
        wide['source'],
      )
    )
  return tables.markdown(heads, lines)

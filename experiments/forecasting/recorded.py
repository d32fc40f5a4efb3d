# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The sizes of sums in the rows of trainings."""

from typing import Any, Dict, List, Mapping, Optional, Sequence

from experiments.common import aggregators
from experiments.forecasting import replay

Row = Mapping[str, Any]

# Runs at this modulus lost no round and know their sizes best.
_MODULUS = 256


def sizes(
  rows: Sequence[Row], modulus: int = _MODULUS
) -> Dict[int, List[float]]:
  """The sizes of the sums of the runs with default arguments, by seed.

  A blind round has no size. It gets that of the run at modulus 256 with the
  same seed, which had the same clients.

  Args:
    rows: joined round rows of one experiment, see `result_rows.read`.
    modulus: of the runs.
  """
  found, fallback = _sizes(rows, modulus), _sizes(rows, _MODULUS)
  return {
    seed: [x or fallback[seed][i] for i, x in enumerate(run)]
    for seed, run in found.items()
  }


def num_blind_rounds(rows: Sequence[Row], modulus: int) -> int:
  """How many rounds of the runs with default arguments were blind."""
  return sum(bool(_measurement(r, 'blind')) for r in _default(rows, modulus))


def setting(rows: Sequence[Row], modulus: int) -> replay.Setting:
  """The clients and coordinates of the runs, with a modulus of one's choice."""
  row = next(iter(_default(rows, _MODULUS)), None)
  if row is None:
    raise ValueError(
      f'The rows must have runs of {_text(_MODULUS)!r}, whose sizes are '
      'replayed, found none.'
    )
  bits = _measurement(row, 'bits_per_coordinate')
  return replay.Setting(
    modulus=modulus,
    num_clients=row['config']['clients_per_round'],
    num_coordinates=int(_measurement(row, 'bytes_per_client') * 8 // bits),
  )


def _default(rows, modulus):
  """Rows of runs at the modulus, whatever was decoded or clipped.

  Neither matters here; sizes are those of sums before the decoding.
  """
  texts = {_text(modulus), f'{_text(modulus)},{aggregators.FORMER_DEFAULTS}'}
  return [row for row in rows if row['config']['aggregator'] in texts]


def _text(modulus):
  return f'autotuned:modulus={modulus}'


def _sizes(rows, modulus):
  found = {}
  for row in _default(rows, modulus):
    run = found.setdefault(row['config']['seed'], [])
    run.append(_measurement(row, 'sum_stddev'))
  return found


def _measurement(row: Row, name: str) -> Optional[float]:
  return next(
    (v for k, v in row['aggregator'].items() if k.split('/')[-1] == name), None
  )

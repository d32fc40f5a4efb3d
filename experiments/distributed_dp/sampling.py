# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Error of private means of which a sample of the coordinates is sent.

Each cell is one mean of clients that are all clipped, through TFF's runtime, at
the modulus that is planned for it. Its squared error is given as a multiple of
that of a central Gaussian mechanism with the same noise, beside the prediction
1 + (D / m - 1) |X|^2 / (D z^2 c^2).
"""

import collections
import dataclasses
import functools
import itertools
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Sequence

import numpy as np
import tensorflow_federated as tff

from experiments.common import seeds
from experiments.common import t_interval
from experiments.common import tables
from experiments.common import traffic
import tff_autotune_secagg as autotune
from tff_autotune_secagg.numerics.rotation import block_sample

_CLIP_NORM = 0.1


@dataclasses.dataclass(frozen=True)
class Cell:
  """One setting.

  Attributes:
    num_clients: n, all of whose noise is counted on.
    common: norm of what all updates have in common over their own norm. The
      rest of an update points anywhere.
    noise_multiplier: z.
    sampled_fraction: m / D.
    dim: entries of a vector; a power of two, which is not padded.
    seed: of the vectors, the rotation and the sample.
  """

  num_clients: int
  common: float
  noise_multiplier: float
  sampled_fraction: float
  dim: int = 2**15
  seed: int = 0


def cells(
  cohorts: Sequence[int],
  common: Sequence[float],
  noise_multipliers: Sequence[float],
  sampled_fractions: Sequence[float],
  cell_seeds: Sequence[int],
  **options: Any,
) -> Iterator[Cell]:
  """Yields the cells of all cohorts, each with its own `common`.

  Raises:
    ValueError: there are not as many of the one as of the other, or a number is
      out of range.
  """
  if len(cohorts) != len(common):
    raise ValueError(
      f'`common` must be a number for each of {len(cohorts)} cohorts, found'
      f' {len(common)}.'
    )
  if not all(0 <= share <= 1 for share in common):
    raise ValueError(f'`common` must be from 0 to 1, found {list(common)}.')
  # Vectors are the same for all cells of a cohort and a seed.
  for (num_clients, share), seed in itertools.product(
    zip(cohorts, common), cell_seeds
  ):
    for multiplier, fraction in itertools.product(
      noise_multipliers, sampled_fractions
    ):
      yield Cell(num_clients, share, multiplier, fraction, seed=seed, **options)


def check(wanted: Iterable[Cell]) -> None:
  """Raises ValueError if one of the cells cannot be measured."""
  for cell in wanted:
    _plan(cell, alignment=1.0)


def run(cell: Cell) -> Dict[str, Any]:
  """Measures one cell.

  Returns:
    The cell's fields with `alignment` (that of the clipped updates), `bits` (by
    `plan_distributed_dp_modulus` for it), `bits_per_value`, `bytes_per_client`,
    `bytes_with_keys` (of the masks), `wrap_probability` (measured),
    `error_ratio` and `predicted_ratio`.
  """
  values = _values(cell.num_clients, cell.common, cell.dim, cell.seed)
  wanted = values.sum(axis=0, dtype=np.float64)
  squared_norm = float(np.sum(wanted**2)) / _CLIP_NORM**2
  alignment = squared_norm**0.5 / cell.num_clients
  # Rounding may make parallel updates longer than they are.
  options = _plan(cell, alignment=min(1.0, alignment))
  process = autotune.distributed_dp_aggregator(
    l2_norm_clip=_CLIP_NORM, seed=cell.seed, **options
  ).create(tff.TensorType(np.float32, [cell.dim]))
  output = process.next(process.initialize(), list(values))
  error = output.result.astype(np.float64) * cell.num_clients - wanted
  noise = cell.dim * cell.noise_multiplier**2  # In squared clip norms.
  num_sent = block_sample.size(cell.sampled_fraction, cell.dim)
  unsent = block_sample.error_to_signal(num_sent, cell.dim) * squared_norm
  measured = output.measurements
  num_bytes = int(measured['bytes_per_client'])
  return dict(
    dataclasses.asdict(cell),
    alignment=alignment,
    bits=int(measured['bits_per_coordinate']),
    bits_per_value=8 * num_bytes / cell.dim,
    bytes_per_client=num_bytes,
    bytes_with_keys=num_bytes + traffic.key_bytes(cell.num_clients),
    wrap_probability=float(measured['wrap_probability']),
    error_ratio=float(np.sum(error**2)) / _CLIP_NORM**2 / noise,
    predicted_ratio=1.0 + unsent / noise,
  )


def _plan(cell, alignment):
  """Returns arguments of the aggregator, its modulus among them."""
  options = dict(
    noise_multiplier=cell.noise_multiplier,
    min_clients=cell.num_clients,
    sampled_fraction=cell.sampled_fraction,
  )
  modulus = autotune.plan_distributed_dp_modulus(
    num_clients=cell.num_clients, dim=cell.dim, alignment=alignment, **options
  )
  return dict(options, modulus=modulus)


@functools.lru_cache(maxsize=1)
def _values(num_clients, common, dim, seed):
  """Updates as long as the clip norm, float32 [num_clients, dim]."""
  rng = seeds.generator(seed, seeds.Stream.VECTORS, num_clients)
  shared = rng.standard_normal(dim, np.float32)
  shared *= common / np.linalg.norm(shared)
  values = rng.standard_normal([num_clients, dim], np.float32)
  values *= np.sqrt(1.0 - common**2) / np.linalg.norm(
    values, axis=1, keepdims=True
  )
  values += shared
  values *= _CLIP_NORM / np.linalg.norm(values, axis=1, keepdims=True)
  return values.astype(np.float32)


def format_row(row: Mapping[str, Any]) -> str:
  """Returns a row as a line, to be shown while others are measured."""
  return (
    f'{row["num_clients"]} clients, z {row["noise_multiplier"]:g},'
    f' {row["sampled_fraction"]:g} sent, seed {row["seed"]}:'
    f' {row["error_ratio"]:.3f} ({row["predicted_ratio"]:.3f} predicted)'
  )


def summary(rows: Sequence[Mapping[str, Any]]) -> List[Dict[str, Any]]:
  """Returns rows of the means over the seeds of each setting.

  Returns:
    Dicts of the setting, `bits`, `bits_per_value`, `bytes_with_keys`,
    `num_seeds`, the mean `error_ratio` with `half_width`, of its 95 %
    t-interval over the seeds, and the mean `predicted_ratio`.
  """
  names = [f.name for f in dataclasses.fields(Cell) if f.name != 'seed']
  groups = collections.defaultdict(list)
  for row in rows:
    groups[tuple(row[name] for name in names)].append(row)
  found = []
  for setting, group in groups.items():
    ratios = [row['error_ratio'] for row in group]
    found.append(
      dict(
        zip(names, setting),
        bits=max(row['bits'] for row in group),
        bits_per_value=max(row['bits_per_value'] for row in group),
        bytes_with_keys=max(row['bytes_with_keys'] for row in group),
        num_seeds=len(group),
        error_ratio=float(np.mean(ratios)),
        half_width=t_interval.half_width(ratios),
        predicted_ratio=float(np.mean([r['predicted_ratio'] for r in group])),
      )
    )
  return found


def format_table(rows: Sequence[Mapping[str, Any]]) -> str:
  """The summary as a Markdown table."""
  heads = (
    'clients',
    'common',
    'z',
    'sampled',
    'bits',
    'bits/value',
    'bytes with keys',
    'error over the central Gaussian',
    'predicted',
  )
  lines = [
    (
      row['num_clients'],
      f'{row["common"]:g}',
      f'{row["noise_multiplier"]:g}',
      f'{row["sampled_fraction"]:g}',
      row['bits'],
      f'{row["bits_per_value"]:.2g}',
      f'{row["bytes_with_keys"]:,d}',
      f'{row["error_ratio"]:.3f} ± {row["half_width"]:.3f}',
      f'{row["predicted_ratio"]:.3f}',
    )
    for row in summary(rows)
  ]
  return tables.markdown(heads, lines)

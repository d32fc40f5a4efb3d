# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Error of private means at equal privacy and equal bits.

Each cell is one mean of clients that are all clipped. Its error is given as a
multiple of what the central Gaussian mechanism of the same privacy has. Noise
is larger than the sum here, and a sum that wraps around is not so much blurred
as lost: 0 in its place would have the least squared error of all. So the error
is that of the result divided by its gain, the factor by which the sum is found
in it.
"""

import dataclasses
import math
from typing import Any, Dict, Iterator, Mapping, Optional, Sequence

import numpy as np
from scipy import special
import tensorflow_federated as tff

from experiments.common import seeds
from tff_autotune_secagg import distributed_dp
from tff_autotune_secagg.numerics.privacy import distributed_noise

THIS = 'distributed_dp'
TFF = 'ddp_secure_aggregator'
CENTRAL = 'central Gaussian'

# The first clip norm of `tff.learning.ddp_secure_aggregator`.
_CLIP_NORM = 0.1
_LENGTH = 2.0 * _CLIP_NORM
# Norm of the sum in clip norms, for which part of each update is the same: the
# gain is then known to 1 % at z = 1.
_SUM_NORM = 100.0

# What TFF's aggregator computes with: its wrap probability in standard
# deviations, its share of the budget for the clip norm, its largest scale.
_TFF_MARGIN = math.sqrt(2.0) * special.erfcinv(1e-4)
_TFF_COUNT_STDDEV_SHARE = 0.05
_TFF_MAX_SCALE = 1e6
_MAX_TFF_MULTIPLIER = 1e4


@dataclasses.dataclass(frozen=True)
class Cell:
  """One setting.

  Attributes:
    scheme: `THIS`, `TFF` or `CENTRAL`.
    bits: per coordinate, of the sum; 32 for `CENTRAL`.
    num_clients: n, all of whose noise is counted on.
    noise_multiplier: z of `THIS`. All are compared at the multiplier that it is
      accounted for with, z sqrt(1 - 1 / n).
    dim: entries of a vector; powers of two, so that no scheme pads.
    seed: of the vectors and the rotation.
  """

  scheme: str
  bits: int
  num_clients: int
  noise_multiplier: float = 1.0
  dim: int = 2**16
  seed: int = 0

  @property
  def real_multiplier(self) -> float:
    """Noise multiplier that the accountant gets."""
    return distributed_noise.effective_noise_multiplier(
      self.noise_multiplier, self.num_clients
    )


def cells(
  num_clients: int,
  this_bits: Sequence[int],
  tff_bits: Sequence[int],
  **options: Any,
) -> Iterator[Cell]:
  """Yields one cohort's cells."""
  yield Cell(CENTRAL, 32, num_clients, **options)
  for bits in this_bits:
    yield Cell(THIS, bits, num_clients, **options)
  for bits in tff_bits:
    yield Cell(TFF, bits, num_clients, **options)


def tff_real_multiplier(
  multiplier: float, bits: int, num_clients: int, dim: int, beta: float = 0.0
) -> float:
  """Returns noise over sensitivity of TFF's aggregator, from its formulas.

  Its Skellam noise costs more than a Gaussian of that ratio: a term in the L1
  norm, which is left out here, in its favour.

  Args:
    multiplier: of the noise of the update, over the clip norm.
    bits: of the sum.
    num_clients: expected.
    dim: a power of two.
    beta: of its conditional rounding; 0 in `tff.learning`.
  """
  room = 4.0**bits - num_clients * _TFF_MARGIN**2
  if room <= 0.0:
    return 0.0
  spread = math.sqrt(num_clients**2 / dim + multiplier**2)
  scale = math.sqrt(room) / (2.0 * _TFF_MARGIN * spread)  # Per clip norm.
  scale = min(scale, _TFF_MAX_SCALE * _CLIP_NORM)
  rounding = math.sqrt(dim) / scale
  inflated = 1.0 + rounding
  if beta:
    term = math.sqrt(2.0 * math.log(1.0 / beta)) / scale
    square = 1.0 + rounding**2 / 4.0 + term * (1.0 + rounding / 2.0)
    inflated = min(inflated, math.sqrt(square))
  return multiplier / inflated


def tff_multiplier(
  real_multiplier: float, bits: int, num_clients: int, dim: int, beta=0.0
) -> Optional[float]:
  """Returns the noise that makes up for TFF's rounding; None if none does."""
  low, high = real_multiplier, _MAX_TFF_MULTIPLIER
  if tff_real_multiplier(high, bits, num_clients, dim, beta) < real_multiplier:
    return None
  for _ in range(60):
    middle = math.sqrt(low * high)
    found = tff_real_multiplier(middle, bits, num_clients, dim, beta)
    if found < real_multiplier:
      low = middle
    else:
      high = middle
  return high


def check(wanted: Sequence[Cell]) -> None:
  """Raises ValueError if one of the cells cannot be measured."""
  for cell in wanted:
    _factory(cell, cell.noise_multiplier)


def run(cell: Cell) -> Dict[str, Any]:
  """Measures one cell.

  Returns:
    The cell's fields with `set_multiplier` (the noise over the clip norm),
    `real_multiplier` (over the sensitivity; that of TFF as its measurements
    say), `gain`, and `error_ratio`: squared norm of the error of the sum, once
    divided by the gain, over that of the central Gaussian's noise. The latter
    four are None if no noise reaches the privacy at these bits.
  """
  row = dataclasses.asdict(cell)
  multiplier = cell.noise_multiplier
  if cell.scheme == CENTRAL:
    multiplier = cell.real_multiplier
  elif cell.scheme == TFF:
    multiplier = tff_multiplier(
      cell.real_multiplier, cell.bits, cell.num_clients, cell.dim
    )
  if multiplier is None:
    found = ('set_multiplier', 'real_multiplier', 'gain', 'error_ratio')
    return dict(row, **dict.fromkeys(found))
  values = _values(cell)
  process = _factory(cell, multiplier).create(
    tff.TensorType(np.float32, [cell.dim])
  )
  output = process.next(process.initialize(), list(values))
  wanted = values.sum(axis=0, dtype=np.float64) * (_CLIP_NORM / _LENGTH)
  result = output.result.astype(np.float64) * cell.num_clients
  gain = float(result @ wanted / (wanted @ wanted))
  error = result / gain - wanted
  noise = cell.dim * (cell.real_multiplier * _CLIP_NORM) ** 2
  real = cell.real_multiplier
  if cell.scheme == TFF:
    real = _measured_multiplier(output.measurements, cell.num_clients)
  return dict(
    row,
    set_multiplier=multiplier,
    real_multiplier=real,
    gain=gain,
    error_ratio=float(np.sum(error**2) / noise),
  )


def _values(cell):
  """Updates twice as long as the clip norm, float32 [num_clients, dim]."""
  rng = seeds.generator(cell.seed, seeds.Stream.VECTORS, cell.num_clients)
  values = rng.standard_normal([cell.num_clients, cell.dim], np.float32)
  common = rng.standard_normal(cell.dim, np.float32)
  share = min(1.0, _SUM_NORM / cell.num_clients)
  values = share * common + math.sqrt(1.0 - share**2) * values
  values *= _LENGTH / np.linalg.norm(values, axis=1, keepdims=True)
  return values.astype(np.float32)


def _factory(cell, multiplier):
  if cell.scheme == CENTRAL:
    return tff.aggregators.DifferentiallyPrivateFactory.gaussian_fixed(
      multiplier, cell.num_clients, _CLIP_NORM
    )
  if cell.scheme == TFF:
    # A part of the budget goes to the clip norm, which is fixed in round one.
    count_stddev = _TFF_COUNT_STDDEV_SHARE * cell.num_clients
    total = (multiplier**-2 + (2.0 * count_stddev) ** -2) ** -0.5
    return tff.learning.ddp_secure_aggregator(
      noise_multiplier=total,
      expected_clients_per_round=cell.num_clients,
      bits=cell.bits,
      zeroing=False,
    )
  # Below the public function, which refuses a modulus that is too small.
  return distributed_dp.DistributedDpFactory(
    noise_multiplier=multiplier,
    min_clients=cell.num_clients,
    l2_norm_clip=_CLIP_NORM,
    modulus=2**cell.bits,
    seed=cell.seed,
    client_seed_fn=None,
  )


def _measured_multiplier(measurements, num_clients):
  """Real multiplier from what TFF's aggregator reports of a round."""
  found = {}

  def visit(tree):
    for name, value in tree.items():
      if isinstance(value, Mapping):
        visit(value)
      else:
        found[name] = value

  visit(measurements)
  noise = math.sqrt(num_clients) * found['scaled_local_stddev']
  return float(noise / found['scaled_inflated_l2'])


HEAD = 'scheme                  bits  clients  noise     real     gain   error'


def format_row(row: Mapping[str, Any]) -> str:
  """Returns a row as a line below `HEAD`."""
  start = f'{row["scheme"]:22s} {row["bits"]:5d} {row["num_clients"]:8d}  '
  if row['error_ratio'] is None:
    return start + 'no noise reaches the privacy'
  return (
    start + f'{row["set_multiplier"]:<9.4g} {row["real_multiplier"]:<8.4g}'
    f' {row["gain"]:<6.3f} {row["error_ratio"]:.4g}'
  )

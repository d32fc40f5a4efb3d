# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measured against predicted error of a round, over moduli and cohorts.

Each cell is one tuner that starts with no knowledge, settles, and then sums
fresh normal vectors. The error is also given as bits above NMSE = n / k^2, the
bound for nested lattices.
"""

import dataclasses
import math
from typing import Any, Dict, Iterator, Mapping, Optional, Sequence

import numpy as np

from experiments.common import seeds
from experiments.common import sum_simulation
import tff_autotune_secagg as autotune

CLIENT_KINDS = {
  'orthogonal': sum_simulation.orthogonal_clients,
  'aligned': sum_simulation.aligned_clients,
  'cancelling': sum_simulation.cancelling_clients,
}


@dataclasses.dataclass(frozen=True)
class Cell:
  """One setting of the table.

  Attributes:
    modulus: k.
    num_clients: n.
    fewest_clients: n is drawn in each round, from this number to `num_clients`;
      None for the same n in all rounds.
    wrap_probability: None for the automatic one, or the paper's alpha.
    rounding: name of a `Rounding`.
    clients: key of `CLIENT_KINDS`.
    dim: entries of a vector.
    warm_up_rounds: rounds before the measurement, the calibration included.
    num_rounds: rounds measured.
    seed: of vectors and rounding.
  """

  modulus: int
  num_clients: int
  fewest_clients: Optional[int] = None
  wrap_probability: Optional[float] = None
  rounding: str = 'stochastic'
  clients: str = 'orthogonal'
  dim: int = 2**13
  warm_up_rounds: int = 4
  num_rounds: int = 8
  seed: int = 0


def cells(
  moduli: Sequence[int],
  cohorts: Sequence[int],
  wrap_probabilities: Sequence[float],
  num_rounds: int = 8,
  **options: int,
) -> Iterator[Cell]:
  """Yields the table: automatic, other clients, dither, the paper's alphas.

  Of cohorts that vary, from a tenth of the clients on, the tuner has seen
  sixteen before they are measured.

  Small cohorts are measured in up to sixteen times `num_rounds`, at about the
  cost of 300 clients: entries wrap rarely, and the error of one is large.
  """
  for modulus in moduli:
    for num_clients in cohorts:
      where = dict(
        modulus=modulus,
        num_clients=num_clients,
        num_rounds=num_rounds * min(16, max(1, 300 // num_clients)),
        **options,
      )
      yield Cell(**where)
      yield Cell(clients='aligned', **where)
      yield Cell(rounding='dither', **where)
      if num_clients > 1:
        yield Cell(clients='cancelling', **where)
        for clients in ('orthogonal', 'aligned'):
          yield Cell(
            fewest_clients=math.ceil(num_clients / 10),
            clients=clients,
            **{**where, 'warm_up_rounds': 16, 'num_rounds': 2 * num_rounds},
          )
      for wrap_probability in wrap_probabilities:
        yield Cell(wrap_probability=wrap_probability, **where)


def check(wanted: Sequence[Cell]) -> None:
  """Raises ValueError if one of the cells cannot be measured."""
  for cell in wanted:
    autotune.WrappedNormalTuner(
      modulus=cell.modulus,
      wrap_probability=cell.wrap_probability,
      rounding=autotune.Rounding(cell.rounding),
    )


def run(cell: Cell) -> Dict[str, Any]:
  """Measures one cell.

  Returns:
    The cell's fields with `nmse` (mean of the measured rounds, each relative to
    the energy of its own sum), `standard_error` of it, `predicted_nmse`,
    for `num_clients` and sizes that are uncertain by 0.1, `reported_nmse`, the
    mean of what the server says of the measured rounds, `bits_above_bound`, and
    `largest_nmse` of all rounds from the first on.
  """
  rounding = autotune.Rounding(cell.rounding)
  simulated = sum_simulation.SumSimulation(
    modulus=cell.modulus,
    dim=cell.dim,
    wrap_probability=cell.wrap_probability,
    rounding=rounding,
    seed=cell.seed,
  )
  draw = CLIENT_KINDS[cell.clients]
  errors, reported = [], []
  for index in range(cell.warm_up_rounds + cell.num_rounds):
    rng = seeds.generator(cell.seed, seeds.Stream.VECTORS, index)
    clients = draw(rng, cell.num_clients, cell.dim)
    if cell.fewest_clients is not None:
      # The first of them, so that sums grow with the cohort.
      clients = clients[
        : rng.integers(cell.fewest_clients, cell.num_clients, endpoint=True)
      ]
    done = simulated.run_round(clients)
    errors.append(done.nmse)
    reported.append(done.predicted_nmse)
  measured = np.array(errors[cell.warm_up_rounds :])
  nmse = float(measured.mean())
  spread = float(measured.std(ddof=1)) if len(measured) > 1 else math.nan
  return dict(
    dataclasses.asdict(cell),
    nmse=nmse,
    standard_error=spread / math.sqrt(len(measured)),
    predicted_nmse=autotune.predicted_nmse(
      num_clients=cell.num_clients,
      modulus=cell.modulus,
      wrap_probability=cell.wrap_probability,
      rounding=rounding,
    ),
    reported_nmse=float(np.mean(reported[cell.warm_up_rounds :])),
    bits_above_bound=bits_above_bound(nmse, cell.num_clients, cell.modulus),
    largest_nmse=max(errors),
  )


def bits_above_bound(nmse: float, num_clients: int, modulus: int) -> float:
  """Half log2 of the ratio of an error to n / k^2."""
  return 0.5 * math.log2(nmse * modulus**2 / num_clients)


HEAD = (
  'modulus  clients  kind       rounding   alpha   NMSE     +-      predicted'
  '  ratio  bits above bound'
)


def format_row(row: Mapping[str, Any]) -> str:
  """Returns a row as a line below `HEAD`."""
  alpha = row['wrap_probability']
  clients = str(row['num_clients'])
  if row['fewest_clients'] is not None:
    clients = f'{row["fewest_clients"]}-{clients}'
  return (
    f'{row["modulus"]:7d} {clients:>8s}  {row["clients"]:10s}'
    f' {row["rounding"]:10s} {"auto" if alpha is None else f"{alpha:g}":6s}'
    f' {row["nmse"]:.2e} {row["standard_error"]:.0e}'
    f' {row["predicted_nmse"]:.2e} {row["nmse"] / row["predicted_nmse"]:6.3f}'
    f' {row["bits_above_bound"]:6.2f}'
  )

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The settings of a deployed training."""

import dataclasses
import math
from typing import Any, Dict

from experiments.common import aggregators
from experiments.training import settings

# How rounds are run: as a runtime does, or by TFF's simulation.
MASKED = 'masked'
SIMULATED = 'simulated'


def drops_metrics(aggregator: str) -> bool:
  """Whether metrics stay at the clients unless told otherwise.

  Args:
    aggregator: Text that `aggregators.parse` reads. The epsilon of
      `distributed_dp` does not cover metrics.
  """
  return aggregators.parse(aggregator).name == 'distributed_dp'


@dataclasses.dataclass(frozen=True)
class Config:
  """Everything that decides the numbers of one run.

  Attributes:
    training: What is trained, and how.
    run_by: `MASKED` or `SIMULATED`. The simulation is given the clients that
      survive, and skips the rounds that cannot be unmasked.
    dropout: Probability that a client vanishes after it has shared its keys.
    threshold_share: Survivors without whom nothing is unmasked, as a share of
      the clients of a round.
    drop_metrics: Whether loss and accuracy stay at the clients. Otherwise they
      leave in the clear.
  """

  training: settings.Config
  run_by: str = MASKED
  dropout: float = 0.2
  threshold_share: float = 2 / 3
  drop_metrics: bool = False

  def __post_init__(self):
    if self.run_by not in (MASKED, SIMULATED):
      raise ValueError(
        f'`run_by` must be {MASKED!r} or {SIMULATED!r}, found {self.run_by!r}.'
      )
    if not 0 <= self.dropout < 1:
      raise ValueError(
        f'`dropout` must be at least 0 and below 1, found {self.dropout!r}.'
      )
    # With half of the clients or fewer, a server could unmask two sums of one
    # round, of different clients, and take their difference.
    if not 0.5 < self.threshold_share <= 1:
      raise ValueError(
        '`threshold_share` must be above 0.5 and at most 1, found '
        f'{self.threshold_share!r}.'
      )

  @property
  def threshold(self) -> int:
    """Survivors without whom nothing is unmasked."""
    # Less than a rounding error above a whole number is that number.
    share = self.threshold_share * self.training.clients_per_round
    return math.ceil(share - 1e-9)

  def asdict(self) -> Dict[str, Any]:
    """The settings as one dict of plain values."""
    found = dict(
      self.training.asdict(),
      run_by=self.run_by,
      dropout=self.dropout,
      threshold_share=self.threshold_share,
    )
    # Rows from before there was a choice keep their names.
    if self.drop_metrics:
      found['drop_metrics'] = True
    return found

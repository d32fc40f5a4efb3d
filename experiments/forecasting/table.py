# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The forecast beside the rule before it and the best choice in hindsight."""

from typing import Any, Dict, List, Mapping, Sequence

import numpy as np

from experiments.forecasting import recorded
from experiments.forecasting import replay

Row = Mapping[str, Any]

_GAINS = (1.0, 0.6, 0.35, 0.2)
_MARGINS = (0.03, 0.1, 0.2, 0.3, 0.5)
# The rule of version 0.1: the last round's size and this margin.
_LAST_ROUND = (1.0, 0.1)

# Shorter runs end before there was much to learn.
MIN_ROUNDS = 40


def rows(
  name: str,
  trained: Sequence[Row],
  moduli: Sequence[int],
  first_rounds: Sequence[int] = (5, 2),
) -> List[Dict[str, Any]]:
  """Replays the sizes recorded at the largest modulus with each of `moduli`.

  Args:
    name: of the recorded runs.
    trained: joined round rows of one experiment.
    moduli: to replay with.
    first_rounds: means are taken from these rounds on, counted from 1.

  Returns:
    A row for each modulus and first round: mean NMSE of the best pair of gain
    and margin (`best`), and those of the last round's rule and of the forecast
    as multiples of it.
  """
  runs = list(recorded.sizes(trained).values())
  found = []
  for modulus in moduli:
    setting = recorded.setting(trained, modulus)
    replays = {
      pair: [
        replay.replay(setting, replay.Smoothing(setting, *pair), sizes)
        for sizes in runs
      ]
      for pair in ((g, m) for g in _GAINS for m in _MARGINS)
    }
    learned = [
      replay.replay(setting, replay.Forecasting(setting), sizes)
      for sizes in runs
    ]
    for first in first_rounds:
      best = min(_mean_error(r, first) for r in replays.values())
      last_round = replays[_LAST_ROUND]
      found.append(
        dict(
          trace=name,
          modulus=modulus,
          runs=len(runs),
          rounds=min(len(sizes) for sizes in runs),
          first_round=first,
          best=best,
          last_round=_mean_error(last_round, first) / best,
          forecast=_mean_error(learned, first) / best,
        )
      )
  return found


def blind_rows(
  name: str, trained: Sequence[Row], moduli: Sequence[int]
) -> List[Dict[str, Any]]:
  """Counts blind rounds where runs of these moduli were recorded.

  Returns:
    A row for each modulus: rounds, how many were blind when they were recorded,
    and how many are in replays of the last round's rule and of the forecast,
    with the mean error of both.
  """
  found = []
  for modulus in moduli:
    runs = list(recorded.sizes(trained, modulus).values())
    if not runs:
      continue
    setting = recorded.setting(trained, modulus)
    replays = dict(
      last_round=[
        replay.replay(setting, replay.Smoothing(setting, *_LAST_ROUND), sizes)
        for sizes in runs
      ],
      forecast=[
        replay.replay(setting, replay.Forecasting(setting), sizes)
        for sizes in runs
      ],
    )
    row = dict(
      trace=name,
      modulus=modulus,
      rounds=sum(len(sizes) for sizes in runs),
      recorded=recorded.num_blind_rounds(trained, modulus),
    )
    for rule, done in replays.items():
      row[rule] = int(sum(r.is_blind.sum() for r in done))
      row[f'{rule}_error'] = _mean_error(done, 2)
    found.append(row)
  return found


def summary(
  table: Sequence[Mapping[str, Any]], first_round: int, rule: str
) -> str:
  """Geometric mean and largest ratio over the runs that are long enough."""
  ratios = [
    row[rule]
    for row in table
    if row['first_round'] == first_round and row['rounds'] >= MIN_ROUNDS
  ]
  if not ratios:
    return 'no such runs'
  mean = np.exp(np.mean(np.log(ratios)))
  return f'{mean:.2f}, worst {max(ratios):.2f}'


def _mean_error(replays, first):
  return float(np.mean([r.errors[first - 1 :].mean() for r in replays]))

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which training runs may be compared, how they pair, and what rounds cost.

Functions take rows as `result_rows.read` returns them.
"""

import collections
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from experiments.common import arms
from experiments.common import result_rows
from experiments.common import traffic
from experiments.common import two_way

Row = Mapping[str, Any]

REFERENCE = 'plain_mean'

# What runs of one comparison may differ in.
_VARIED = ('aggregator', 'model_download_bits', 'seed', 'partition_seed')


def check_settings(rows: Sequence[Row]) -> None:
  """Raises ValueError if runs differ in more than what is compared."""
  result_rows.check_one_setting(rows, _VARIED)


def evaluated_runs(rows: Sequence[Row]) -> List[List[Row]]:
  """The evaluated rows of each run, in the order of its rounds.

  Raises:
    ValueError: Runs differ in another setting than those that are compared,
      there are two of one arm and block, or some have not come as far as
      others.
  """
  check_settings(rows)
  found = collections.OrderedDict()
  for row in rows:
    if 'test_accuracy' in row:
      found.setdefault(row['run'], []).append(row)
  runs = [sorted(run, key=lambda row: row['round']) for run in found.values()]
  _check_ends([run[-1] for run in runs])
  seen = {}
  for run in runs:
    enter(seen, run[-1], run[-1]['round'])
  return runs


def _check_ends(last_rows: Sequence[Row]) -> None:
  ends = [row['round'] for row in last_rows]
  if ends and min(ends) < max(ends):
    config = last_rows[ends.index(min(ends))]['config']
    raise ValueError(
      f'`rows` must be of whole runs, found that {config["aggregator"]} with'
      f' seed {config["seed"]} has come to round {min(ends)} and others to'
      f' {max(ends)}: let it finish, or compare with --last_round={min(ends)}.'
    )


def enter(values: Dict[tuple, float], row: Row, value: float) -> None:
  """Enters a number of a run for `two_way.differences`.

  Runs of a block have the same clients, batches and initial weights.

  Raises:
    ValueError: There is one of the same arm and block already.
  """
  config = row['config']
  block = config['seed'], config.get('partition_seed')
  arm = arms.of(config)
  if (arm, block) in values:
    raise ValueError(
      f'`rows` must hold one run of {arm} with seed '
      f'{block[0]}, found two with other settings: choose with '
      '--select=SETTING=VALUE.'
    )
  values[arm, block] = value


def differences(
  values: Mapping[tuple, float], reference: str
) -> Mapping[str, two_way.Difference]:
  """As `two_way.differences`; empty if `values` hold none of `reference`."""
  if not any(arm == reference for arm, _ in values):
    return {}
  return two_way.differences(values, reference)


def bytes_of_a_round(
  runs: Sequence[List[Row]],
) -> Dict[str, Tuple[int, Optional[int]]]:
  """What a client sends in a round, and what goes in both directions.

  Args:
    runs: As `evaluated_runs` returns them.

  Returns:
    For each arm the bytes of the update, and those of a client's whole round:
    update up, model down, and keys of masks. The latter are None for rows that
    do not say what the model took, and have no run of `REFERENCE` beside them,
    which tells its size.
  """
  # The reference sends all parameters as floats, as which a model that is not
  # coded goes down.
  models = {
    run[-1]['bytes_per_client']
    for run in runs
    if run[-1]['config']['aggregator'] == REFERENCE
  }
  model_bytes = max(models) if len(models) == 1 else None
  found = {}
  for arm, members in arms.grouped(runs).items():
    row = members[0][-1]
    found[arm] = (
      row['bytes_per_client'],
      traffic.training_round_bytes(row, row['config'], model_bytes),
    )
  return found


def difference_text(
  found: Optional[two_way.Difference], digits: int = 2
) -> str:
  """A difference with its 95 % interval, if it has one, for a table."""
  if found is None:
    return '-'
  if found.half_width is None:
    return f'{found.mean:+.{digits}f}'
  return f'{found.mean:+.{digits}f} ± {found.half_width:.{digits}f}'

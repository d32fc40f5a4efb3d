# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Result rows as tables and figures take them: read, chosen, looked into."""

import os
from typing import Any, Container, List, Optional, Sequence

from experiments.common import results_file


def read(*paths: str, kind: str = 'round') -> List[results_file.Row]:
  """Reads rows, each joined with the config of its run.

  Args:
    *paths: JSON lines files, or folders of sweeps.
    kind: Of the rows.

  Returns:
    One dict per row of that kind, with the key `config` added.

  Raises:
    FileNotFoundError: A file is not there.
    ValueError: A line is no row, or a row names a run that is not described.
  """
  joined = []
  for path in paths:
    if os.path.isdir(path):
      path = os.path.join(path, results_file.NAME)
    if not os.path.exists(path):
      raise FileNotFoundError(f'There is no file of result rows {path!r}.')
    rows = results_file.ResultsFile(path).rows()
    runs = {r['run']: r for r in rows if r['kind'] == 'run'}
    for row in rows:
      if row['kind'] != kind:
        continue
      if row['run'] not in runs:
        raise ValueError(
          f'Every run in {path!r} must have a line of kind run, found none for'
          f' {row["run"]!r}.'
        )
      joined.append(dict(row, config=runs[row['run']]['config']))
  return joined


def select(
  rows: Sequence[results_file.Row], conditions: Sequence[str]
) -> List[results_file.Row]:
  """Keeps the rows whose config meets all of some conditions.

  Args:
    rows: Joined rows.
    conditions: Texts `setting=value|value`; a prefix of the value is enough,
      unless it ends with `$`.

  Returns:
    Those rows.

  Raises:
    ValueError: If none is left; the message says what there is.
  """
  kept = list(rows)
  for condition in conditions:
    key, _, values = condition.partition('=')
    wanted = values.split('|')
    names = sorted({name for row in kept for name in row['config']})
    found = sorted({str(row['config'].get(key)) for row in kept})
    kept = [
      row
      for row in kept
      if key in row['config'] and _meets(str(row['config'][key]), wanted)
    ]
    if key not in names:
      raise ValueError(
        f'`select` must name a setting, found {key!r}; they are '
        f'{", ".join(names) or "none"}.'
      )
    if not kept:
      raise ValueError(
        f'`select` must leave some rows, found none with {condition!r}; the '
        f'values of {key!r} are {", ".join(found)}.'
      )
  return kept


def _meets(value: str, wanted: Sequence[str]) -> bool:
  """Whether a value begins with one of some texts, or is it to the `$`."""
  return any(f'{value}$'.startswith(text) for text in wanted)


def check_one_setting(
  rows: Sequence[results_file.Row], varied: Container[str]
) -> None:
  """Raises ValueError if runs differ in more than is compared.

  Args:
    rows: With their `config`.
    varied: Names of what the runs may differ in.
  """
  first = rows[0]['config'] if rows else {}
  for row in rows:
    config = row['config']
    for name in first:
      if name not in varied and config.get(name) != first[name]:
        raise ValueError(
          f'`rows` must be of runs with one {name}, found {first[name]} and'
          f' {config.get(name)}: choose with --select={name}=VALUE.'
        )


def measurement(row: results_file.Row, name: str) -> Optional[Any]:
  """The aggregator measurement called `name` in a round row, or None."""
  for key, value in row.get('aggregator', {}).items():
    if key.split('/')[-1] == name:
      return value
  return None


def percent(row: results_file.Row) -> Optional[float]:
  """Test accuracy in percent; None where a round was not evaluated."""
  share = row.get('test_accuracy')
  return None if share is None else 100 * share

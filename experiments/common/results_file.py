# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Result files: JSON lines that survive kills.

A row with `kind` 'run' describes a run: its config, its environment and its
wall clock start. One that is continued in another environment, such as another
commit, is described again: its next rows are of that one. All other rows name
their run; those with `kind` 'round' hold the numbers of one round.
"""

import contextlib
import datetime
import errno
import hashlib
import json
import math
import os
from typing import (
  Any,
  Callable,
  Dict,
  Iterable,
  Iterator,
  List,
  Mapping,
)

import numpy as np

from experiments.common import command_line
from experiments.common import environment
from tff_autotune_secagg import _file_lock

Row = Dict[str, Any]

# The file in the folder of a sweep.
NAME = 'results.jsonl'


def run_name(config: Mapping[str, Any]) -> str:
  """A name for a run: readable in front, unique for its config at the end.

  Args:
    config: JSON-compatible mapping. Keys `dataset`, `aggregator` and `seed`, if
      present, appear in the name.
  """
  digest = hashlib.sha1(
    json.dumps(config, sort_keys=True).encode()
  ).hexdigest()[:8]
  words = [
    str(config[key]) for key in ('dataset', 'aggregator') if key in config
  ]
  if 'seed' in config:
    words.append(f'seed{config["seed"]}')
  text = '-'.join(words + [digest])
  return ''.join(c if c.isalnum() or c in '-_.' else '_' for c in text)


def to_json(value):
  """Turns NumPy scalars, arrays and containers into plain JSON values.

  NaN and infinities become strings ('nan', 'inf', '-inf'): JSON has none.
  """
  if isinstance(value, Mapping):
    return {str(k): to_json(v) for k, v in value.items()}
  if isinstance(value, (list, tuple)):
    return [to_json(v) for v in value]
  if isinstance(value, np.ndarray):
    return to_json(value.tolist())
  if isinstance(value, np.generic):
    return to_json(value.item())
  if isinstance(value, bytes):
    return value.decode(errors='replace')
  if isinstance(value, float) and not math.isfinite(value):
    return repr(value)
  return value


class ResultsFile:
  """A JSON lines file to which rows are appended durably.

  Guarantees: `append` returns after the row is on disk, whole; a kill in the
  middle leaves at most a torn last line, which the next `append` or `rows`
  removes or skips. Appends of several processes do not interleave. Nothing is
  made on disk before the first row, or before `held`.
  """

  def __init__(self, path: str, *, is_smoke: bool = False):
    """Initializes the file.

    Args:
      path: Of the file.
      is_smoke: Whether the rows only show that something runs. They are marked,
        and only added to others of that kind.
    """
    self._path = path
    self._is_smoke = is_smoke
    self._is_held = False

  @property
  def path(self) -> str:
    return self._path

  @contextlib.contextmanager
  def held(self):
    """Keeps the file for this run alone; others are refused meanwhile.

    Raises:
      UserError: Another run holds it, or it has rows that a smoke run must
        leave alone.
      OSError: The file cannot be written there.
    """
    if os.path.isdir(self._path):
      raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), self._path)
    folders = _missing_folders(self._path)
    try:
      with contextlib.ExitStack() as stack:
        try:
          stack.enter_context(self._lock())
        except BlockingIOError as e:
          raise command_line.UserError(
            f'Another run writes to {self._path!r}: wait for its end or write'
            ' to another place.'
          ) from e
        if self._is_smoke:
          self._check_smoke()
        self._is_held = True
        open(self._path, 'ab').close()  # Fails here if it can not be written.
        yield
    finally:
      if self._is_held:
        self._is_held = False
        self._remove_if_empty(folders)

  def _check_smoke(self):
    with command_line.user_errors():
      rows = self.rows()
    smoke = {row['run'] for row in rows if row.get('smoke')}
    if any(row['run'] not in smoke for row in rows):
      raise command_line.UserError(
        f'--smoke must not add to rows of real runs, found {self._path!r}:'
        ' write to another place.'
      )

  def _remove_if_empty(self, folders):
    """Removes what a run that wrote nothing would leave behind."""
    if os.path.getsize(self._path):
      return
    os.remove(self._path)
    os.remove(self._path + '.lock')
    for folder in folders:
      if not os.listdir(folder):
        os.rmdir(folder)

  def _lock(self, wait=False):
    # A file of its own: `drop_rounds_after` replaces the results file.
    os.makedirs(os.path.dirname(os.path.abspath(self._path)), exist_ok=True)
    return _file_lock.held(self._path + '.lock', wait=wait)

  @contextlib.contextmanager
  def _locked(self):
    if self._is_held:
      yield
      return
    with self._lock(wait=True):
      yield

  def rows(self) -> List[Row]:
    """All whole rows, in the order in which they were written.

    Raises:
      ValueError: A line is no JSON object.
    """
    if not os.path.exists(self._path):
      return []
    rows = []
    with open(self._path, 'rb') as f:
      for number, line in enumerate(f, 1):
        if not line.endswith(b'\n'):
          break  # Torn by a kill.
        rows.append(self._parsed(number, line))
    return rows

  def _parsed(self, number, line):
    try:
      row = json.loads(line)
    except ValueError:
      row = None
    if not isinstance(row, dict) or 'kind' not in row or 'run' not in row:
      raise ValueError(
        f'Line {number} of {self._path!r} must be a JSON object with kind and'
        f' run, found {line[:60]!r}: remove the line or choose another file.'
      )
    return row

  def append(self, row: Mapping[str, Any]) -> None:
    """Appends one row durably."""
    line = json.dumps(to_json(row), allow_nan=False).encode() + b'\n'
    with self._locked():
      with open(self._path, 'ab+') as f:
        self._cut_torn_line(f)
        f.write(line)
        f.flush()
        os.fsync(f.fileno())

  def begin(
    self,
    run: str,
    config: Mapping[str, Any],
    described: Mapping[str, Any],
    **details,
  ) -> None:
    """Describes `run`, unless the file says the same of it already.

    Args:
      run: Name of the run.
      config: Its settings.
      described: What `environment.describe()` returned.
      **details: Further entries of the row.
    """
    if self._is_smoke:
      details['smoke'] = True
    before = [r for r in self.rows() if (r['run'], r['kind']) == (run, 'run')]
    if before and before[-1].get('environment') == to_json(described):
      return
    self.append(
      dict(
        kind='run',
        run=run,
        config=config,
        environment=described,
        started=now(),
        **details,
      )
    )

  def store(
    self,
    run: str,
    config: Mapping[str, Any],
    rows: Iterable[Row],
    kind: str = 'round',
  ) -> Iterator[Row]:
    """Appends the rows of `run` as they come, and passes them on.

    Args:
      run: Name of the run. What is there of it is replaced by the first row.
      config: Its settings.
      rows: Without `kind` and `run`.
      kind: Of the rows.

    Yields:
      The rows as they were.
    """
    described = environment.describe()
    for number, row in enumerate(rows):
      if not number:
        self._keep(lambda row: row['run'] != run)
        self.begin(run, config, described)
      self.append(dict(kind=kind, run=run, **row))
      yield row

  def store_missing(
    self,
    run: str,
    wanted: Iterable[Any],
    measure: Callable[[Any], Row],
  ) -> Iterator[Row]:
    """Measures the cells of a table of which there is no row yet.

    Args:
      run: Name of the table.
      wanted: Dataclasses, the cells.
      measure: Returns the row of a cell, which has the cell's fields.

    Yields:
      The new rows once they are on disk, with `round`, their number.
    """
    done = [r for r in self.rows() if (r['run'], r['kind']) == (run, 'round')]
    missing = [
      cell
      for cell in wanted
      if not any(vars(cell).items() <= row.items() for row in done)
    ]
    if missing:
      self.begin(run, {}, environment.describe())
    for number, cell in enumerate(missing, len(done) + 1):
      row = dict(measure(cell), round=number)
      self.append(dict(kind='round', run=run, **row))
      yield row

  def _cut_torn_line(self, f):
    end = f.seek(0, os.SEEK_END)
    if not end:
      return
    f.seek(end - 1)
    if f.read(1) != b'\n':
      f.seek(0)
      f.truncate(f.read().rfind(b'\n') + 1)
      f.seek(0, os.SEEK_END)

  def drop_rounds_after(self, run: str, round_num: int) -> int:
    """Removes the rows of `run` after `round_num`, to be computed again.

    Args:
      run: Name of the run.
      round_num: Last round to keep.

    Returns:
      The number of rows removed. Other runs' rows stay untouched.
    """
    return self._keep(
      lambda row: row['run'] != run or row.get('round', 0) <= round_num
    )

  def _keep(self, is_kept: Callable[[Row], bool]) -> int:
    """Removes all other rows; returns their number."""
    with self._locked():
      rows = self.rows()
      kept = [row for row in rows if is_kept(row)]
      if len(kept) == len(rows):
        return 0
      temporary = f'{self._path}.tmp{os.getpid()}'
      with open(temporary, 'w') as f:
        for row in kept:
          f.write(json.dumps(row) + '\n')
        f.flush()
        os.fsync(f.fileno())
      os.replace(temporary, self._path)
      return len(rows) - len(kept)

  def rounds(self, run: str) -> List[int]:
    """The rounds of which `run` has rows, in file order."""
    return [
      r['round']
      for r in self.rows()
      if r['run'] == run and r['kind'] == 'round'
    ]


class NoFile:
  """In place of a `ResultsFile` where nothing is to be written."""

  def store(
    self,
    run: str,
    config: Mapping[str, Any],
    rows: Iterable[Row],
    kind: str = 'round',
  ) -> Iterator[Row]:
    """Passes the rows on; arguments as of `ResultsFile.store`."""
    del run, config, kind  # Nothing is written.
    yield from rows


def _missing_folders(path: str) -> List[str]:
  """The folders that have to be made for a file, the innermost first."""
  missing = []
  folder = os.path.dirname(os.path.abspath(path))
  while not os.path.exists(folder):
    missing.append(folder)
    folder = os.path.dirname(folder)
  if not os.path.isdir(folder):
    raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder)
  return missing


def now() -> str:
  """The time in UTC, to the second, as ISO 8601 has it."""
  return datetime.datetime.now(datetime.timezone.utc).isoformat(
    timespec='seconds'
  )

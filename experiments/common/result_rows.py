# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Result files: JSON lines that survive kills, and TensorBoard copies.

A row with `kind` 'run' describes a run once: its config, its environment and
its wall clock start. All other rows name their run; those with `kind` 'round'
hold the numbers of one round. `read` joins them with their config.
"""

import contextlib
import datetime
import fcntl
import hashlib
import json
import math
import os
import platform
import shutil
import subprocess
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

import numpy as np

Row = Dict[str, Any]


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
  removes or skips. Appends of several processes do not interleave.
  """

  def __init__(self, path: str):
    self._path = path
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)

  @property
  def path(self) -> str:
    return self._path

  @contextlib.contextmanager
  def _locked(self):
    # A separate lock file: `drop_rounds_after` replaces the results file.
    with open(self._path + '.lock', 'a') as lock:
      fcntl.flock(lock, fcntl.LOCK_EX)
      yield

  def rows(self) -> List[Row]:
    """All whole rows, in the order in which they were written."""
    if not os.path.exists(self._path):
      return []
    rows = []
    with open(self._path, 'rb') as f:
      for number, line in enumerate(f, 1):
        if not line.endswith(b'\n'):
          break  # Torn by a kill.
        try:
          rows.append(json.loads(line))
        except ValueError as e:
          raise ValueError(
            f'Line {number} of {self._path!r} must be a JSON object, found '
            f'{line[:60]!r}. Remove the line or choose another '
            '--output_dir.'
          ) from e
    return rows

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
    environment: Mapping[str, Any],
    **details,
  ) -> None:
    """Describes `run`, unless that was done before.

    Args:
      run: Name of the run.
      config: Its settings.
      environment: What `environment()` returned.
      **details: Further entries of the row.
    """
    if self.has_run(run):
      return
    self.append(
      dict(
        kind='run',
        run=run,
        config=config,
        environment=environment,
        started=now(),
        **details,
      )
    )

  def store(
    self,
    run: str,
    config: Mapping[str, Any],
    rows: Iterator[Row],
    kind: str = 'round',
  ) -> Iterator[Row]:
    """Appends the rows of `run` as they come, and passes them on.

    Args:
      run: Name of the run, which is described before the first row.
      config: Its settings.
      rows: Without `kind` and `run`.
      kind: Of the rows.

    Yields:
      The rows as they were.
    """
    self.begin(run, config, environment())
    for row in rows:
      self.append(dict(kind=kind, run=run, **row))
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
    with self._locked():
      rows = self.rows()
      kept = [
        r for r in rows if r.get('run') != run or r.get('round', 0) <= round_num
      ]
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
      if r.get('run') == run and r.get('kind') == 'round'
    ]

  def has_run(self, run: str) -> bool:
    """Whether the row that describes `run` is there."""
    return any(
      r.get('run') == run and r.get('kind') == 'run' for r in self.rows()
    )


def read(*paths: str, kind: str = 'round') -> List[Row]:
  """Reads rows, each joined with the config of its run.

  Args:
    *paths: JSON lines files.
    kind: Of the rows.

  Returns:
    One dict per row of that kind, with the key `config` added.
  """
  joined = []
  for path in paths:
    rows = ResultsFile(path).rows()
    runs = {r['run']: r for r in rows if r['kind'] == 'run'}
    for row in rows:
      if row['kind'] == kind:
        joined.append(dict(row, config=runs[row['run']]['config']))
  return joined


def select(rows: Sequence[Row], conditions: Sequence[str]) -> List[Row]:
  """Keeps the rows whose config meets all of some conditions.

  Args:
    rows: Joined rows.
    conditions: Texts `setting=value|value`; a prefix of the value is enough.

  Returns:
    Those rows.

  Raises:
    ValueError: If none is left; the message says what there is.
  """
  kept = list(rows)
  for condition in conditions:
    key, _, values = condition.partition('=')
    prefixes = tuple(values.split('|'))
    found = sorted({str(row['config'].get(key)) for row in kept})
    kept = [
      row
      for row in kept
      if key in row['config'] and str(row['config'][key]).startswith(prefixes)
    ]
    if not kept:
      raise ValueError(
        f'`select` must leave some rows, found none with {condition!r}; the '
        f'values of {key!r} are {", ".join(found)}.'
      )
  return kept


def measurement(row: Row, name: str) -> Optional[Any]:
  """The aggregator measurement called `name` in a round row, or None."""
  for key, value in row.get('aggregator', {}).items():
    if key.split('/')[-1] == name:
      return value
  return None


def environment() -> Row:
  """Versions, commit and a description of the machine without its name."""
  # Imported here: reading results must not need TensorFlow.
  import tensorflow as tf
  import tensorflow_federated as tff

  import tff_autotune_secagg

  return {
    'package': getattr(tff_autotune_secagg, '__version__', 'unknown'),
    'tensorflow_federated': tff.__version__,
    'tensorflow': tf.__version__,
    'numpy': np.__version__,
    'python': platform.python_version(),
    'commit': _commit(),
    'machine': _machine(),
  }


def _commit() -> str:
  folder = os.path.dirname(os.path.abspath(__file__))
  try:
    commit = subprocess.run(
      ['git', 'rev-parse', 'HEAD'],
      cwd=folder,
      capture_output=True,
      text=True,
      check=True,
      timeout=10,
    ).stdout.strip()
    # Untracked files do not matter; changed ones do.
    changed = subprocess.run(
      ['git', 'status', '--porcelain', '--untracked-files=no'],
      cwd=folder,
      capture_output=True,
      text=True,
      check=True,
      timeout=10,
    ).stdout.strip()
    return commit + (' with local changes' if changed else '')
  except (OSError, subprocess.SubprocessError):
    return 'unknown'


def _machine() -> str:
  processor = platform.machine()
  try:
    with open('/proc/cpuinfo') as f:
      for line in f:
        if line.startswith('model name'):
          processor = line.split(':', 1)[1].strip()
          break
  except OSError:
    pass
  try:
    cores = len(os.sched_getaffinity(0))
    gigabytes = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30
  except (AttributeError, OSError, ValueError):
    return processor
  return f'{processor}, {cores} cores, {gigabytes:.0f} GiB, {platform.system()}'


def now() -> str:
  """The time in UTC, to the second, as ISO 8601 has it."""
  return datetime.datetime.now(datetime.timezone.utc).isoformat(
    timespec='seconds'
  )


class TensorBoardCopy:
  """Writes the numbers of round rows as TensorBoard scalars.

  The folder of the run is made anew from the rows at hand each time it is
  opened, so that a resumed run shows no point twice.
  """

  def __init__(self, folder: str, rows: Iterator[Row] = ()):
    import tensorflow as tf  # Reading results must not need TensorFlow.

    self._tf = tf
    shutil.rmtree(folder, ignore_errors=True)
    self._writer = tf.summary.create_file_writer(folder)
    for row in rows:
      self.write(row)

  def write(self, row: Mapping[str, Any]) -> None:
    with self._writer.as_default(step=row['round']):
      for key, value in _scalars(row):
        self._tf.summary.scalar(key, value)
    self._writer.flush()

  def close(self) -> None:
    self._writer.close()


def _scalars(row, prefix=''):
  for key, value in row.items():
    if isinstance(value, Mapping):
      yield from _scalars(value, f'{prefix}{key}/')
    elif isinstance(value, (bool, int, float)) and key != 'round':
      yield prefix + key, float(value)

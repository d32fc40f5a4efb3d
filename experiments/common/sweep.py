# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs several configs after one another, with files and progress.

What all sweeps share: one progress bar over all runs, rows on disk as soon as
they are there, and a clean end on Ctrl-C after which the same command
continues.
"""

import abc
import datetime
import os
import sys
from typing import Any, Mapping, Optional, Sequence

import tqdm

from experiments.common import result_rows
from tff_autotune_secagg import simulation

RESULTS_NAME = 'results.jsonl'
INTERRUPTED_STATUS = 130  # What shells report for a program ended by Ctrl-C.


def new_output_dir(prefix: str) -> str:
  """Makes and returns a dated folder in ./results that did not exist."""
  stamp = datetime.datetime.now().strftime('%Y-%m-%d-%H%M%S')
  path = base = os.path.join('results', f'{prefix}-{stamp}')
  number = 2
  while True:
    try:
      os.makedirs(path)
      return path
    except FileExistsError:
      path, number = f'{base}-{number}', number + 1


class Progress:
  """A bar on a terminal, a line now and then elsewhere, or nothing."""

  def __init__(self, total: int, unit: str, quiet: bool):
    self._quiet = quiet
    self.on_terminal = sys.stderr.isatty()
    self._bar = tqdm.tqdm(
      total=total,
      unit=unit,
      dynamic_ncols=True,
      mininterval=0.2,
      disable=quiet or not self.on_terminal,
      leave=False,
      bar_format='{desc}|{bar}| {n}/{total} [{elapsed}<{remaining}]',
    )

  def say(self, text: str) -> None:
    """Shows a line of text."""
    if self._quiet:
      return
    if self.on_terminal:
      self._bar.set_description_str(text)
    else:
      print(text, file=sys.stderr, flush=True)

  def advance(self, steps: int = 1) -> None:
    """Moves the bar."""
    self._bar.update(steps)

  def close(self) -> None:
    """Removes the bar."""
    self._bar.close()


def _set_context(workers: Sequence[str]) -> None:
  """Computes on this machine, or on `workers`; exits if one does not answer."""
  if not workers:
    simulation.set_local_context()
    return
  try:
    simulation.set_remote_context(workers)
  except (ConnectionError, ValueError) as e:
    sys.exit(f'--workers: {e}')


class AbstractSweep(abc.ABC):
  """Runs of several configs whose results go to one folder.

  Attributes:
    output_dir: The folder.
    results: Its `result_rows.ResultsFile`.
  """

  def __init__(
    self,
    configs: Sequence[Any],
    *,
    output_dir: str,
    data_dir: Optional[str] = None,
    allow_download: bool = False,
    quiet: bool = False,
    workers: Sequence[str] = (),
  ):
    """Initializes the sweep.

    Args:
      configs: What to run, in this order.
      output_dir: Folder of the results, made if it is not there.
      data_dir: Folder of the data set's files, if not the usual one.
      allow_download: Whether missing files may be downloaded.
      quiet: Whether to show no progress.
      workers: Addresses of workers that compute; none: this machine.
    """
    self.output_dir = output_dir
    self.results = result_rows.ResultsFile(
      os.path.join(output_dir, RESULTS_NAME)
    )
    self._configs = list(configs)
    self._data_options = dict(data_dir=data_dir, allow_download=allow_download)
    self._quiet = quiet
    self._workers = tuple(workers)

  def run(self) -> int:
    """Runs what is not finished yet.

    Returns:
      0, or `INTERRUPTED_STATUS` after Ctrl-C, when a sentence on where to
      continue has been printed.
    """
    progress = self._progress()
    try:
      self._prepare()
      _set_context(self._workers)
      environment = result_rows.environment()
      for config in self._configs:
        self._run_one(config, environment, progress)
      return 0
    except KeyboardInterrupt:
      progress.close()
      print(
        f'\nInterrupted. {self._position()} The same command with '
        f'--output_dir={self.output_dir} continues from there.',
        file=sys.stderr,
      )
      return INTERRUPTED_STATUS
    finally:
      progress.close()
      simulation.close()

  @abc.abstractmethod
  def _progress(self) -> Progress:
    """The bar of the whole sweep."""

  @abc.abstractmethod
  def _prepare(self) -> None:
    """Does what must fail before any waiting, such as reading data files."""

  @abc.abstractmethod
  def _run_one(
    self, config: Any, environment: Mapping[str, Any], progress: Progress
  ) -> None:
    """Runs what is not finished yet of one config."""

  @abc.abstractmethod
  def _position(self) -> str:
    """A sentence on what is there already, for somebody who pressed Ctrl-C."""

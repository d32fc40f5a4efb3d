# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs several configs after one another, with files and progress.

What all sweeps share: one progress bar over all runs, rows on disk as soon as
they are there, and a clean end on Ctrl-C after which the same command
continues.
"""

import abc
import contextlib
import os
import sys
from typing import Any, Mapping, Optional, Sequence

import tqdm

from experiments.common import command_line
from experiments.common import environment
from experiments.common import results_file
from tff_autotune_secagg import simulation


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


def _check_configs(configs: Sequence[Any]) -> None:
  if not configs:
    raise command_line.UserError(
      'Every list of what is to be run must have an entry, found an empty one: '
      'give each of --seeds, --aggregator and the like a value or leave it out.'
    )
  for config in configs:
    if configs.count(config) > 1:
      raise command_line.UserError(
        f'All runs must differ, found this one twice: {config}.'
      )


def set_context(workers: Sequence[str]) -> None:
  """Computes on this machine, or on `workers`.

  Args:
    workers: Their addresses; none: this machine.

  Raises:
    UserError: One of them does not answer.
  """
  if not workers:
    simulation.set_local_context()
    return
  try:
    simulation.set_remote_context(workers)
  except (ConnectionError, ValueError) as e:
    raise command_line.UserError(f'--workers: {e}') from e


class AbstractSweep(abc.ABC):
  """Runs of several configs whose results go to one folder.

  Attributes:
    output_dir: The folder.
    results: Its `results_file.ResultsFile`.
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
    is_smoke: bool = False,
  ):
    """Initializes the sweep.

    Args:
      configs: What to run, in this order.
      output_dir: Folder of the results, made if it is not there.
      data_dir: Folder of the data set's files, if not the usual one.
      allow_download: Whether missing files may be downloaded.
      quiet: Whether to show no progress.
      workers: Addresses of workers that compute; none: this machine.
      is_smoke: As of `results_file.ResultsFile`.
    """
    self.output_dir = output_dir
    self.results = results_file.ResultsFile(
      os.path.join(output_dir, results_file.NAME), is_smoke=is_smoke
    )
    self._configs = list(configs)
    _check_configs(self._configs)
    self._data_options = dict(data_dir=data_dir, allow_download=allow_download)
    self._quiet = quiet
    self._workers = tuple(workers)

  def run(self) -> int:
    """Runs what is not finished yet.

    Returns:
      0, or `INTERRUPTED_STATUS` after Ctrl-C, when a sentence on where to
      continue has been printed.

    Raises:
      UserError: A setting is wrong, a file is missing or another run writes to
        the folder. Nothing has been run then, and nothing is left behind.
    """
    progress = self._progress()
    try:
      with contextlib.ExitStack() as stack:
        with command_line.user_errors():
          stack.enter_context(self.results.held())
          # First: the settings' check creates processes.
          set_context(self._workers)
          self._prepare()
        described = environment.describe()
        for config in self._configs:
          self._run_one(config, described, progress)
      return 0
    except KeyboardInterrupt:
      progress.close()
      print(
        f'\nInterrupted. {self._position()} The same command with '
        f'--output_dir={self.output_dir} continues.',
        file=sys.stderr,
      )
      return command_line.INTERRUPTED_STATUS
    finally:
      progress.close()
      simulation.close()

  @abc.abstractmethod
  def _progress(self) -> Progress:
    """The bar of the whole sweep."""

  @abc.abstractmethod
  def _prepare(self) -> None:
    """Reads the data and builds every setting, to fail before any waiting."""

  @abc.abstractmethod
  def _run_one(
    self, config: Any, environment: Mapping[str, Any], progress: Progress
  ) -> None:
    """Runs what is not finished yet of one config."""

  @abc.abstractmethod
  def _position(self) -> str:
    """A sentence on what is there already, for somebody who pressed Ctrl-C."""

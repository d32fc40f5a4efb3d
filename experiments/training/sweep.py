# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs several training configs after one another, with files and progress.

What the training binaries share: one progress bar over all runs, rows and
checkpoints on disk after every round, resuming, and a clean end on Ctrl-C.
"""

import dataclasses
import datetime
import os
import sys
from typing import Any, Dict, List, Optional, Sequence

import tensorflow_federated as tff
import tqdm

from experiments.common import aggregators
from experiments.common import result_rows
from experiments.mean_estimation import estimation
from experiments.training import trainer
from tff_autotune_secagg import simulation

RESULTS_NAME = 'results.jsonl'
_CHECKPOINTS_KEPT = 2
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


class _Progress:
  """A bar on a terminal, a line now and then elsewhere, or nothing."""

  def __init__(self, total: int, quiet: bool):
    self._quiet = quiet
    self._terminal = sys.stderr.isatty()
    self._bar = tqdm.tqdm(
      total=total,
      unit='round',
      dynamic_ncols=True,
      mininterval=0.2,
      disable=quiet or not self._terminal,
      leave=False,
      bar_format='{desc}|{bar}| {n}/{total} [{elapsed}<{remaining}]',
    )

  def say(self, text: str) -> None:
    if self._quiet:
      return
    if self._terminal:
      self._bar.set_description_str(text)
    else:
      print(text, file=sys.stderr, flush=True)

  def advance(self, rounds: int) -> None:
    self._bar.update(rounds)

  def show(self, config, row) -> None:
    """Shows a finished round."""
    self.advance(1)
    # Without a terminal, some ten lines for each run are enough.
    every = 1 if self._terminal else max(1, config.num_rounds // 10)
    if row['round'] % every == 0 or row['round'] == config.num_rounds:
      self.say(describe_row(config, row))

  def close(self) -> None:
    self._bar.close()


def describe_row(config: trainer.Config, row) -> str:
  """One line about a round: loss, accuracy and bin size, if there is one."""
  text = (
    f'{short_name(config)} round {row["round"]}/{config.num_rounds} '
    f'loss {row["train_loss"]:.3f}'
  )
  if 'test_accuracy' in row:
    text += f' accuracy {row["test_accuracy"]:.3f}'
  bin_size = trainer.find(row, 'bin_size')
  if bin_size is not None:
    text += f' bin {_first(bin_size):.2e}'
  return text


def _first(value) -> float:
  return value[0] if isinstance(value, list) else value


def short_name(config: trainer.Config) -> str:
  """The aggregator as the progress bar names it."""
  scheme = aggregators.parse(config.aggregator)
  modulus = scheme.settings.get('modulus')
  return scheme.name + (f' k={modulus}' if modulus else '')


def _set_context(workers: Sequence[str]) -> None:
  """Computes on this machine, or on `workers`; exits if one does not answer."""
  if not workers:
    simulation.set_local_context()
    return
  try:
    simulation.set_remote_context(workers)
  except (ConnectionError, ValueError) as e:
    sys.exit(f'--workers: {e}')


class Sweep:
  """Runs of several configs whose results go to one folder.

  Attributes:
    output_dir: The folder.
    results: Its `results.ResultsFile`.
  """

  def __init__(
    self,
    configs: Sequence[trainer.Config],
    *,
    output_dir: str,
    data_dir: Optional[str] = None,
    allow_download: bool = False,
    checkpoint_every: int = 10,
    tensorboard: bool = True,
    quiet: bool = False,
    workers: Sequence[str] = (),
  ):
    self._configs = list(configs)
    self._data_options = dict(data_dir=data_dir, allow_download=allow_download)
    self._checkpoint_every = checkpoint_every
    self._tensorboard = tensorboard
    self._quiet = quiet
    self._workers = tuple(workers)
    self.output_dir = output_dir
    self.results = result_rows.ResultsFile(
      os.path.join(output_dir, RESULTS_NAME)
    )
    self._position = ''

  def run(self) -> int:
    """Runs what is not finished yet.

    Returns:
      0, or `INTERRUPTED_STATUS` after Ctrl-C, when a sentence on where to
      continue has been printed.
    """
    progress = _Progress(sum(c.num_rounds for c in self._configs), self._quiet)
    try:
      # Before any waiting: missing files must show at once.
      data = trainer.load_data(self._configs[0], **self._data_options)
      _set_context(self._workers)
      environment = result_rows.environment()
      for config in self._configs:
        self._run_one(config, data, environment, progress)
      return 0
    except KeyboardInterrupt:
      progress.close()
      print(
        f'\nInterrupted. {self._position}The same command with '
        f'--output_dir={self.output_dir} continues from there.',
        file=sys.stderr,
      )
      return INTERRUPTED_STATUS
    finally:
      progress.close()
      simulation.close()

  def _run_one(self, config, data, environment, progress):
    name = result_rows.run_name(config.asdict())
    folder = os.path.join(self.output_dir, 'checkpoints', name)
    rounds = self.results.rounds(name)
    if rounds and rounds[-1] == config.num_rounds:
      progress.advance(config.num_rounds)
      return
    manager = tff.program.FileProgramStateManager(
      folder, keep_total=_CHECKPOINTS_KEPT, keep_first=False
    )
    last = trainer.last_checkpoint(manager)
    if last and (not rounds or rounds[-1] < last):
      raise ValueError(
        f'The checkpoint of round {last} in {folder!r} must come with the '
        f'rows of all rounds before it in {self.results.path!r}, found '
        f'{len(rounds)} rows. Restore the file or remove the folder to begin '
        'this run again.'
      )
    self.results.drop_rounds_after(name, last)
    if not self.results.has_run(name):
      self.results.append(
        {
          'kind': 'run',
          'run': name,
          'config': config.asdict(),
          'data': data.name,
          'environment': environment,
          'started': result_rows.now(),
        }
      )
    board = None
    if self._tensorboard:
      kept = [
        r
        for r in self.results.rows()
        if r.get('run') == name and r['kind'] == 'round'
      ]
      board = result_rows.TensorBoardCopy(
        os.path.join(self.output_dir, 'tensorboard', name), kept
      )
    progress.advance(last)
    progress.say(f'{short_name(config)}: compiling')
    try:
      self._position = self._describe_position(folder, last)
      for row in trainer.run(
        config,
        data,
        state_manager=manager,
        checkpoint_every=self._checkpoint_every,
      ):
        row = {'kind': 'round', 'run': name, **row}
        self.results.append(row)
        if board is not None:
          board.write(row)
        progress.show(config, row)
        last = (row['round'] - 1) // self._checkpoint_every
        self._position = self._describe_position(
          folder, last * self._checkpoint_every
        )
    finally:
      if board is not None:
        board.close()

  def _describe_position(self, folder, round_num):
    if not round_num:
      return 'There is no checkpoint of this run yet. '
    return f'Last checkpoint: round {round_num} in {folder}. '

  def summary(self) -> List[Dict[str, Any]]:
    """One row for each finished run, in the order of the configs."""
    rows = result_rows.read(self.results.path)
    summary = []
    for config in self._configs:
      name = result_rows.run_name(config.asdict())
      mine = [r for r in rows if r['run'] == name]
      if not mine:
        continue
      last = mine[-1]
      summary.append(
        {
          'aggregator': config.aggregator,
          'seed': config.seed,
          'accuracy': last.get('test_accuracy'),
          'bits_per_coordinate': last['bits_per_coordinate'],
          'bytes_per_client': last['bytes_per_client'],
          'rounds': last['round'],
        }
      )
    return summary


class EstimationSweep:
  """Runs of `mean_estimation` configs whose results go to one folder.

  Attributes:
    results: The `results.ResultsFile`.
  """

  def __init__(
    self,
    configs: Sequence[estimation.Config],
    *,
    training: trainer.Config,
    output_dir: str,
    data_dir: Optional[str] = None,
    allow_download: bool = False,
    quiet: bool = False,
    workers: Sequence[str] = (),
  ):
    self._configs = list(configs)
    self._training = training
    self._data_options = dict(data_dir=data_dir, allow_download=allow_download)
    self._output_dir = output_dir
    self._quiet = quiet
    self._workers = tuple(workers)
    self._recorded = None
    self.results = result_rows.ResultsFile(
      os.path.join(output_dir, RESULTS_NAME)
    )

  def run(self) -> int:
    """Runs what is not finished yet; returns 0, or the status after Ctrl-C."""
    progress = _Progress(len(self._configs), self._quiet)
    try:
      _set_context(self._workers)
      environment = result_rows.environment()
      runner = estimation.Runner()
      for number, config in enumerate(self._configs, 1):
        what = (
          f'{number}/{len(self._configs)} {config.vectors} {config.text(1.0)}'
        )
        progress.say(what)
        try:
          self._run_one(runner, config, environment)
        except aggregators.TooFewBitsError as e:
          progress.say(f'{what} skipped: {e}')
        progress.advance(1)
      return 0
    except KeyboardInterrupt:
      progress.close()
      print(
        '\nInterrupted. What was finished is in '
        f'{self.results.path}. The same command with '
        f'--output_dir={self._output_dir} continues from there.',
        file=sys.stderr,
      )
      return INTERRUPTED_STATUS
    finally:
      progress.close()
      simulation.close()

  def _run_one(self, runner, config, environment):
    recorded = config.vectors == estimation.RECORDED
    settings = dataclasses.asdict(config)
    if recorded:
      settings['training'] = self._training.asdict()
    name = result_rows.run_name(
      {**settings, 'dataset': config.vectors, 'aggregator': config.text(1.0)}
    )
    if self.results.rounds(name)[-1:] == [config.num_rounds]:
      return
    # There are no checkpoints here: a run takes seconds.
    self.results.drop_rounds_after(name, 0)
    if not self.results.has_run(name):
      self.results.append(
        {
          'kind': 'run',
          'run': name,
          'config': settings,
          'environment': environment,
          'started': result_rows.now(),
        }
      )
    vectors = (
      self._record() if recorded else estimation.synthetic_vectors(config)
    )
    for row in runner.run(config, vectors[: config.num_rounds]):
      self.results.append({'kind': 'round', 'run': name, **row})

  def _record(self):
    if self._recorded is None:
      data = trainer.load_data(self._training, **self._data_options)
      self._recorded = estimation.record_updates(self._training, data)
    return self._recorded


def format_table(summary: Sequence[Dict[str, Any]]) -> str:
  """A table of `Sweep.summary` for people."""
  heads = (
    'aggregator',
    'seed',
    'final accuracy',
    'bits per coordinate',
    'bytes per client and round',
  )
  rows = [
    (
      s['aggregator'],
      str(s['seed']),
      '-' if s['accuracy'] is None else f'{100 * s["accuracy"]:.2f} %',
      f'{s["bits_per_coordinate"]:g}',
      f'{s["bytes_per_client"]:,}',
    )
    for s in summary
  ]
  widths = [max(len(r[i]) for r in [heads, *rows]) for i in range(len(heads))]

  def line(cells):
    first = cells[0].ljust(widths[0])
    return '  '.join(
      [first] + [c.rjust(w) for c, w in zip(cells[1:], widths[1:])]
    )

  return '\n'.join(
    [line(heads), line(['-' * w for w in widths])] + [line(r) for r in rows]
  )

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The sweep of training runs: checkpoints, TensorBoard, a closing table."""

import os
from typing import Any, Dict, List, Sequence

from experiments.common import arms
from experiments.common import checkpoints
from experiments.common import command_line
from experiments.common import result_rows
from experiments.common import results_file
from experiments.common import sweep
from experiments.common import tables
from experiments.common import tensorboard_copy
from experiments.common import traffic
from experiments.training import settings
from experiments.training import trainer


def describe_row(config: settings.Config, row) -> str:
  """One line about a round: loss, accuracy and bin size, if there is one."""
  text = (
    f'{_arm(config)} round {row["round"]}/{config.num_rounds} '
    f'loss {row["train_loss"]:.3f}'
  )
  if 'test_accuracy' in row:
    text += f' accuracy {row["test_accuracy"]:.3f}'
  bin_size = result_rows.measurement(row, 'bin_size')
  if bin_size is not None:
    text += f' bin {_first(bin_size):.2e}'
  return text


def _arm(config: settings.Config) -> str:
  return arms.of(config.asdict())


def _first(value) -> float:
  return value[0] if isinstance(value, list) else value


class TrainingSweep(sweep.AbstractSweep):
  """Trains with each of several `settings.Config`s of the same data set."""

  def __init__(
    self,
    configs: Sequence[settings.Config],
    *,
    checkpoint_every: int = 10,
    tensorboard: bool = True,
    **options,
  ):
    """Initializes the sweep.

    Args:
      configs: What to run.
      checkpoint_every: Rounds between two checkpoints.
      tensorboard: Whether to write TensorBoard summaries too.
      **options: Of `sweep.AbstractSweep`.
    """
    super().__init__(configs, **options)
    self._checkpoint_every = checkpoint_every
    self._tensorboard = tensorboard
    self._checkpoints = None  # Folder and manager of the run in progress.
    self._data = None

  def _progress(self):
    total = sum(config.num_rounds for config in self._configs)
    return sweep.Progress(total, 'round', self._quiet)

  def _prepare(self):
    self._data = trainer.load_data(self._configs[0], **self._data_options)
    for config in self._configs:
      trainer.check(config, self._data)

  def _run_one(self, config, environment, progress):
    name = results_file.run_name(config.asdict())
    folder = os.path.join(self.output_dir, 'checkpoints', name)
    rounds = self.results.rounds(name)
    # Who removes the checkpoints of a finished run does not want it run again.
    was_kept = os.path.exists(folder)
    is_complete = rounds[-1:] == [config.num_rounds]
    if is_complete and not was_kept:
      progress.advance(config.num_rounds)
      return
    manager = checkpoints.open_folder(folder)
    last = checkpoints.last_version(manager)
    if is_complete and last == config.num_rounds:
      progress.advance(config.num_rounds)
      return
    if last and (not rounds or rounds[-1] < last):
      raise command_line.UserError(
        f'The checkpoint of round {last} in {folder!r} must come with the '
        f'rows of all rounds before it in {self.results.path!r}, found '
        f'{len(rounds)} rows. Restore the file, or give another '
        '--output_dir to begin anew.'
      )
    self.results.drop_rounds_after(name, last)
    self.results.begin(
      name,
      config.asdict(),
      environment,
      data=self._data.name,
      data_sha256=self._data.sha256,
    )
    board = None
    if self._tensorboard:
      kept = [
        r
        for r in self.results.rows()
        if r.get('run') == name and r['kind'] == 'round'
      ]
      board = tensorboard_copy.TensorBoardCopy(
        os.path.join(self.output_dir, 'tensorboard', name), kept
      )
    progress.advance(last)
    progress.say(f'{_arm(config)}: compiling')
    try:
      self._checkpoints = (folder, manager)
      for row in trainer.run(
        config,
        self._data,
        state_manager=manager,
        checkpoint_every=self._checkpoint_every,
      ):
        row = {'kind': 'round', 'run': name, **row}
        self.results.append(row)
        if board is not None:
          board.write(row)
        self._show(progress, config, row)
    finally:
      if board is not None:
        board.close()

  def _show(self, progress, config, row):
    """Shows a finished round."""
    progress.advance()
    # Without a terminal, some ten lines for each run are enough.
    every = 1 if progress.on_terminal else max(1, config.num_rounds // 10)
    if row['round'] % every == 0 or row['round'] == config.num_rounds:
      progress.say(describe_row(config, row))

  def _position(self):
    if self._checkpoints is not None:
      folder, manager = self._checkpoints
      round_num = checkpoints.last_version(manager)
      if round_num:
        return f'Last checkpoint: round {round_num} in {folder}.'
    return 'The run in progress has no checkpoint yet and begins again.'

  def summary(self) -> List[Dict[str, Any]]:
    """One row for each finished run, in the order of the configs."""
    rows = result_rows.read(self.results.path)
    summary = []
    for config in self._configs:
      name = results_file.run_name(config.asdict())
      mine = [r for r in rows if r['run'] == name]
      if not mine:
        continue
      last = mine[-1]
      summary.append(
        {
          'arm': _arm(config),
          'seed': config.seed,
          'accuracy': last.get('test_accuracy'),
          'bits_per_coordinate': last['bits_per_coordinate'],
          'bytes_per_client': last['bytes_per_client'],
          'download_bytes_per_client': last.get('download_bytes_per_client'),
          'round_bytes': traffic.training_round_bytes(last, config.asdict()),
          'rounds': last['round'],
        }
      )
    return summary


def format_table(summary: Sequence[Dict[str, Any]]) -> str:
  """A table of `TrainingSweep.summary` for people; bytes are for one round."""
  heads = ('aggregator', 'seed', 'accuracy', 'bits', 'bytes up/down')
  rows = [
    (
      s['arm'],
      s['seed'],
      '-' if s['accuracy'] is None else f'{100 * s["accuracy"]:.2f} %',
      f'{s["bits_per_coordinate"]:g}',
      '/'.join(
        '-' if number is None else f'{number:,}'
        for number in (s['bytes_per_client'], s['download_bytes_per_client'])
      ),
    )
    for s in summary
  ]
  return tables.plain(heads, rows)

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The sweep of deployed trainings: rows, progress, tables."""

import math
from typing import Any, Dict, List, Mapping, Sequence

from experiments.common import arms
from experiments.common import result_rows
from experiments.common import results_file
from experiments.common import sweep
from experiments.common import tables
from experiments.deployment import deployed_training
from experiments.deployment import settings
from experiments.deployment import what_moves
from experiments.training import trainer


class DeploymentSweep(sweep.AbstractSweep):
  """Trains with each of several `settings.Config`s of the same data set.

  A run that is not finished begins again.
  """

  def __init__(self, configs: Sequence[settings.Config], **options):
    """Initializes the sweep.

    Args:
      configs: What to run.
      **options: Of `sweep.AbstractSweep`.
    """
    super().__init__(configs, **options)
    self._data = None
    self._shown = set()

  def _progress(self):
    total = sum(config.training.num_rounds for config in self._configs)
    return sweep.Progress(total, 'round', self._quiet)

  def _prepare(self):
    training = self._configs[0].training
    self._data = trainer.load_data(training, **self._data_options)
    for config in self._configs:
      trainer.check(config.training, self._data)

  def _run_one(self, config, environment: Mapping[str, Any], progress):
    del environment  # `store` describes it.
    values = config.asdict()
    name = results_file.run_name(values)
    rounds = config.training.num_rounds
    if self.results.rounds(name)[-1:] == [rounds]:
      progress.advance(rounds)
      return
    progress.say(f'{_name(values)}: compiling')
    rows = deployed_training.run(
      config, self._data, on_form=lambda form: self._show(form, config)
    )
    every = 1 if progress.on_terminal else math.ceil(rounds / 10)
    for row in self.results.store(name, values, rows):
      progress.advance()
      if row['round'] % every == 0 or row['round'] == rounds:
        progress.say(_describe(values, row, rounds))

  def _show(self, form, config):
    """Prints what moves, once for each arm."""
    arm = arms.of(config.asdict())
    if arm not in self._shown:
      self._shown.add(arm)
      shown = what_moves.tables_of(form, config.training.clients_per_round)
      print(f'{arm}\n\n{shown}\n', flush=True)

  def _position(self):
    return 'The run in progress begins again.'

  def summary(self) -> List[Dict[str, Any]]:
    """One row for each run, in the order of the configs."""
    rows = result_rows.read(self.results.path)
    found = []
    for config in self._configs:
      values = config.asdict()
      name = results_file.run_name(values)
      mine = [row for row in rows if row['run'] == name]
      found.append(
        dict(
          arm=arms.of(values),
          seed=config.training.seed,
          run_by=config.run_by,
          accuracy=mine[-1]['test_accuracy'],
          unmasked=sum(row['unmasked'] for row in mine),
          rounds=len(mine),
        )
      )
    return found


def format_table(summary: Sequence[Dict[str, Any]]) -> str:
  """A table of `DeploymentSweep.summary` for people."""
  heads = ('aggregator', 'seed', 'run', 'accuracy', 'rounds unmasked')
  rows = [
    (
      s['arm'],
      s['seed'],
      s['run_by'],
      f'{100 * s["accuracy"]:.2f} %',
      f'{s["unmasked"]} of {s["rounds"]}',
    )
    for s in summary
  ]
  return tables.plain(heads, rows)


def _name(values: Mapping[str, Any]) -> str:
  return f'{arms.of(values)} seed {values["seed"]} {values["run_by"]}'


def _describe(values, row, rounds) -> str:
  """One line about a round."""
  text = f'{_name(values)} round {row["round"]}/{rounds} '
  text += f'survivors {row["survivors"]}'
  if not row['unmasked']:
    text += ', too few'
  if 'test_accuracy' in row:
    text += f' accuracy {row["test_accuracy"]:.3f}'
  return text

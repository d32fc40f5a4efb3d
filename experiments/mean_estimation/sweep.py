# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The sweep of mean estimation, which records client updates once."""

import contextlib
import dataclasses
from typing import Sequence

from experiments.common import aggregator_factories
from experiments.common import results_file
from experiments.common import sweep
from experiments.mean_estimation import estimation
from experiments.mean_estimation import settings as estimation_settings
from experiments.training import settings as training_settings
from experiments.training import trainer


class EstimationSweep(sweep.AbstractSweep):
  """Measures each of several `estimation_settings.Config`s."""

  def __init__(
    self,
    configs: Sequence[estimation_settings.Config],
    *,
    training: training_settings.Config,
    **options,
  ):
    """Initializes the sweep.

    Args:
      configs: What to run.
      training: The training run whose client updates are recorded.
      **options: Of `sweep.AbstractSweep`.
    """
    super().__init__(configs, **options)
    self._training = training
    self._runner = estimation.Runner()
    self._data = None
    self._recorded = None
    self._num_begun = 0

  def _progress(self):
    return sweep.Progress(len(self._configs), 'run', self._quiet)

  def _prepare(self):
    if any(c.vectors == estimation_settings.RECORDED for c in self._configs):
      self._data = trainer.load_data(self._training, **self._data_options)
      trainer.check(self._training, self._data)
    for config in self._configs:
      # `_run_one` says which it leaves out.
      with contextlib.suppress(aggregator_factories.TooFewBitsError):
        estimation.check(config)

  def _run_one(self, config, environment, progress):
    self._num_begun += 1
    what = (
      f'{self._num_begun}/{len(self._configs)} {config.vectors} '
      f'{config.text(1.0)}'
    )
    progress.say(what)
    try:
      self._measure(config, environment)
    except aggregator_factories.TooFewBitsError as e:
      progress.say(f'{what} skipped: {e}')
    progress.advance()

  def _position(self):
    return f'What was finished is in {self.results.path}.'

  def _measure(self, config, environment):
    recorded = config.vectors == estimation_settings.RECORDED
    settings = dataclasses.asdict(config)
    if recorded:
      settings['training'] = self._training.asdict()
    name = results_file.run_name(
      {**settings, 'dataset': config.vectors, 'aggregator': config.text(1.0)}
    )
    if self.results.rounds(name)[-1:] == [config.num_rounds]:
      return
    estimation.check(config)  # Before it is described.
    # There are no checkpoints here: a run takes seconds.
    self.results.drop_rounds_after(name, 0)
    self.results.begin(name, settings, environment)
    vectors = (
      self._record()
      if recorded
      else estimation_settings.synthetic_vectors(config)
    )
    for row in self._runner.run(config, vectors[: config.num_rounds]):
      self.results.append({'kind': 'round', 'run': name, **row})

  def _record(self):
    if self._recorded is None:
      self._recorded = estimation.record_updates(self._training, self._data)
    return self._recorded

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains by rounds under masks, or by the simulation: `run(config)` -> rows."""

import time
from typing import Any, Callable, Dict, Iterator, Set

from experiments.common import datasets
from experiments.common import seeds
from experiments.deployment import deployed_rounds
from experiments.deployment import form as deployed_form
from experiments.deployment import masked_sums
from experiments.deployment import plain_graph
from experiments.deployment import settings
from experiments.training import trainer
import tff_autotune_secagg as autotune

Row = Dict[str, Any]


def sample_dropped(config: settings.Config, round_num: int) -> Set[int]:
  """Which clients of a round vanish, counted from 0."""
  num_clients = config.training.clients_per_round
  rng = seeds.generator(config.training.seed, seeds.Stream.DROPOUT, round_num)
  vanishes = rng.random(num_clients) < config.dropout
  return {index for index in range(num_clients) if vanishes[index]}


class _Masked:
  """Rounds of a form."""

  def __init__(self, config, learner, on_form):
    self._config = config
    form = deployed_form.Form(learner.process)
    on_form(form)
    self._runtime = deployed_rounds.Runtime(form)
    self._form = form
    self._state = self._runtime.initialize()

  def next(self, clients, dropped):
    """Runs a round; the metrics, or None if it could not be unmasked."""
    try:
      outcome = self._runtime.run_round(
        self._state,
        [
          () if index in dropped else (plain_graph.serialize_dataset(client),)
          for index, client in enumerate(clients)
        ],
        threshold=self._config.threshold,
        dropped=dropped,
      )
    except masked_sums.BelowThresholdError:
      return None
    self._state = outcome.state
    return outcome.output

  def trainable_weights(self):
    state = self._form.nest_state(self._state)
    return state['global_model_weights']['trainable']


class _Simulated:
  """The same rounds in TFF's context."""

  def __init__(self, config, learner, on_form):
    del on_form  # There is none.
    self._config = config
    self._process = learner.process
    self._state = learner.process.initialize()

  def next(self, clients, dropped):
    """As of `_Masked`."""
    alive = [c for index, c in enumerate(clients) if index not in dropped]
    if len(alive) < self._config.threshold:
      return None
    output = self._process.next(self._state, alive)
    self._state = output.state
    return output.metrics

  def trainable_weights(self):
    return self._process.get_model_weights(self._state).trainable


_RUNNERS = {settings.MASKED: _Masked, settings.SIMULATED: _Simulated}


def run(
  config: settings.Config,
  data: datasets.ImageData,
  on_form: Callable[[deployed_form.Form], None] = lambda form: None,
) -> Iterator[Row]:
  """Trains and yields one row for each round.

  Args:
    config: The settings.
    data: The data set that `trainer.load_data(config.training)` returns.
    on_form: Called with the form once it is compiled, where there is one.

  Yields:
    The rows of `trainer.run` with `survivors` and `unmasked`, whether they were
    enough. If not, the model is what it was, and nothing is said of training.
  """
  training = config.training
  metrics_aggregator = autotune.drop_metrics if config.drop_metrics else None
  learner = trainer.Trainer(training, data, metrics_aggregator)
  runner = _RUNNERS[config.run_by](config, learner, on_form)
  for round_num in range(1, training.num_rounds + 1):
    start = time.monotonic()
    dropped = sample_dropped(config, round_num)
    metrics = runner.next(learner.client_data(round_num), dropped)
    row = {'round': round_num}
    if metrics is not None:
      row = learner.row(round_num, metrics)
    row['survivors'] = training.clients_per_round - len(dropped)
    row['unmasked'] = metrics is not None
    if round_num % training.eval_every == 0 or round_num == training.num_rounds:
      row.update(learner.evaluate_weights(runner.trainable_weights()))
    row['wall_seconds'] = round(time.monotonic() - start, 3)
    yield row

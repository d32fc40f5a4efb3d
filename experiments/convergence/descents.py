# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs descents, and leaves out those of which all rows are there."""

import dataclasses
from typing import Any, Callable, Mapping, Sequence

from experiments.common import aggregator_factories
from experiments.common import command_line
from experiments.common import results_file
from experiments.convergence import descent
from experiments.convergence import settings


def run_all(
  configs: Sequence[settings.Config],
  file: results_file.ResultsFile,
  data_options: Mapping[str, Any],
  say: Callable[[str], None],
) -> None:
  """Runs what is missing.

  Args:
    configs: What to run; those of one seed and their problem follow each other.
    file: Of the rows.
    data_options: Of `descent.load`.
    say: Is told of each run in a line.

  Raises:
    UserError: A setting does not fit the data, or there is nothing to run.
  """
  if not configs:
    raise command_line.UserError(
      'Every list of what is to be run must have an entry, found an empty one: '
      'give each of --seeds and --aggregator a value or leave it out.'
    )
  known = problem = None
  for config in configs:
    values = dataclasses.asdict(config)
    name = results_file.run_name(values)
    if file.rounds(name)[-1:] == [config.num_rounds]:
      continue
    # The same problem for all aggregators.
    key = dataclasses.replace(config, aggregator='plain_mean')
    with command_line.user_errors():
      if key != known:
        known, problem = key, descent.load(config, **data_options)
      what = f'{config.aggregator} seed {config.seed}'
      try:
        mean = descent.build(config, problem)
      except aggregator_factories.TooFewBitsError as e:
        say(f'{what} skipped: {e}')
        continue
    *_, last = file.store(name, values, descent.run(config, problem, mean))
    say(f'{what}: excess loss {last["excess_loss"]:.2g} at the end')

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""A training that keeps all it needs in one folder, and continues from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
import os
from typing import Any, Union

import tensorflow_federated as tff

from tff_autotune_secagg import _checks
from tff_autotune_secagg.programs import cohort_source
from tff_autotune_secagg.programs import event_loop
from tff_autotune_secagg.programs import running
from tff_autotune_secagg.programs import training_folder


def train_in_folder(
  process: tff.learning.templates.LearningProcess,
  client_data: Callable[[int], Sequence[Any]],
  folder: Union[str, os.PathLike[str]],
  *,
  num_rounds: int,
  on_ready: Callable[[int], None] = lambda round_num: None,
  on_round: Callable[[int, Mapping[str, Any]], None] = lambda *_: None,
) -> None:
  """Trains by `tff.learning.programs.train_model`, and keeps all in a folder.

  `folder` gets a row of metrics for each round (`metrics.csv`), after it a
  checkpoint (`states/`, the last five are kept), and in the end the model:
  `tf.saved_model.load(folder + '/model')()` returns its weights as lists of
  tensors, `trainable` and `non_trainable`. The same call continues a training
  that ended early, by Ctrl-C or otherwise, with no row lost or doubled. The
  context that `set_local_context` or `set_remote_context` sets computes it. It
  trains in a notebook, too, where an event loop runs already.

  Args:
    process: such as `tff.learning.algorithms.build_weighted_fed_avg` returns.
    client_data: takes the number of a round, from 1, and returns a list (or
      another sequence) with the dataset of each of its clients; the same in
      every call, so that a training that continues sees the clients that an
      undisturbed one sees.
    folder: path; made where it is not there. One run at a time may have it.
    num_rounds: how many rounds there are in all, with those of earlier calls.
    on_ready: called once, before the first round, with the number of rounds
      that are done already.
    on_round: called after each round with its number and its metrics. If it
      calls `sys.exit`, the training ends with this round: its row and its state
      are written. If it raises an error, they are not.

  Raises:
    TypeError: an argument is of the wrong kind, or what `client_data` returns;
      or the calling thread has no context.
    ValueError: `num_rounds` is not positive; TensorFlow cannot read from a
      folder of this name; `metrics.csv` is no table of rounds; or the states in
      `folder` are of another model, aggregator or modulus, or none of them can
      be read.
    OSError: `folder` cannot be written to, in any round, or another run has it.
    KeyboardInterrupt: Ctrl-C has ended it. What was being written is written.
    SystemExit: one of the functions has ended it, such as by `sys.exit`. The
      same holds.
    Exception: what `client_data`, `on_ready` or `on_round` raised.
  """
  _checks.check_instance(
    'process',
    process,
    tff.learning.templates.LearningProcess,
    'a `tff.learning.templates.LearningProcess`',
  )
  num_rounds = _checks.check_int('num_rounds', num_rounds, minimum=1)
  for name, value in (('on_ready', on_ready), ('on_round', on_round)):
    _checks.check_instance(name, value, Callable, 'a function')
  folder = _checks.check_folder('folder', folder)
  running.sync_context()  # Raises before anything is written.
  source = cohort_source.CohortSource(
    client_data, process.next.type_signature.parameter[1]
  )
  with training_folder.held(folder):
    reports = training_folder.Reports(folder, on_round)
    states = training_folder.States(folder, reports)
    initial = process.initialize()
    event_loop.run(
      states.load_latest(
        tff.learning.programs.ProgramState(initial, 0, 0, source.iterator())
      )
    )
    on_ready(states.rounds_done)
    running.run_program(
      tff.learning.programs.train_model(
        train_process=process,
        initial_train_state=initial,
        train_data_source=source,
        train_per_round_clients=1,  # Unused: `client_data` knows how many.
        train_total_rounds=num_rounds,
        program_state_manager=states,
        model_output_manager=training_folder.NoModels(),
        train_metrics_manager=reports,
        evaluation_manager=None,
        evaluation_periodicity=num_rounds,
      )
    )
    weights = process.get_model_weights(states.latest.state)
    training_folder.write_model(folder, weights)

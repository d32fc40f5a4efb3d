# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the soak: its script, its checks and a short run."""

import dataclasses
import os
from unittest import mock

from absl.testing import absltest
import numpy as np
import pytest
import tensorflow_federated as tff

from experiments.common import checkpoints
from experiments.common import command_line
from experiments.common import results_file
from experiments.soak import script
from experiments.soak import soak
from tests import factory_conformance

setUpModule = factory_conformance.set_up_context


class ScriptTest(absltest.TestCase):
  def test_repeats_and_holds_every_fault(self):
    config = script.Config(num_rounds=3000)
    steps = list(script.steps(config))
    self.assertEqual(steps, list(script.steps(config)))
    faults = {step.fault for step in steps} - {None}
    self.assertContainsSubset(script.FAULTS, faults)
    self.assertContainsSubset(('no_clients', 'equal_clients'), faults)
    for step in steps:
      self.assertBetween(step.num_bad, 0, step.num_clients)
    scales = [step.scale for step in steps]
    self.assertGreater(max(scales) / min(scales), 1e6)
    # A thousandfold at once, and no more.
    jumps = np.abs(np.diff(np.log10(scales)))
    self.assertBetween(jumps.max(), 2, 3)


class CheckerTest(absltest.TestCase):
  """The negative controls: a wrong round is found."""

  def _violations(self, change):
    config = script.Config(dim=1024)
    checker = soak._Checker(config)
    for number in (1, 2, 3):
      step = script.Step(number, 1.0, 3, None, 0)
      values, weights = script.clients(config, step)
      truth = soak._Truth(values, weights, config.dim)
      measurements = dict(
        rejected_clients=0,
        weight_sum=truth.weight_sum,
        value=dict(
          num_clients=3,
          calibrating=False,
          blind=False,
          bin_size=truth.stddev * 8 / 256,
          predicted_nmse=1e-3,
        ),
      )
      result = truth.sum / truth.weight_sum
      result, state = change(result, measurements, (number, 1.0))
      checker.check(
        step,
        truth,
        tff.templates.MeasuredProcessOutput(None, result, measurements),
        state,
      )
    return {violation['claim'] for violation in checker.violations}

  def test_right_rounds_pass(self):
    self.assertEmpty(self._violations(lambda r, m, s: (r, s)))

  def test_wrong_rounds_are_found(self):
    def set_to(name, value, **inner):
      def change(result, measurements, state):
        if name:
          measurements[name] = value
        measurements['value'].update(inner)
        return result, state

      return change

    cases = {
      'error within its bound': lambda r, m, s: (2 * r, s),
      'result finite': lambda r, m, s: (r * np.nan, s),
      'round counter advances': lambda r, m, s: (r, (s[0] - 1, 1.0)),
      'bin size finite and positive': lambda r, m, s: (r, (s[0], 0.0)),
      'rejected clients counted': set_to('rejected_clients', 1),
      'weights summed': set_to('weight_sum', 1.0),
      'contributing clients counted': set_to(None, None, num_clients=2),
      'recovered in two rounds': set_to(None, None, blind=True),
    }
    for claim, change in cases.items():
      with self.subTest(claim):
        self.assertIn(claim, self._violations(change))


class RunToFileTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._config = script.Config(num_rounds=20, block=20)
    path = os.path.join(self.create_tempdir().full_path, 'soak.jsonl')
    self._file = results_file.ResultsFile(path)
    state_manager = mock.create_autospec(tff.program.FileProgramStateManager)
    self.enter_context(
      mock.patch.object(checkpoints, 'open_folder', return_value=state_manager)
    )
    self._last_version = self.enter_context(
      mock.patch.object(checkpoints, 'last_version', return_value=0)
    )
    self._run = self.enter_context(
      mock.patch.object(soak, 'run', return_value=iter([dict(round=20)]))
    )

  def test_a_finished_soak_stays_as_it_is(self):
    self.assertLen(list(soak.run_to_file(self._config, self._file)), 1)
    rows = self._file.rows()
    self.assertEmpty(list(soak.run_to_file(self._config, self._file)))
    self.assertEqual(self._file.rows(), rows)
    self._run.assert_called_once()

  def test_a_state_without_the_rows_before_it_is_refused(self):
    self._last_version.return_value = 10
    with self.assertRaisesRegex(
      command_line.UserError,
      'must have the rows before the state in .*0',
    ):
      list(soak.run_to_file(self._config, self._file))
    self.assertEmpty(self._file.rows())


@pytest.mark.slow
class RunTest(absltest.TestCase):
  def test_a_short_soak_has_no_violations_and_resumes(self):
    config = script.Config(num_rounds=20, block=20, dither=True)
    folder = self.create_tempdir().full_path
    manager = tff.program.FileProgramStateManager(
      folder, keep_total=1, keep_first=False
    )
    rows = list(soak.run(config, state_manager=manager))
    config = dataclasses.replace(config, num_rounds=40)
    rows += soak.run(config, state_manager=manager)
    self.assertEqual([row['round'] for row in rows], [20, 40])
    for row in rows:
      self.assertEqual(row['violations'], [])
      self.assertGreater(row['worker_mib'], 0)
    summary = soak.summarize(rows)
    self.assertEqual(summary['rounds'], 40)
    self.assertEqual(summary['violations'], 0)


if __name__ == '__main__':
  absltest.main()

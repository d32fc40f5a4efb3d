# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Flag files describe runs, and committed results are what they describe."""

import glob
import os
import re

from absl.testing import absltest
from absl.testing import parameterized

import experiments
from experiments.common import aggregator_factories
from experiments.common import aggregators
from experiments.common import result_rows
from experiments.common import results_file
from experiments.mean_estimation import flags as estimation_flags
from experiments.mean_estimation import settings as estimation_settings
from experiments.training import flags as training_flags
from experiments.training import settings as training_settings
from experiments.training import sweep_flags
from tests import binary_runner

del sweep_flags  # Imported for its flags.

_ROOT = os.path.dirname(os.path.dirname(experiments.__file__))


def _find(pattern):
  """Paths from the root that match, sorted."""
  found = glob.glob(os.path.join(_ROOT, 'experiments', pattern))
  return sorted(os.path.relpath(path, _ROOT) for path in found)


_TRAINING = _find('training/configs/*.flags')
_ESTIMATION = _find('mean_estimation/configs/*.flags')
_RESULTS = _find('*/results/*.jsonl')


def _results_of(flag_file):
  path = flag_file.replace('/configs/', '/results/')
  return path.replace('.flags', '.jsonl')


def _flags_of(flag_file):
  path = os.path.join(_ROOT, flag_file)
  return binary_runner.parsed_flags(f'--flagfile={path}')


def _configs(flag_file):
  with _flags_of(flag_file):
    if flag_file in _TRAINING:
      return training_flags.configs()
    return estimation_flags.configs()


def _refuses(config) -> bool:
  """Whether the bits of a run cannot carry its clients."""
  try:
    aggregator_factories.build(
      config.text(1.0),
      aggregator_factories.Round(config.num_clients, (config.dim,), 1),
    )
  except aggregator_factories.TooFewBitsError:
    return True
  return False


class FlagFilesTest(parameterized.TestCase):
  def test_finds_the_files(self):
    names = {os.path.basename(path) for path in _TRAINING}
    self.assertContainsSubset(
      {'demo.flags', 'cifar_alpha.flags', 'fashion_iid.flags'}, names
    )
    self.assertNotEmpty(_ESTIMATION)
    self.assertGreater(len(_RESULTS), 10)

  @parameterized.parameters(*_ESTIMATION)
  def test_estimation_flag_file_describes_runs(self, path):
    configs = _configs(path)
    with _flags_of(path):
      recorded = estimation_flags.recording_config()
    self.assertLen(set(configs), len(configs))
    self.assertNotEmpty(configs)
    for config in configs:
      self.assertGreater(config.num_rounds, config.settling_rounds)
      self.assertGreaterEqual(recorded.num_rounds, config.num_rounds)

  @parameterized.parameters(*_TRAINING)
  def test_training_flag_file_describes_buildable_runs(self, path):
    configs = _configs(path)
    self.assertLen(set(configs), len(configs))
    for config in configs:
      scheme = aggregators.parse(config.aggregator)
      # The others refuse no setting that parsing lets pass.
      if scheme.name == 'fixed_range':
        aggregator_factories.build(
          config.aggregator,
          aggregator_factories.Round(
            config.clients_per_round, (300, 20), seed=1
          ),
        )


class ResultsTest(parameterized.TestCase):
  @parameterized.parameters(
    *(p for p in _TRAINING + _ESTIMATION if _results_of(p) in _RESULTS)
  )
  def test_are_the_whole_of_their_flag_file(self, path):
    """Every run that the flags describe, every round of it once, no other."""
    wanted = set(_configs(path))
    found = {}
    for row in result_rows.read(os.path.join(_ROOT, _results_of(path))):
      config = dict(row['config'])
      # The recorded training is a config of its own, and still a valid one.
      training = config.pop('training', None)
      if training is not None:
        training_settings.Config(**training)
      kind = (
        training_settings.Config
        if path in _TRAINING
        else estimation_settings.Config
      )
      found.setdefault(kind(**config), []).append(row['round'])
    self.assertContainsSubset(set(found), wanted)
    for config in wanted - set(found):
      # Some bits cannot carry the clients; a sweep says so and goes on.
      self.assertTrue(_refuses(config), config)
    for config, numbers in found.items():
      self.assertEqual(numbers, list(range(1, config.num_rounds + 1)))

  @parameterized.parameters(*_RESULTS)
  def test_name_the_commit_that_made_them(self, path):
    rows = results_file.ResultsFile(os.path.join(_ROOT, path)).rows()
    runs = [row for row in rows if row['kind'] == 'run']
    self.assertNotEmpty(runs, path)
    for run in runs:
      self.assertIsNone(_fault(run), f'{path}: {run["run"]}')
    names = {run['run'] for run in runs}
    self.assertContainsSubset({row['run'] for row in rows}, names)

  @parameterized.parameters(
    (dict(environment=dict(commit='a1' * 20 + ' with local changes')),),
    (dict(environment=dict(commit='unknown')),),
    (dict(environment={}),),
    ({},),
  )
  def test_rows_that_name_no_commit_are_found(self, run):
    self.assertIsNotNone(_fault(run))
    self.assertIsNone(_fault(dict(environment=dict(commit='a1' * 20))))


def _fault(run):
  """What is wrong with the commit of a row that describes a run, or None."""
  commit = run.get('environment', {}).get('commit', 'no commit')
  return None if re.fullmatch('[0-9a-f]{40}', commit) else commit


if __name__ == '__main__':
  absltest.main()

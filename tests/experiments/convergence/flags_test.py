# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Flag files describe descents, and committed rows are what they describe."""

import glob
import os

from absl.testing import absltest
from absl.testing import parameterized

from experiments.common import aggregators
from experiments.common import result_rows
from experiments.convergence import flags as descent_flags
from experiments.convergence import settings
from tests import binary_runner

_FOLDER = os.path.dirname(settings.__file__)
_FLAG_FILES = sorted(
  os.path.basename(path)
  for path in glob.glob(os.path.join(_FOLDER, 'configs', '*.flags'))
)


def _configs(name):
  path = os.path.join(_FOLDER, 'configs', name)
  with binary_runner.parsed_flags(f'--flagfile={path}'):
    return descent_flags.configs()


def _results_of(name):
  stem = os.path.splitext(name)[0]
  return os.path.join(_FOLDER, 'results', f'{stem}.jsonl')


class FlagFilesTest(parameterized.TestCase):
  def test_finds_the_files(self):
    self.assertContainsSubset(
      ['digits_10.flags', 'fashion_100.flags'], _FLAG_FILES
    )

  @parameterized.parameters(*_FLAG_FILES)
  def test_describe_one_comparison(self, name):
    configs = _configs(name)
    self.assertLen(set(configs), len(configs))
    self.assertEqual({config.seed for config in configs}, {1, 2, 3, 4, 5})
    for config in configs:
      self.assertFalse(config.smoke)
      # Nobody's norms are clipped where others' are not.
      scheme = aggregators.parse(config.text(1.0))
      if config.aggregator not in (
        'autotuned:modulus=256',
        'secure_aggregator',
      ):
        self.assertFalse(scheme.settings.get('clipping'))

  @parameterized.parameters(
    *((name,) for name in _FLAG_FILES if os.path.exists(_results_of(name)))
  )
  def test_rows_are_the_whole_of_their_flag_file(self, name):
    found = {}
    for row in result_rows.read(_results_of(name)):
      config = settings.Config(**row['config'])
      found.setdefault(config, []).append(row['round'])
    self.assertEqual(set(found), set(_configs(name)))
    for config, rounds in found.items():
      wanted = range(0, config.num_rounds + 1, config.eval_every)
      self.assertEqual(rounds, [1, *wanted[1:]])


if __name__ == '__main__':
  absltest.main()

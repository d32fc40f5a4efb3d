# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Who imports whom: experiments stand alone, and examples stand alone."""

import ast
import os

from absl.testing import absltest
from absl.testing import parameterized

import experiments

_ROOT = os.path.dirname(os.path.dirname(experiments.__file__))
_SHARED = 'common'
# All that an experiment may take from another: the trainer and its settings,
# whose updates are recorded in one, whose rounds are timed in another and run
# under masks in a third, which has its flags too.
_ALLOWED = {
  ('deployment', 'experiments.training.flags'),
  ('deployment', 'experiments.training.settings'),
  ('deployment', 'experiments.training.threads'),
  ('deployment', 'experiments.training.trainer'),
  ('mean_estimation', 'experiments.training.settings'),
  ('mean_estimation', 'experiments.training.trainer'),
  ('scaling', 'experiments.training.settings'),
  ('scaling', 'experiments.training.trainer'),
}


def _sources(folder):
  for where, _, names in os.walk(os.path.join(_ROOT, folder)):
    for name in sorted(names):
      if name.endswith('.py'):
        yield os.path.relpath(os.path.join(where, name), _ROOT)


def _imports(text):
  """Full names of all that a source imports, wherever the statement stands."""
  names = set()
  for node in ast.walk(ast.parse(text)):
    if isinstance(node, ast.Import):
      names.update(alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
      module = '.' * node.level + (node.module or '')
      names.update(f'{module}.{alias.name}' for alias in node.names)
  return names


def _wrong_imports(path, text):
  """The imports of a source that the rules forbid."""
  parts = path.split(os.sep)
  wrong = []
  for name in sorted(_imports(text)):
    target = name.split('.')
    if target[0] in ('tests', 'tools', '') or target[0] == 'examples':
      wrong.append(name)
    elif target[0] == 'experiments':
      own = parts[0] == 'experiments' and len(parts) > 2 and parts[1]
      allowed = own and (
        target[1:2] in ([_SHARED], [own]) or (own, name) in _ALLOWED
      )
      if not allowed:
        wrong.append(name)
  return wrong


class ImportsTest(parameterized.TestCase):
  def test_finds_the_sources(self):
    self.assertGreater(len(list(_sources('experiments'))), 40)
    self.assertIn('examples/program_train.py', list(_sources('examples')))

  @parameterized.parameters(*_sources('experiments'), *_sources('examples'))
  def test_are_allowed(self, path):
    with open(os.path.join(_ROOT, path)) as f:
      self.assertEmpty(_wrong_imports(path, f.read()))

  @parameterized.parameters(
    ('experiments/common/sweep.py', 'from experiments.training import trainer'),
    ('experiments/soak/run.py', 'import experiments.training.trainer'),
    ('experiments/soak/run.py', 'def f():\n  from ..training import sweep'),
    ('experiments/scaling/run.py', 'from experiments.training import sweep'),
    ('experiments/training/run.py', 'from tests import reference'),
    ('examples/a.py', 'from experiments.common import quiet'),
    ('examples/a.py', 'import experiments'),
  )
  def test_others_are_found(self, path, text):
    self.assertNotEmpty(_wrong_imports(path, text))

  @parameterized.parameters(
    ('experiments/scaling/run.py', 'from experiments.training import trainer'),
    ('experiments/soak/run.py', 'from experiments.soak import soak'),
    ('experiments/soak/run.py', 'from experiments.common import quiet'),
    ('examples/a.py', 'import tff_autotune_secagg as autotune'),
  )
  def test_right_ones_pass(self, path, text):
    self.assertEmpty(_wrong_imports(path, text))


if __name__ == '__main__':
  absltest.main()

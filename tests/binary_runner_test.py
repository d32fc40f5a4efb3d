# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import sys

from absl import flags
from absl.testing import absltest

from experiments.training import run as run_training
from tests import binary_runner

# Its `--num_rounds` is not that of the binaries below. One process collects all
# tests: only binaries whose flags go together may be loaded.
del run_training


def _ours():
  return {k: v for k, v in sys.modules.items() if k.startswith('experiments')}


class RunAsMainTest(absltest.TestCase):
  def test_binaries_see_their_own_flags_and_leave_nothing(self):
    loaded, names, given = _ours(), list(flags.FLAGS), sys.argv
    default = flags.FLAGS.num_rounds
    for module, arguments, said in (
      ('soak.run', ['--num_rounds=x'], 'num_rounds'),
      ('protocol_cost.run', ['--results=a,b'], 'must be one file'),
      ('scaling.run', ['--num_rounds=2'], 'num_rounds'),
      ('scaling.run', ['--server_momentum=2'], 'Unknown command line flag'),
    ):
      found = binary_runner.run_as_main(f'experiments.{module}', *arguments)
      self.assertEqual(found.status, 1)
      self.assertEqual(found.stdout, '')
      self.assertIn(said, found.stderr)
      self.assertEqual(found.stderr.count('\n'), 1)
    self.assertEqual(_ours(), loaded)
    self.assertEqual(list(flags.FLAGS), names)
    self.assertEqual(flags.FLAGS.num_rounds, default)
    self.assertIs(sys.argv, given)


if __name__ == '__main__':
  absltest.main()

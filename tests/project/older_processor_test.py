# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `tools/older_processor.sh`."""

import pathlib
import subprocess
import sys

from absl.testing import absltest

_TOOL = pathlib.Path(__file__).parents[2] / 'tools' / 'older_processor.sh'

# The C library's digits show whether the dynamic loader has read the tunables.
_CODE = """
import math, random, sys
from numpy.core._multiarray_umath import __cpu_features__ as features

draw = random.Random(1)
digits = sum(hash(math.exp(draw.uniform(0, 50))) % 1009 for _ in range(10_000))
print(features['AVX2'], features['FMA3'], features['AVX512F'], digits)
sys.exit(3)
"""


def _run(*command):
  return subprocess.run(
    command, stdin=subprocess.DEVNULL, capture_output=True, text=True
  )


class OlderProcessorTest(absltest.TestCase):
  def test_numpy_and_the_c_library_take_other_code(self):
    here = _run(sys.executable, '-c', _CODE)
    older = _run('sh', _TOOL, sys.executable, '-W', 'error', '-c', _CODE)
    for process in (here, older):
      self.assertEqual((process.returncode, process.stderr), (3, ''))
    avx2, fma, _, digits = here.stdout.split()
    *features, older_digits = older.stdout.split()
    self.assertEqual(features, ['False'] * 3)
    if avx2 == fma == 'True':  # Otherwise this processor is an older one.
      self.assertNotEqual(digits, older_digits)

  def test_a_command_is_needed(self):
    process = _run('sh', _TOOL)
    self.assertEqual(process.returncode, 2)
    self.assertIn('COMMAND', process.stderr)


if __name__ == '__main__':
  absltest.main()

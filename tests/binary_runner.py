# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs binaries of `experiments` inside the test's process."""

from absl import flags
from absl.testing import flagsaver

from experiments.common import flag_groups


def run_main(module, *arguments: str) -> int:
  """Runs a binary's main with these flags and the defaults of all others.

  Args:
    module: The binary's module, whose flags are of `flag_groups`.
    *arguments: Its command line.

  Returns:
    Its exit status.
  """
  with flagsaver.flagsaver():
    for name in flags.FLAGS:
      flags.FLAGS[name].unparse()
    flags.FLAGS.unparse_flags()
    flag_groups.parse(['binary', *arguments])
    try:
      module.main(['binary'])
    except SystemExit as e:
      return e.code
  return 0

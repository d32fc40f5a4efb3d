# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs binaries of `experiments` inside the test's process."""

import contextlib

from absl import flags
from absl.testing import flagsaver

from experiments.common import command_line


@contextlib.contextmanager
def parsed_flags(*arguments: str):
  """Within it, flags are those of a command line and else the defaults.

  Args:
    *arguments: The command line.

  Yields:
    The program alone.
  """
  with flagsaver.flagsaver():
    for name in flags.FLAGS:
      flags.FLAGS[name].unparse()
    flags.FLAGS.unparse_flags()
    try:
      yield command_line.parse(['binary', *arguments])
    finally:
      # Also where an argument was refused: tests read flags of their own.
      flags.FLAGS.mark_as_parsed()


def run_main(module, *arguments: str) -> int:
  """Runs a binary's main with these flags and the defaults of all others.

  Args:
    module: The binary's module.
    *arguments: Its command line.

  Returns:
    Its exit status.
  """
  with parsed_flags(*arguments):
    return module.main() or 0

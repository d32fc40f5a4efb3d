# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""How the commands of this package read their flags."""

from collections.abc import Callable, Sequence
import sys

from absl import app
from absl import flags


def run(main: Callable[[Sequence[str]], None], names: Sequence[str]) -> None:
  """Runs a command: what is wrong with its flags is one line and status 1.

  Args:
    main: takes the arguments that are no flags, the program first.
    names: of its flags, which `--help` lists.
  """
  for name in names:
    # Absl lists those of the program's own module, and pip's commands have
    # another one than `python -m`.
    flags.FLAGS.register_key_flag_for_module(sys.argv[0], flags.FLAGS[name])
  app.run(main, flags_parser=_parse)


def _parse(argv: Sequence[str]) -> list[str]:
  try:
    return flags.FLAGS(argv)
  except flags.Error as error:
    print(error, file=sys.stderr)
    sys.exit(1)
  except SystemExit:
    sys.exit(0)  # Only `--help` ends so, which absl counts as a failure.

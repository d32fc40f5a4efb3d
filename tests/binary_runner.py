# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs binaries inside the test's process.

A process of its own takes seconds for each, in which it loads TensorFlow.
"""

import contextlib
import copy
import io
import logging
import runpy
import sys
from typing import NamedTuple
from unittest import mock

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


class Output(NamedTuple):
  status: int
  stdout: str
  stderr: str


def run_as_main(module: str, *arguments: str) -> Output:
  """Runs `python -m module arguments` in this process, as if it were a new one.

  All modules of `experiments` are loaded anew, so that flags of other binaries
  are not there; what the binary and its flags leave behind is taken back.

  Args:
    module: The full name of the binary's module.
    *arguments: Its command line.

  Returns:
    Its exit status, and what it wrote to the standard streams in Python.

  Raises:
    Exception: What a process would have shown a traceback of.
  """
  stdout, stderr = io.StringIO(), io.StringIO()
  with contextlib.ExitStack() as stack:
    stack.enter_context(_not_loaded(module))
    stack.enter_context(mock.patch.object(sys, 'argv', [module, *arguments]))
    stack.enter_context(contextlib.redirect_stdout(stdout))
    stack.enter_context(contextlib.redirect_stderr(stderr))
    try:
      runpy.run_module(module, run_name='__main__', alter_sys=True)
      status = 0
    except SystemExit as e:
      status = e.code or 0
  return Output(status, stdout.getvalue(), stderr.getvalue())


@contextlib.contextmanager
def _not_loaded(module):
  """Within it, `module` and `experiments` are not loaded, nor flags there."""
  loaded = _pop(module)
  handlers = list(logging.root.handlers)
  with flagsaver.flagsaver():
    # What an `absl.flags.FlagValues` knows is in dictionaries, some of lists.
    known = {key: _copy(value) for key, value in vars(flags.FLAGS).items()}
    for name, defined in flags.FLAGS.flags_by_module_dict().items():
      if name.partition('.')[0] == 'experiments':
        for flag in list(defined):
          if flag.name in flags.FLAGS:
            delattr(flags.FLAGS, flag.name)
    flags.FLAGS.unparse_flags()
    try:
      yield
    finally:
      vars(flags.FLAGS).update(known)
      logging.root.handlers[:] = handlers
      _pop(module)
      sys.modules.update(loaded)


def _pop(module):
  names = [
    name
    for name in sys.modules
    if name == module or name.partition('.')[0] == 'experiments'
  ]
  return {name: sys.modules.pop(name) for name in names}


def _copy(value):
  if isinstance(value, dict):
    return {
      key: list(member) if isinstance(member, list) else member
      for key, member in value.items()
    }
  return copy.copy(value)

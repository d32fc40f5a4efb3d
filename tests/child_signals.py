# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Signals of the processes that tests start."""

import signal
import subprocess


def popen(*arguments, **options) -> subprocess.Popen:
  """`subprocess.Popen` of a child that SIGINT ends, as on a terminal.

  A shell starts a background job with SIGINT ignored, and everything below it
  inherits that, so that a test of Ctrl-C would wait for ever. A signal that
  Python handles is one that its children do not ignore. A `preexec_fn` could do
  the same, but runs Python in a fork, where gRPC complains on stderr.
  """
  before = signal.signal(signal.SIGINT, signal.default_int_handler)
  try:
    return subprocess.Popen(*arguments, **options)
  finally:
    signal.signal(signal.SIGINT, before)

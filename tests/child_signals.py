# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Signals of the processes that tests start."""

import signal


def take_interrupts() -> None:
  """For `preexec_fn`: lets SIGINT end the child, as on a terminal.

  A shell starts a background job with SIGINT ignored, and everything below it
  inherits that, so that a test of Ctrl-C would wait for ever.
  """
  signal.signal(signal.SIGINT, signal.SIG_DFL)

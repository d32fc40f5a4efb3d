# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Silences the start-up noise of TensorFlow, TFF and gRPC."""

import logging as python_logging
import os
import warnings

from absl import logging


def silence() -> None:
  """Silences this process and its children, from here on.

  For a command to call before it loads TensorFlow: the environment is read
  while the native libraries load, and the worker process of TFF's simulation
  inherits it. Set `TF_CPP_MIN_LOG_LEVEL` yourself to hear everything again.
  """
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
  os.environ.setdefault('GRPC_VERBOSITY', 'ERROR')
  os.environ.setdefault('CUDA_VISIBLE_DEVICES', '-1')  # All is CPU work.
  # Third-party deprecations that a user of these binaries cannot act upon.
  warnings.filterwarnings('ignore', category=UserWarning, module='google.rpc')
  warnings.filterwarnings('ignore', category=DeprecationWarning)
  # Warnings stay: the loss of a worker is one.
  logging.set_verbosity(logging.WARNING)
  logging.set_stderrthreshold('warning')
  # TFF's own metrics leave assertions unused, which TensorFlow reports as
  # errors.
  python_logging.getLogger('tensorflow').setLevel(python_logging.CRITICAL)

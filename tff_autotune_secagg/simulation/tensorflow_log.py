# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What TensorFlow logs about TFF's own code, and nobody can act upon.

`TF_CPP_MIN_LOG_LEVEL=3` in the environment is the switch that silences
TensorFlow. It is read when TensorFlow is loaded, and workers inherit it; a
function of this package would come too late for either. TensorFlow obeys it in
its C++ code only. Here is the rest, which is Python's.
"""

from __future__ import annotations

import logging
import os

import tensorflow as tf


def drop_unused_assertions_if_silenced() -> None:
  """Drops them if the environment asks TensorFlow for silence."""
  if os.environ.get('TF_CPP_MIN_LOG_LEVEL') == '3':
    drop_unused_assertions()


def drop_unused_assertions() -> None:
  """Drops what TensorFlow logs about an assertion that TFF leaves unused.

  Whoever creates a secure sum with bounds (zeroing, clipping, the metrics of
  federated averaging) gets an error of twelve lines for each of them. Harmless
  if called twice.
  """
  tf.get_logger().addFilter(_is_not_unused_assertion)


def _is_not_unused_assertion(record: logging.LogRecord) -> bool:
  message = record.getMessage()
  return not (
    'Object was never used' in message and 'assert_less_equal' in message
  )

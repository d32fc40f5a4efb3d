# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a newcomer needs to hear: TFF's own default context runs no secure sum.

TFF answers a secure sum there with a gRPC error that mentions neither secure
sums nor contexts.
"""

import operator
from typing import Any

from absl import logging
import tensorflow_federated as tff

# TFF marks its default context in no way, and this path to what compiles for it
# is private. Where another version has none, nothing is said.
_get_compiler = operator.attrgetter(
  '_async_context._compiler_pipeline._compiler_fn'
)


def warn_once() -> None:
  """Logs a warning, once in a process, if TFF's own context is the current."""
  if _is_tffs_own(tff.framework.get_context_stack().current):
    logging.log_first_n(
      logging.WARNING,
      "Secure sums do not run in TFF's default context, which is the current"
      ' one. Before the first round, call'
      ' `tff_autotune_secagg.simulation.set_local_context()` (a simulation'
      ' without cryptography).',
      1,
    )


def _is_tffs_own(context: Any) -> bool:
  """Whether a context compiles as TFF's default, which keeps secure sums."""
  try:
    compiler = _get_compiler(context)
  except AttributeError:
    return False
  return compiler is tff.backends.native.desugar_and_transform_to_native

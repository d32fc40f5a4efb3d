# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The check that the environment holds the TFF that this package is for.

It reads what is installed and imports nothing, so that a wrong environment is
answered by one sentence and not by whatever fails first inside TensorFlow.
"""

from importlib import metadata

# TFF renames public functions between releases, so no range would be honest.
TFF_VERSION = '0.87.0'


def check_tff_version() -> None:
  """Checks the installed TensorFlow Federated. Call it before importing it.

  Raises:
    ImportError: The installed version is not `TFF_VERSION`, or there is none.
      The message names both.
  """
  try:
    found = metadata.version('tensorflow-federated')
  except metadata.PackageNotFoundError:
    found = 'none'
  if found != TFF_VERSION:
    # Raised outside the handler: one error, with no second one above it.
    raise ImportError(
      f'tff_autotune_secagg needs tensorflow-federated {TFF_VERSION}, found '
      f'{found}. docs/install.md of the project says how to install it.'
    )

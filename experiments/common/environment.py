# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a run was made with: versions, commit and machine."""

from importlib import metadata
import os
import platform
import subprocess
from typing import Any, Dict, List, Optional

import numpy as np

_PROJECT = os.path.realpath(os.path.join(__file__, '..', '..', '..'))
_GIT_PLACES = ('GIT_DIR', 'GIT_WORK_TREE', 'GIT_INDEX_FILE')

# They decide which code TensorFlow runs: how fast it is, and its last bits.
_PROCESSOR_FEATURES = (
  'avx',
  'avx2',
  'fma',
  'avx512f',
  'avx512_vnni',
  'amx_tile',
)


def describe() -> Dict[str, Any]:
  """Versions, commit and a description of the machine without its name."""
  # Imported here: reading results must not need TensorFlow.
  import tensorflow as tf
  import tensorflow_federated as tff

  import tff_autotune_secagg

  return {
    'package': getattr(tff_autotune_secagg, '__version__', 'unknown'),
    'tensorflow_federated': tff.__version__,
    'tensorflow': tf.__version__,
    'tensorflow_model_optimization': metadata.version(
      'tensorflow-model-optimization'
    ),
    'numpy': np.__version__,
    'python': platform.python_version(),
    'commit': _commit(),
    'machine': _machine(),
    'processor_features': _processor_features(),
    'threads_per_operation': os.environ.get('TF_NUM_INTRAOP_THREADS'),
  }


def _git(*arguments: str) -> str:
  environment = dict(os.environ)
  for name in _GIT_PLACES:  # As git sets them for its hooks.
    environment.pop(name, None)
  return subprocess.run(
    ['git', *arguments],
    cwd=_PROJECT,
    env=environment,
    capture_output=True,
    text=True,
    check=True,
    timeout=10,
  ).stdout.strip()


def _commit() -> str:
  try:
    # The files may lie in somebody else's repository, without one of their own.
    if os.path.realpath(_git('rev-parse', '--show-toplevel')) != _PROJECT:
      return 'unknown'
    commit = _git('rev-parse', 'HEAD')
    # Untracked files do not matter; changed ones do.
    changed = _git('status', '--porcelain', '--untracked-files=no')
    return commit + (' with local changes' if changed else '')
  except (OSError, subprocess.SubprocessError):
    return 'unknown'


def _cpuinfo(key: str) -> Optional[str]:
  """What Linux says about the first processor."""
  try:
    with open('/proc/cpuinfo') as f:
      for line in f:
        if line.startswith(key):
          return line.split(':', 1)[1].strip()
  except OSError:
    pass
  return None


def _processor_features() -> List[str]:
  found = (_cpuinfo('flags') or '').split()
  return [feature for feature in _PROCESSOR_FEATURES if feature in found]


def _machine() -> str:
  processor = _cpuinfo('model name') or platform.machine()
  try:
    cores = len(os.sched_getaffinity(0))
    gigabytes = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30
  except (AttributeError, OSError, ValueError):
    return processor
  return f'{processor}, {cores} cores, {gigabytes:.0f} GiB, {platform.system()}'

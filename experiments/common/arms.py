# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What tables and pictures compare: an aggregator, and how the model goes down.

For instance `autotuned:modulus=256 down=8`. Where the model goes down as
floats, the text of the aggregator is all.
"""

import collections
from typing import Any, Dict, Iterable, List, Mapping, Sequence

Row = Mapping[str, Any]

# Bits of a parameter of a model that goes down as it is.
FLOAT_BITS = 32

_DOWN = ' down='


def of(config: Mapping[str, Any]) -> str:
  """The arm of a run.

  Args:
    config: With `aggregator` and, if the model can be coded in such a run,
      `model_download_bits`.
  """
  bits = config.get('model_download_bits', FLOAT_BITS)
  down = '' if bits == FLOAT_BITS else f'{_DOWN}{bits}'
  return config['aggregator'] + down


def grouped(runs: Iterable[Sequence[Row]]) -> Dict[str, List[Sequence[Row]]]:
  """Groups runs, lists of rows, by their arms in the order of appearance."""
  found = collections.OrderedDict()
  for run in runs:
    found.setdefault(of(run[-1]['config']), []).append(run)
  return found


def aggregator(arm: str) -> str:
  """The text of an arm's aggregator."""
  return arm.partition(_DOWN)[0]


def is_coded(arm: str) -> bool:
  """Whether the model goes down coded."""
  return _DOWN in arm

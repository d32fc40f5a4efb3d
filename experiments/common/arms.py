# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What tables and pictures compare: an aggregator, and how the model goes down.

For instance `autotuned:modulus=256 down=8`. Where the model goes down as
floats, the text of the aggregator is all.
"""

from typing import Any, Mapping

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


def aggregator(arm: str) -> str:
  """The text of an arm's aggregator."""
  return arm.partition(_DOWN)[0]


def is_coded(arm: str) -> bool:
  """Whether the model goes down coded."""
  return _DOWN in arm

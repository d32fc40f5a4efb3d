# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The confidence interval that tables and figures show."""

import math
from typing import Sequence

import numpy as np
import scipy.stats

_CONFIDENCE = 0.95


def half_width(values: Sequence[float]) -> float:
  """Half width of the 95 % t-interval of the mean; 0 for one value."""
  count = len(values)
  if count < 2:
    return 0.0
  quantile = scipy.stats.t.ppf((1 + _CONFIDENCE) / 2, count - 1)
  return float(quantile * np.std(values, ddof=1) / math.sqrt(count))

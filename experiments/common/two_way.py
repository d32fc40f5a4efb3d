# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Differences between treatments that were tried in the same blocks.

Training runs with the same seed are a block: they have the same clients,
batches and initial weights. Their scatter is taken to be the same for all
aggregators and estimated from all runs at once, since a few seeds of one say
little about it. Who does not believe that takes `paired`.
"""

import dataclasses
import math
from typing import Dict, Mapping, Optional, Tuple

import numpy as np
import scipy.stats

from experiments.common import t_interval

_CONFIDENCE = 0.95


@dataclasses.dataclass(frozen=True)
class Difference:
  """A treatment minus the reference, in units of the values.

  Attributes:
    mean: Estimate.
    half_width: Of its 95 % interval; None if nothing is left over to estimate
      the scatter from.
    lower_bound: One-sided, 95 %; None like `half_width`.
  """

  mean: float
  half_width: Optional[float] = None
  lower_bound: Optional[float] = None


def differences(
  values: Mapping[Tuple[str, int], float], reference: str
) -> Dict[str, Difference]:
  """Least squares of value = treatment + block + a residual of one variance.

  Args:
    values: By treatment and block. Not every pair need be there.
    reference: A treatment, whose difference is 0.

  Returns:
    For each treatment, in order of appearance. A treatment that shares no block
    with others, directly or through further treatments, is left out.

  Reference: Scheffe (1959), The Analysis of Variance, chapter 4.
  """
  treatments = list(dict.fromkeys(name for name, _ in values))
  blocks = list(dict.fromkeys(block for _, block in values))
  design = np.array(
    [
      [name == t for t in treatments] + [block == b for b in blocks]
      for name, block in values
    ],
    dtype=float,
  )
  observed = np.array(list(values.values()))
  inverse = np.linalg.pinv(design.T @ design)
  effects = inverse @ design.T @ observed
  residuals = observed - design @ effects
  freedom = len(observed) - np.linalg.matrix_rank(design)
  found = {}
  for name in treatments:
    contrast = np.zeros(design.shape[1])
    contrast[treatments.index(name)] += 1
    contrast[treatments.index(reference)] -= 1
    # What the data determine is a combination of the rows of the design.
    if not np.allclose(inverse @ design.T @ design @ contrast, contrast):
      continue
    mean = float(contrast @ effects)
    if name == reference or not freedom:
      found[name] = Difference(mean)
      continue
    variance = residuals @ residuals / freedom
    error = math.sqrt(max(variance * (contrast @ inverse @ contrast), 0.0))
    two_sided, one_sided = scipy.stats.t.ppf(
      [(1 + _CONFIDENCE) / 2, _CONFIDENCE], freedom
    )
    found[name] = Difference(
      mean, float(two_sided * error), float(mean - one_sided * error)
    )
  return found


def paired(
  values: Mapping[Tuple[str, int], float], name: str, reference: str
) -> Optional[Difference]:
  """A treatment minus the reference by the blocks that both were tried in.

  Takes no scatter from other treatments: the half width is that of the
  t-interval of the differences block by block.

  Args:
    values: As of `differences`.
    name: A treatment.
    reference: Another one.

  Returns:
    The difference, without a lower bound; None with fewer than two such blocks,
    and for the reference itself.
  """
  found = [
    value - values[reference, block]
    for (treatment, block), value in values.items()
    if treatment == name and (reference, block) in values
  ]
  if name == reference or len(found) < 2:
    return None
  return Difference(float(np.mean(found)), t_interval.half_width(found))

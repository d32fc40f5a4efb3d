# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""When a curve that was looked at now and then first reached a target."""

from typing import Iterable, Optional, Tuple


def first_at_least(
  points: Iterable[Tuple[int, float]], target: float
) -> Optional[float]:
  """After how many rounds a value is first at least a target.

  Between two points the value is taken to be linear.

  Args:
    points: Rounds and the values after them, in the order of the rounds.
    target: In units of the values.

  Returns:
    Rounds, not rounded; those of the first point if that reaches the target;
    None if no point does.
  """
  before = None
  for number, value in points:
    if value >= target:
      if before is None:
        return float(number)
      share = (target - before[1]) / (value - before[1])
      return before[0] + share * (number - before[0])
    before = number, value
  return None

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables as text, of cells that are text already."""

from typing import Any, Sequence

import tabulate


def markdown(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
  """A table for a README."""
  return tabulate.tabulate(rows, heads, 'pipe', disable_numparse=True)


def plain(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
  """A table for a terminal: the first column to the left, all others right."""
  return tabulate.tabulate(
    rows,
    heads,
    'simple',
    disable_numparse=True,
    colalign=('left', *['right'] * (len(heads) - 1)),
  )

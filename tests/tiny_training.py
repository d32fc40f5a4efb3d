# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""A training of seconds whose rows repeat bit for bit."""

import dataclasses

from experiments.training import settings

# Dither draws nothing but from the stored seed: rows repeat bit for bit.
CONFIG = settings.Config(
  dataset='fashion_mnist',
  model='logistic',
  aggregator='autotuned:modulus=256,rounding=dither,zeroing=false,clipping=false',
  model_download_bits=8,
  smoke=True,
  **{**settings.SMOKE, 'num_rounds': 7, 'eval_every': 2},
)


def with_aggregator(text: str) -> settings.Config:
  """The same training with another aggregator."""
  return dataclasses.replace(CONFIG, aggregator=text)


def numbers(rows):
  """Rows without what differs between two runs of the same numbers."""
  dropped = ('wall_seconds', 'run', 'kind', 'config')
  return [{k: v for k, v in r.items() if k not in dropped} for r in rows]

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a `Tuner` of your own is made of; docs/own_tuner.md has a whole one.

`level` and `ladder` make the bin sizes of an ordinary and of a calibration
round, one for each of the `NUM_STRIPES` stripes. `WrappedNormalFit` is what
`Tuner.next_state` learns from.
"""

from tff_autotune_secagg.numerics.reading.fitting import WrappedNormalFit
from tff_autotune_secagg.numerics.reading.stripes import ladder
from tff_autotune_secagg.numerics.reading.stripes import level
from tff_autotune_secagg.numerics.reading.stripes import NUM_STRIPES

__all__ = ['NUM_STRIPES', 'WrappedNormalFit', 'ladder', 'level']

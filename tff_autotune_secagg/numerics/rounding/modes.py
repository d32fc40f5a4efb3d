# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The two choices of a round: how clients round, how the server decodes."""

import enum


class Rounding(enum.Enum):
  """How a client rounds to integers.

  Attributes:
    STOCHASTIC: offsets are private to each client and round, so errors of
      different clients are independent: 1/6 bin^2 each for coordinates whose
      standard deviation is a bin or more, unbiased for every coordinate.
    DITHER: subtractive dither (Roberts 1962): offsets come from the round's
      shared seed and the server subtracts them again. Errors have 1/12 bin^2
      per client, and without private randomness a run repeats bit for bit.
      Safe only where clients differ by about half a bin or more; otherwise
      their errors add coherently. The coarse bins of a calibration round are
      not safe. There each client's offsets come from the shared seed and its
      own values, and are not subtracted.
  """

  STOCHASTIC = 'stochastic'
  DITHER = 'dither'


class Decoding(enum.Enum):
  """How the server reads a residue of the sum.

  Attributes:
    UNBIASED: the mean of the true sum given its residue and the fitted normal,
      divided by the factor by which that mean is too short. Averaged over the
      rotations the result is the true sum, wherever that is possible with an
      error no larger than that of a dropped round; elsewhere it is shrunk until
      it is. The right choice for training: a shrunk sum acts as a smaller
      learning rate.
    POSTERIOR_MEAN: the same, shrunk: the least error that a single sum can
      have, and a sum that is shorter than the true one by about that error.
    CENTRED: the representative nearest to 0 times the bin size, as in the
      paper: unbiased where nothing wraps, and without a bound where the bin
      size does not fit. Calibrations, and rounds of which nothing is known, are
      decoded as UNBIASED, unless the bin size is fixed.
  """

  UNBIASED = 'unbiased'
  POSTERIOR_MEAN = 'posterior_mean'
  CENTRED = 'centred'

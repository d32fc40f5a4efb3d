# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Quantization over an unbounded range and reduction modulo k."""

from typing import Optional

import tensorflow_federated as tff

from tff_autotune_secagg import _checks
from tff_autotune_secagg.factories import chain
from tff_autotune_secagg.factories import value_types
from tff_autotune_secagg.numerics.tuning import tuners
from tff_autotune_secagg.stages import quantize


class QuantizeModFactory(chain.ChainedFactory):
  """Sums float structures as residues modulo `modulus`.

  At clients:
    Each coordinate is divided by the current bin size, rounded at random to a
    neighbouring integer and reduced to `0 .. modulus - 1`. A client with a
    coordinate that is not finite sends zeros and is counted. A client whose
    coordinates are all 0 sends zeros, too: it adds no rounding noise and no
    dither.
  At server:
    A residue of the inner sum is read as the integer nearest to 0 in its class
    and multiplied by the same bin size, or decoded in another way, see
    `Decoding`.
  Types:
    `value_type` is a structure of float16, bfloat16, float32 and float64
    tensors. The inner factory is created for int32 tensors of the same shapes
    and must return their sum modulo `modulus`. The result type equals
    `value_type`.
  State:
    `settings`, `seed` (int64 [2]) and `round` for dither, `tuner` (owned by the
    tuner, opaque here; empty for a fixed bin size) and `inner`.
  Measurements:
    `bin_size` (that of this round, or, in a calibration round, that of the
    round before; like all sizes in units of the values that are summed here,
    which are updates times weights inside a weighted mean), `calibrating`,
    `blind`, `zero_sum`, `modulus_too_small` (bools, about this round: it ran on
    the ladder, its residues looked uniform, its residues were all 0, no bin
    size serves so many clients), `sum_stddev` (fitted root mean square of a
    coordinate of the true sum), `size_forecast` (what the tuner took it for)
    and `size_uncertainty` (standard deviation of the forecast's logarithm; both
    0 without a forecast), `wrap_probability` (fitted share of wrapped
    coordinates), `predicted_nmse` (expected squared error over the squared
    norm, at most that), `num_clients` (whose update is not 0),
    `rejected_clients`, `bits_per_coordinate`, `bytes_per_client` (payload of
    the residues) and `inner`.
  Randomness:
    Stochastic rounding draws one fresh seed per client and round; leaves of a
    structure use streams of their own. Dither uses the round's seed.

  Guarantees:
    With `Decoding.CENTRED` and a fixed bin size the result has mean equal to
    the sum and variance at most `num_clients * bin_size**2 / 4` per coordinate,
    if none of the rounded sum leaves half a period. With dither clients share
    their offsets, and equal clients their errors: the variance is then at most
    `num_clients**2 * bin_size**2 / 12`. With `Decoding.UNBIASED` and
    `Decoding.POSTERIOR_MEAN` the expected squared error is at most the squared
    norm of the sum, for any clients, if coordinates are normal around 0, as
    after a rotation.
  Limits:
    A coordinate outside half a period is off by a multiple of
    `modulus * bin_size`. If a client has a coordinate of 2**30 bins or more, or
    of 2**21 periods, it is replaced by a random residue.
  Secure signals:
    Beside the residues, two counts by `tff.federated_secure_sum`: clients whose
    update is not 0, and rejected clients.

  Reference:
    Bonawitz et al. (2019, arXiv:1912.00131).
  """

  def __init__(
    self,
    inner_factory: tff.aggregators.UnweightedAggregationFactory,
    *,
    tuner: tuners.Tuner,
    seed: Optional[int] = None,
  ):
    """Initializes the factory.

    Args:
      inner_factory: sums int32 structures modulo the tuner's `modulus`, such as
        `ExactModularSumFactory`.
      tuner: modulus, rounding and decoding, and the bin size of each round:
        `WrappedNormalTuner`, `FixedBinSize` or a tuner of your own.
      seed: of the dither; int of 0 .. 2**63 - 1, or None to draw one in every
        `initialize`. A saved state brings its own, which wins.

    Raises:
      TypeError, ValueError: an argument is of the wrong kind or out of range.
    """
    inner_factory = value_types.check_sum_factory(
      'inner_factory', inner_factory
    )
    _checks.check_instance('tuner', tuner, tuners.Tuner, 'a `Tuner`')
    if not hasattr(tuner, 'modulus'):
      raise _checks.type_error(
        'tuner',
        'a `Tuner` whose constructor calls `super().__init__(modulus=...)`',
        f'`{type(tuner).__name__}`, which does not',
      )
    options = dict(
      tuner=tuner,
      seed=_checks.check_seed(seed),
    )
    super().__init__([(quantize.QuantizeStage, options)], inner_factory)

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Builds the aggregators that the texts of `aggregators` name.

Each states what it sends: bits for each model coordinate and bytes for each
client and round. These count the payload of the update itself, padding
included, and neither masks nor keys nor the few scalars (weights, norms,
counts) that most schemes send beside it.
"""

import dataclasses
import math
from typing import Any, Callable, Dict, Tuple

import tensorflow_federated as tff

from experiments.common import aggregators
from experiments.common.baselines import clipped_mean
from experiments.common.baselines import fixed_range
from experiments.common.baselines import kashin
from experiments.common.baselines import levels
from experiments.common.baselines import local_quantization
import tff_autotune_secagg as autotune
from tff_autotune_secagg.factories import chain
from tff_autotune_secagg.factories import norm_limits
from tff_autotune_secagg.numerics.privacy import clip_bit
from tff_autotune_secagg.numerics.rotation import block_sample
from tff_autotune_secagg.numerics.rounding import quantization
from tff_autotune_secagg.stages import clip
from tff_autotune_secagg.stages import rotate
from tff_autotune_secagg.stages import sample

# The largest weight of a client in the secure sums of weights here, as in
# `tff.learning.secure_aggregator`.
_MAX_CLIENT_WEIGHT = float(2**20 - 1)


@dataclasses.dataclass(frozen=True)
class Round:
  """What an aggregator must know of the rounds it will serve.

  Attributes:
    num_clients: Clients in each round.
    leaf_sizes: Number of values in each tensor of the model update.
    seed: Seed of the aggregator's shared randomness.
    weighted: Whether to build a weighted mean, else an unweighted one.
  """

  num_clients: int
  leaf_sizes: Tuple[int, ...]
  seed: int
  weighted: bool = True

  @property
  def num_values(self) -> int:
    """Values in the whole update."""
    return sum(self.leaf_sizes)


@dataclasses.dataclass(frozen=True)
class Built:
  """An aggregator ready to use.

  Attributes:
    factory: A weighted or unweighted `tff.aggregators` factory of the mean.
    bits_per_coordinate: Bits that a client sends for one coordinate of the
      vector that is on the wire. If `fixed_range` sends a sample, it is less,
      by the share that is sent.
    bytes_per_client: Bytes of the update's payload for one client and round.
  """

  factory: Any
  bits_per_coordinate: float
  bytes_per_client: int


def _secure_weight_sum():
  return tff.aggregators.SecureSumFactory(
    upper_bound_threshold=_MAX_CLIENT_WEIGHT, lower_bound_threshold=0.0
  )


def mean_of(sum_factory, weighted: bool):
  """Wraps a factory of sums into a weighted or unweighted secure mean."""
  if weighted:
    return tff.aggregators.MeanFactory(
      value_sum_factory=sum_factory, weight_sum_factory=_secure_weight_sum()
    )
  return tff.aggregators.UnweightedMeanFactory(
    value_sum_factory=sum_factory,
    count_sum_factory=tff.aggregators.SecureSumFactory(
      upper_bound_threshold=1, lower_bound_threshold=0
    ),
  )


class TooFewBitsError(ValueError):
  """The bits per coordinate cannot carry the clients of a round."""


def _check_bits(name: str, bits: int, num_clients: int, modulus: int):
  """Raises TooFewBitsError if residues of `modulus` do not fit."""
  least = quantization.num_bits(modulus)
  if bits < least:
    raise TooFewBitsError(
      f'`bits` of the aggregator {name!r} must be at least {least} for '
      f'{num_clients} clients per round, found {bits}.'
    )


def _plain_mean(info: Round, zeroing=False, clipping=False) -> Built:
  factory = (
    tff.aggregators.MeanFactory()
    if info.weighted
    else tff.aggregators.UnweightedMeanFactory()
  )
  factory = norm_limits.limited(factory, zeroing=zeroing, clipping=clipping)
  return Built(factory, 32, quantization.payload_bytes(info.num_values, 32))


def _clipped_mean(info: Round, factor) -> Built:
  if not info.weighted:
    raise ValueError(
      'The aggregator clipped_mean must be given weights, found an unweighted '
      'mean.'
    )
  plain = _plain_mean(info)
  return dataclasses.replace(
    plain,
    factory=clipped_mean.ClippedMeanFactory(plain.factory, factor=factor),
  )


def _fixed_range(
  info: Round, bits, clip_range, rotate, sampled_fraction, zeroing, clipping
) -> Built:
  least_modulus = quantization.sum_modulus(2, info.num_clients)
  _check_bits('fixed_range', bits, info.num_clients, least_modulus)
  num_levels = levels.most_levels(bits, info.num_clients)
  # What is not rotated is mostly near 0: better one level less, and one at 0.
  if not rotate and num_levels > 2:
    num_levels -= 1 - num_levels % 2
  num_coordinates = _rotated_size(info) if rotate else info.num_values
  # `aggregators.parse` takes no share without a rotation.
  num_sent = block_sample.size(sampled_fraction, num_coordinates)
  if clip_range is None:
    clip_range = fixed_range.adaptive_range()
  else:
    # `block_sample` multiplies by the root of a block's size, which is this one
    # or next to it.
    clip_range *= math.sqrt(num_coordinates / num_sent)
  factory = fixed_range.FixedRangeSumFactory(
    clip_range=clip_range, num_levels=num_levels, num_clients=info.num_clients
  )
  bits_per_coordinate = bits
  if num_sent < num_coordinates:
    bits_per_coordinate *= num_sent / num_coordinates
    options = dict(sampled_fraction=sampled_fraction, seed=info.seed)
    factory = chain.ChainedFactory([(sample.SampleStage, options)], factory)
  if rotate:
    factory = _rotated(factory, info)
  factory = mean_of(tff.aggregators.concat_factory(factory), info.weighted)
  return Built(
    norm_limits.limited(factory, zeroing=zeroing, clipping=clipping),
    bits_per_coordinate,
    quantization.payload_bytes(num_sent, bits),
  )


def _rotated(inner_factory, info: Round):
  """Rotates before `inner_factory`, which gets `_rotated_size` values."""
  return autotune.HadamardRotationFactory(inner_factory, seed=info.seed)


def _rotated_size(info: Round) -> int:
  return rotate.width(info.num_values, min_dim=1)


def _secure_aggregator(info: Round, zeroing, clipping) -> Built:
  factory = tff.learning.secure_aggregator(
    zeroing=zeroing, clipping=clipping, weighted=info.weighted
  )
  bits = _secure_sum_bits(info)
  return Built(factory, bits, quantization.payload_bytes(info.num_values, bits))


def _secure_sum_bits(info: Round) -> int:
  # Each client's integers have 32 bits, so the masked sum needs room for all.
  return 32 + quantization.num_bits(info.num_clients)


def _rotated_secure_sum(info: Round) -> Built:
  factory = _rotated(
    tff.aggregators.SecureSumFactory(fixed_range.adaptive_range()), info
  )
  factory = mean_of(tff.aggregators.concat_factory(factory), info.weighted)
  bits = _secure_sum_bits(info)
  num_bytes = quantization.payload_bytes(_rotated_size(info), bits)
  return Built(factory, bits, num_bytes)


# What `tff.learning.compression_aggregator` does to tensors: those with more
# values than this take so many bits, smaller ones stay 32-bit floats.
_COMPRESSION_THRESHOLD = 20000
_COMPRESSION_BITS = 8


def _compression_aggregator(info: Round, zeroing, clipping) -> Built:
  factory = tff.learning.compression_aggregator(
    zeroing=zeroing, clipping=clipping, weighted=info.weighted
  )
  total = sum(
    size * (_COMPRESSION_BITS if size > _COMPRESSION_THRESHOLD else 32)
    for size in info.leaf_sizes
  )
  return Built(factory, total / info.num_values, math.ceil(total / 8))


def _allow_deep_computations():
  """Lifts the limit of 100 nested messages on protocol buffers.

  `tff.learning.ddp_secure_aggregator` inside federated averaging nests deeper,
  and TFF then fails with "Error parsing message" and nothing else.
  """
  try:
    from google._upb import _message  # The switch has no public name.
  except ImportError:
    return  # Another implementation of protocol buffers, without the limit.
  _message.SetAllowOversizeProtos(True)


def _ddp_secure_aggregator(
  info: Round, bits, zeroing, noise_multiplier
) -> Built:
  _check_bits('ddp_secure_aggregator', bits, info.num_clients, info.num_clients)
  _allow_deep_computations()
  factory = tff.learning.ddp_secure_aggregator(
    noise_multiplier=noise_multiplier,
    expected_clients_per_round=info.num_clients,
    bits=bits,
    zeroing=zeroing,
  )
  # One rotation of the whole update, padded to a power of two.
  padded = 2 ** (info.num_values - 1).bit_length()
  return Built(factory, bits, quantization.payload_bytes(padded, bits))


def _central_dp(info: Round, noise_multiplier, clip_norm) -> Built:
  of = tff.aggregators.DifferentiallyPrivateFactory
  if clip_norm is None:
    # The first clip norm, its steps and the noise of the clients' bits are as
    # in `distributed_dp`; the steps are TFF's own.
    factory = of.gaussian_adaptive(
      noise_multiplier,
      info.num_clients,
      initial_l2_norm_clip=clip.FIRST_CLIP_NORM,
      clipped_count_stddev=clip_bit.default_count_stddev(
        noise_multiplier, info.num_clients
      ),
    )
  else:
    factory = of.gaussian_fixed(noise_multiplier, info.num_clients, clip_norm)
  return Built(factory, 32, quantization.payload_bytes(info.num_values, 32))


def _distributed_dp(
  info: Round,
  noise_multiplier,
  min_clients,
  clip_norm,
  modulus,
  sampled_fraction,
) -> Built:
  noise = dict(
    noise_multiplier=noise_multiplier,
    min_clients=min_clients or info.num_clients,
  )
  if modulus is None:
    modulus = autotune.plan_distributed_dp_modulus(
      num_clients=info.num_clients,
      dim=info.num_values,
      sampled_fraction=sampled_fraction,
      **noise,
    )
  factory = autotune.distributed_dp_aggregator(
    l2_norm_clip=clip_norm,
    modulus=modulus,
    seed=info.seed,
    sampled_fraction=sampled_fraction,
    **noise,
  )
  bits = quantization.num_bits(modulus)
  # A coordinate for the clip bit, if the norm adapts.
  width = rotate.width(info.num_values + (clip_norm is None))
  num_sent = block_sample.size(sampled_fraction, width)
  num_bytes = quantization.payload_bytes(num_sent, bits)
  return Built(factory, bits, num_bytes)


def _rotated_quantization(info: Round, bits) -> Built:
  factory = _rotated(
    local_quantization.LocallyQuantizedSumFactory(num_levels=2**bits), info
  )
  factory = tff.aggregators.concat_factory(factory)
  factory = (
    tff.aggregators.MeanFactory(factory)
    if info.weighted
    else tff.aggregators.UnweightedMeanFactory(factory)
  )
  # And the two ends of the client's range.
  num_bytes = quantization.payload_bytes(_rotated_size(info), bits)
  return Built(factory, bits, num_bytes + 8)


def _kashin(info: Round, modulus, wrap_probability) -> Built:
  factory = kashin.KashinFactory(
    autotune.QuantizeModFactory(
      autotune.ExactModularSumFactory(modulus=modulus),
      tuner=autotune.WrappedNormalTuner(
        modulus=modulus, wrap_probability=wrap_probability
      ),
    ),
    seed=info.seed,
  )
  factory = mean_of(tff.aggregators.concat_factory(factory), info.weighted)
  bits = quantization.num_bits(modulus)
  return Built(
    factory,
    bits,
    quantization.payload_bytes(
      kashin.KashinFactory.num_coefficients(info.num_values), bits
    ),
  )


def _autotuned(
  info: Round,
  modulus,
  wrap_probability,
  rounding,
  decoding,
  zeroing,
  clipping,
  num_rotations,
  prediction,
) -> Built:
  factory = autotune.autotuned_secure_aggregator(
    modulus=modulus,
    wrap_probability=wrap_probability,
    rounding=autotune.Rounding(rounding),
    decoding=autotune.Decoding(decoding),
    zeroing=zeroing,
    clipping=clipping,
    num_rotations=num_rotations,
    predict_sum=prediction,
    weighted=info.weighted,
    seed=info.seed,
  )
  bits = quantization.num_bits(modulus)
  num_bytes = quantization.payload_bytes(rotate.width(info.num_values), bits)
  return Built(factory, bits, num_bytes)


# By the names of the functions, so that no name is without one.
_BUILDERS: Dict[str, Callable[..., Built]] = {
  name: globals()[f'_{name}'] for name in aggregators.NAMES
}


def build(text: str, round_info: Round) -> Built:
  """Builds an aggregator.

  Args:
    text: As `aggregators.parse` reads it.
    round_info: The rounds that it will serve.

  Returns:
    The aggregator.

  Raises:
    TooFewBitsError: The bits cannot carry the clients of a round.
    ValueError: The text or a setting is wrong.
  """
  scheme = aggregators.parse(text)
  return _BUILDERS[scheme.name](round_info, **scheme.settings)

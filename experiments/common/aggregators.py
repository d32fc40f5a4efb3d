# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""One registry of the aggregators that the experiments compare.

An aggregator is named by a short text, for instance `plain_mean` or
`autotuned:modulus=16,wrap_probability=0.001`: a name in `NAMES`, then settings.
`parse` reads it, `Scheme.build` makes the factory. Adding an aggregator is one
function and one `_register` line here.

Each scheme states what it sends: bits for each model coordinate and bytes for
each client and round. These count the payload of the update itself, padding
included, and neither masks nor keys nor the few scalars (weights, norms,
counts) that most schemes send beside it.
"""

import dataclasses
import math
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

import tensorflow_federated as tff

from experiments.common import baseline_factories
import tff_autotune_secagg as autotune
from tff_autotune_secagg.numerics import hadamard

# The largest summed weight that the secure weight sums here can carry, as in
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
      vector that is on the wire.
    bytes_per_client: Bytes of the update's payload for one client and round.
    secure: Whether the server sees nothing of an update but the sum.
  """

  factory: Any
  bits_per_coordinate: float
  bytes_per_client: int
  secure: bool


def num_bits(modulus: int) -> int:
  """Bits of the residues modulo `modulus`, an int of at least 1."""
  return (modulus - 1).bit_length()


def fill_in(text: str, bits: int, largest: float) -> str:
  """Replaces `{bits}`, `{modulus}` (2**bits) and `{max}` in an aggregator."""
  return (
    text.replace('{bits}', str(bits))
    .replace('{modulus}', str(2**bits))
    .replace('{max}', repr(float(largest)))
  )


def _payload_bytes(bits: float, num_coordinates: int) -> int:
  return math.ceil(bits * num_coordinates / 8)


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


def _check_bits(name: str, bits: int, num_clients: int, num_levels: int):
  """Raises TooFewBitsError if clients of `num_levels` each do not fit."""
  least = num_bits(num_levels * num_clients)
  if bits < least:
    raise TooFewBitsError(
      f'`bits` of the aggregator {name!r} must be at least {least} for '
      f'{num_clients} clients per round, found {bits}.'
    )


_REQUIRED = object()


def _boolean(text: str) -> bool:
  values = {'true': True, 'false': False}
  if text.lower() not in values:
    raise ValueError('true or false')
  return values[text.lower()]


def _positive_float(text: str) -> float:
  value = float(text)
  if not 0 < value < math.inf:
    raise ValueError('a positive number')
  return value


def _nonnegative_float(text: str) -> float:
  value = float(text)
  if not 0 <= value < math.inf:
    raise ValueError('0 or a positive number')
  return value


def _int_or_auto(text: str) -> Optional[int]:
  return None if text == 'auto' else int(text)


def _clip_norm(text: str) -> Optional[float]:
  return None if text == 'auto' else _positive_float(text)


def _probability(text: str) -> Optional[float]:
  if text == 'auto':
    return None
  value = float(text)
  if not 0 < value < 1:
    raise ValueError('auto or a number between 0 and 1')
  return value


def _one_of(*choices: str) -> Callable[[str], str]:
  def read(text):
    if text not in choices:
      raise ValueError(' or '.join(choices))
    return text

  read.rule = ' or '.join(choices)
  return read


_RULES = {
  int: 'an int',
  _boolean: 'true or false',
  _positive_float: 'a positive number',
  _nonnegative_float: '0 or a positive number',
  _int_or_auto: 'auto or an int',
  _clip_norm: 'auto or a positive number',
  _probability: 'auto or a number between 0 and 1',
}


@dataclasses.dataclass(frozen=True)
class _Entry:
  build: Callable[..., Built]
  settings: Mapping[str, Tuple[Callable[[str], Any], Any]]
  summary: str


_REGISTRY: Dict[str, _Entry] = {}


def _register(name, summary, **settings):
  def add(function):
    _REGISTRY[name] = _Entry(function, settings, summary)
    return function

  return add


@dataclasses.dataclass(frozen=True)
class Scheme:
  """An aggregator and its settings, not yet bound to a model.

  Attributes:
    text: The text it was parsed from, which names it in results.
    name: One of `NAMES`.
    settings: All its settings, defaults filled in.
  """

  text: str
  name: str
  settings: Mapping[str, Any]

  def build(self, round_info: Round) -> Built:
    """Builds the aggregator for rounds as `round_info` describes them."""
    return _REGISTRY[self.name].build(round_info, **self.settings)


def parse(text: str) -> Scheme:
  """Reads `name` or `name:setting=value,setting=value`.

  Args:
    text: The text.

  Returns:
    The scheme.

  Raises:
    ValueError: If a name, setting or value is wrong; the message lists the
      right ones.
  """
  name, _, rest = text.partition(':')
  if name not in _REGISTRY:
    raise ValueError(
      f'`aggregator` must be one of {", ".join(NAMES)}, found {name!r}.'
    )
  known = _REGISTRY[name].settings
  given = {}
  for item in filter(None, rest.split(',')):
    key, equals, value = item.partition('=')
    if key not in known or not equals:
      right = ', '.join(f'{k}=...' for k in known) or 'none'
      raise ValueError(
        f'Settings of the aggregator {name!r} must be among {right}; found '
        f'{item!r}.'
      )
    reader = known[key][0]
    try:
      given[key] = reader(value)
    except ValueError as e:
      rule = getattr(reader, 'rule', None) or _RULES[reader]
      raise ValueError(
        f'Setting {key!r} of the aggregator {name!r} must be {rule}, found '
        f'{value!r}.'
      ) from e
  settings = {}
  for key, (_, default) in known.items():
    if default is _REQUIRED and key not in given:
      raise ValueError(
        f'The aggregator {name!r} must be given the setting {key!r}, found '
        f'{text!r}. Write for instance {name}:{key}=1.'
      )
    settings[key] = given.get(key, default)
  return Scheme(text, name, settings)


@_register('plain_mean', 'mean of 32-bit floats, in the clear')
def _plain_mean(info: Round) -> Built:
  factory = (
    tff.aggregators.MeanFactory()
    if info.weighted
    else tff.aggregators.UnweightedMeanFactory()
  )
  return Built(factory, 32, _payload_bytes(32, info.num_values), secure=False)


@_register(
  'fixed_range',
  'fixed clipping range and modulus clients * levels, without autotuning; '
  'clip_range is in units of the update times the client weight',
  bits=(int, 8),
  clip_range=(_positive_float, _REQUIRED),
  rotate=(_boolean, False),
)
def _fixed_range(info: Round, bits, clip_range, rotate) -> Built:
  _check_bits('fixed_range', bits, info.num_clients, num_levels=2)
  # The most levels for which sums of all clients still fit into `bits`.
  num_levels = 2**bits // info.num_clients
  bits = num_bits(info.num_clients * num_levels)
  factory = baseline_factories.FixedRangeSumFactory(
    clip_range=clip_range, num_levels=num_levels, num_clients=info.num_clients
  )
  num_coordinates = info.num_values
  if rotate:
    factory, num_coordinates = _rotated(factory, info)
  factory = mean_of(tff.aggregators.concat_factory(factory), info.weighted)
  return Built(
    factory, bits, _payload_bytes(bits, num_coordinates), secure=True
  )


def _rotated(inner_factory, info: Round):
  """Rotates before `inner_factory`; also returns the padded size."""
  return (
    autotune.HadamardRotationFactory(inner_factory, seed=info.seed),
    hadamard.padded_dim(info.num_values),
  )


@_register(
  'secure_aggregator',
  'tff.learning.secure_aggregator: 32-bit integers under secure aggregation',
  zeroing=(_boolean, True),
  clipping=(_boolean, True),
)
def _secure_aggregator(info: Round, zeroing, clipping) -> Built:
  factory = tff.learning.secure_aggregator(
    zeroing=zeroing, clipping=clipping, weighted=info.weighted
  )
  # Each client's integers have 32 bits, so the masked sum needs room for all.
  bits = 32 + num_bits(info.num_clients)
  return Built(
    factory, bits, _payload_bytes(bits, info.num_values), secure=True
  )


# What `tff.learning.compression_aggregator` does to tensors: those with more
# values than this take so many bits, smaller ones stay 32-bit floats.
_COMPRESSION_THRESHOLD = 20000
_COMPRESSION_BITS = 8


@_register(
  'compression_aggregator',
  'tff.learning.compression_aggregator: large tensors 8 bits, in the clear',
  zeroing=(_boolean, True),
  clipping=(_boolean, True),
)
def _compression_aggregator(info: Round, zeroing, clipping) -> Built:
  factory = tff.learning.compression_aggregator(
    zeroing=zeroing, clipping=clipping, weighted=info.weighted
  )
  total = sum(
    size * (_COMPRESSION_BITS if size > _COMPRESSION_THRESHOLD else 32)
    for size in info.leaf_sizes
  )
  return Built(
    factory, total / info.num_values, math.ceil(total / 8), secure=False
  )


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


@_register(
  'ddp_secure_aggregator',
  'tff.learning.ddp_secure_aggregator, by default without noise; an unweighted '
  'mean',
  bits=(int, 20),
  zeroing=(_boolean, True),
  noise_multiplier=(_nonnegative_float, 0.0),
)
def _ddp_secure_aggregator(
  info: Round, bits, zeroing, noise_multiplier
) -> Built:
  _check_bits('ddp_secure_aggregator', bits, info.num_clients, num_levels=1)
  _allow_deep_computations()
  factory = tff.learning.ddp_secure_aggregator(
    noise_multiplier=noise_multiplier,
    expected_clients_per_round=info.num_clients,
    bits=bits,
    zeroing=zeroing,
  )
  # One rotation of the whole update, padded to a power of two.
  padded = 2 ** (info.num_values - 1).bit_length()
  return Built(factory, bits, _payload_bytes(bits, padded), secure=True)


@_register(
  'central_dp',
  'tff.aggregators.DifferentiallyPrivateFactory: Gaussian noise of the server, '
  'updates in the clear; an unweighted mean',
  noise_multiplier=(_positive_float, 1.0),
  clip_norm=(_clip_norm, None),
)
def _central_dp(info: Round, noise_multiplier, clip_norm) -> Built:
  of = tff.aggregators.DifferentiallyPrivateFactory
  if clip_norm is None:
    # The first clip norm, its steps and the noise of the clients' bits are as
    # in `distributed_dp`.
    factory = of.gaussian_adaptive(
      noise_multiplier,
      info.num_clients,
      initial_l2_norm_clip=0.1,
      clipped_count_stddev=max(info.num_clients / 20, 2 * noise_multiplier),
    )
  else:
    factory = of.gaussian_fixed(noise_multiplier, info.num_clients, clip_norm)
  return Built(factory, 32, _payload_bytes(32, info.num_values), secure=False)


@_register(
  'distributed_dp',
  'this package, with noise of the clients; an unweighted mean; min_clients '
  'are those of the round unless given',
  noise_multiplier=(_positive_float, 1.0),
  min_clients=(_int_or_auto, None),
  clip_norm=(_clip_norm, None),
  modulus=(_int_or_auto, None),
)
def _distributed_dp(
  info: Round, noise_multiplier, min_clients, clip_norm, modulus
) -> Built:
  noise = dict(
    noise_multiplier=noise_multiplier,
    min_clients=min_clients or info.num_clients,
  )
  if modulus is None:
    modulus = autotune.plan_distributed_dp_modulus(
      num_clients=info.num_clients, dim=info.num_values, **noise
    )
  factory = autotune.distributed_dp_aggregator(
    l2_norm_clip=clip_norm, modulus=modulus, seed=info.seed, **noise
  )
  bits = num_bits(modulus)
  # A coordinate for the clip bit, if the norm adapts.
  dim = max(info.num_values + (clip_norm is None), autotune.aggregators.MIN_DIM)
  num_bytes = _payload_bytes(bits, hadamard.padded_dim(dim))
  return Built(factory, bits, num_bytes, secure=True)


@_register(
  'rotated_quantization',
  'rotation, then a range per client, in the clear (Suresh et al. 2017)',
  bits=(int, 8),
)
def _rotated_quantization(info: Round, bits) -> Built:
  factory, padded = _rotated(
    baseline_factories.LocallyQuantizedSumFactory(num_levels=2**bits), info
  )
  factory = tff.aggregators.concat_factory(factory)
  factory = (
    tff.aggregators.MeanFactory(factory)
    if info.weighted
    else tff.aggregators.UnweightedMeanFactory(factory)
  )
  # And the two ends of the client's range.
  return Built(factory, bits, _payload_bytes(bits, padded) + 8, secure=False)


@_register(
  'kashin',
  'Kashin coefficients instead of a rotation, autotuned as this package is',
  modulus=(int, 256),
  wrap_probability=(_probability, None),
)
def _kashin(info: Round, modulus, wrap_probability) -> Built:
  factory = baseline_factories.KashinFactory(
    autotune.QuantizeModFactory(
      autotune.ExactModularSumFactory(modulus=modulus),
      tuner=autotune.WrappedNormalTuner(
        modulus=modulus, wrap_probability=wrap_probability
      ),
    ),
    seed=info.seed,
  )
  factory = mean_of(tff.aggregators.concat_factory(factory), info.weighted)
  bits = num_bits(modulus)
  return Built(
    factory,
    bits,
    _payload_bytes(
      bits,
      baseline_factories.KashinFactory.num_coefficients(info.num_values),
    ),
    secure=True,
  )


@_register(
  'autotuned',
  'this package; wrap_probability=auto minimizes the error',
  modulus=(int, 256),
  wrap_probability=(_probability, None),
  rounding=(_one_of('stochastic', 'dither'), 'stochastic'),
  decoding=(_one_of('posterior_mean', 'centred'), 'posterior_mean'),
  zeroing=(_boolean, True),
  num_rotations=(int, 1),
)
def _autotuned(
  info: Round,
  modulus,
  wrap_probability,
  rounding,
  decoding,
  zeroing,
  num_rotations,
) -> Built:
  factory = autotune.autotuned_secure_aggregator(
    modulus=modulus,
    wrap_probability=wrap_probability,
    rounding=autotune.Rounding(rounding),
    decoding=autotune.Decoding(decoding),
    zeroing=zeroing,
    num_rotations=num_rotations,
    weighted=info.weighted,
    seed=info.seed,
  )
  bits = num_bits(modulus)
  dim = max(info.num_values, autotune.aggregators.MIN_DIM)
  num_bytes = _payload_bytes(bits, hadamard.padded_dim(dim))
  return Built(factory, bits, num_bytes, secure=True)


NAMES: Tuple[str, ...] = tuple(_REGISTRY)


def describe() -> str:
  """One line for each aggregator, with its settings and their defaults."""
  lines = []
  for name, entry in _REGISTRY.items():
    settings = ', '.join(
      f'{key}='
      + (
        '...'
        if default is _REQUIRED
        else 'auto'
        if default is None
        else str(default).lower()
      )
      for key, (_, default) in entry.settings.items()
    )
    lines.append(f'{name}{":" if settings else ""}{settings} ({entry.summary})')
  return '; '.join(lines)

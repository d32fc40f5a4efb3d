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

import collections
import dataclasses
import math
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

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


def _payload_bytes(bits: float, num_coordinates: int) -> int:
  return math.ceil(bits * num_coordinates / 8)


def _secure_weight_sum():
  return tff.aggregators.SecureSumFactory(
      upper_bound_threshold=_MAX_CLIENT_WEIGHT, lower_bound_threshold=0.0)


def mean_of(sum_factory, weighted: bool):
  """Wraps a factory of sums into a weighted or unweighted secure mean."""
  if weighted:
    return tff.aggregators.MeanFactory(
        value_sum_factory=sum_factory, weight_sum_factory=_secure_weight_sum())
  return tff.aggregators.UnweightedMeanFactory(
      value_sum_factory=sum_factory,
      count_sum_factory=tff.aggregators.SecureSumFactory(
          upper_bound_threshold=1, lower_bound_threshold=0))


def _round_to_levels(value, lowest, step, num_levels):
  """Rounds to a neighbour in `lowest + step * {0 .. num_levels - 1}`, unbiased.

  Args:
    value: float32 tensor, clipped here to the range of the levels.
    lowest: float32 scalar, the lowest level.
    step: float32 scalar, positive.
    num_levels: Python int, at least 2.

  Returns:
    int32 tensor of level numbers. Unseeded: each client and round differs.
  """
  position = tf.clip_by_value(
      (value - lowest) / step, 0.0, float(num_levels - 1))
  below = tf.floor(position)
  up = tf.random.uniform(tf.shape(value)) < position - below
  return tf.cast(below, tf.int32) + tf.cast(up, tf.int32)


class FixedRangeSumFactory(tff.aggregators.UnweightedAggregationFactory):
  """Sums a float32 vector by the scheme deployed before autotuning.

  At clients: values are clipped to `[-clip_range, clip_range]` and rounded at
  random to one of `num_levels` equidistant levels, numbered from 0.
  At server: the sum of the level numbers modulo `num_clients * num_levels`,
  which no sum of at most `num_clients` numbers reaches, turned into values with
  the securely summed number of clients.

  Types: `value_type` is a float32 tensor. The result type equals it.
  State: empty.
  Measurements: `bin_size`, the distance of two levels in value units.
  Guarantees: unbiased for values in the range; exact decoding for any number of
    clients up to `num_clients`.
  Limits: values beyond the range are clipped silently.
  Reference: Bonawitz et al. (2019), arXiv:1912.00131, section 2.
  """

  def __init__(self, *, clip_range: float, num_levels: int, num_clients: int):
    """Initializes the factory.

    Args:
      clip_range: Positive float, in units of the summed values.
      num_levels: Levels of one client, at least 2.
      num_clients: The largest number of clients of a round.

    Raises:
      ValueError: If an argument is out of its range.
    """
    if not 0 < clip_range < math.inf:
      raise ValueError(
          '`clip_range` must be a positive finite float, found '
          f'{clip_range!r}.')
    if num_levels < 2:
      raise ValueError(
          f'`num_levels` must be an int of at least 2, found {num_levels!r}. '
          'Raise the bits per coordinate or lower the clients per round.')
    self._clip_range = clip_range
    self._num_levels = num_levels
    self._modulus = num_clients * num_levels
    self._step = 2 * clip_range / (num_levels - 1)

  def create(self, value_type):
    modular_sum = tff.aggregators.SecureModularSumFactory(
        self._modulus).create(
                tff.TensorType(np.int32, value_type.shape))

    @tff.tensorflow.computation(value_type)
    def encode(value):
      return _round_to_levels(
          value, -self._clip_range, self._step, self._num_levels)

    @tff.tensorflow.computation(
        modular_sum.next.type_signature.result['result'].member, np.int32)
    def decode(level_sum, count):
      return (tf.cast(level_sum, tf.float32) * self._step
              - tf.cast(count, tf.float32) * self._clip_range)

    @tff.federated_computation()
    def init_fn():
      return tff.federated_value((), tff.SERVER)

    @tff.federated_computation(
        init_fn.type_signature.result, tff.FederatedType(
            value_type, tff.CLIENTS))
    def next_fn(state, value):
      levels = tff.federated_map(encode, value)
      level_sum = modular_sum.next(modular_sum.initialize(), levels).result
      count = tff.federated_secure_sum(tff.federated_value(1, tff.CLIENTS), 1)
      result = tff.federated_map(decode, (level_sum, count))
      measurements = tff.federated_value(
          collections.OrderedDict(bin_size=np.float32(self._step)), tff.SERVER)
      return tff.templates.MeasuredProcessOutput(
          state, result, measurements)

    return tff.templates.AggregationProcess(init_fn, next_fn)


class LocallyQuantizedSumFactory(tff.aggregators.UnweightedAggregationFactory):
  """Sums float32 vectors that each client quantizes to a range of its own.

  At clients: values are rounded at random to `num_levels` levels between the
  client's own least and greatest value.
  At server: the sum of the decoded vectors, in the clear: each client's own
  range must be known to read its levels.

  Types: `value_type` is a float32 tensor. The result type equals it.
  State: empty. Measurements: empty.
  Guarantees: unbiased.
  Reference: Suresh et al. (2017), arXiv:1611.00429, section 2.
  """

  def __init__(self, *, num_levels: int):
    self._num_levels = num_levels

  def create(self, value_type):
    @tff.tensorflow.computation(value_type)
    def quantize(value):
      lowest = tf.reduce_min(value)
      step = (tf.reduce_max(value) - lowest) / (self._num_levels - 1)
      # A constant vector has no range; any positive step returns it exactly.
      step = tf.where(step > 0, step, 1.0)
      levels = _round_to_levels(value, lowest, step, self._num_levels)
      return lowest + tf.cast(levels, tf.float32) * step

    @tff.federated_computation()
    def init_fn():
      return tff.federated_value((), tff.SERVER)

    @tff.federated_computation(
        init_fn.type_signature.result, tff.FederatedType(
            value_type, tff.CLIENTS))
    def next_fn(state, value):
      result = tff.federated_sum(tff.federated_map(quantize, value))
      return tff.templates.MeasuredProcessOutput(
          state, result, tff.federated_value((), tff.SERVER))

    return tff.templates.AggregationProcess(init_fn, next_fn)


class KashinFactory(tff.aggregators.UnweightedAggregationFactory):
  """Represents a vector by Kashin coefficients around an inner aggregation.

  In the place of a rotation. At clients: the coefficients of TFMOT's research
  stage `KashinHadamardEncodingStage`, whose largest entry is smaller than after
  a rotation, at the price of up to twice as many entries.
  At server: the stage's decoding, which is linear.

  Types: `value_type` is a float32 vector. The result type equals it.
  State: `seed` (int64 [2]), `round` (int64) and `inner`.
  Measurements: those of the inner process.
  Reference: Lyubarskii and Vershynin (2010), arXiv:math/0611343; Caldas et al.
    (2018), arXiv:1812.07210.
  """

  def __init__(self, inner_factory, *, seed: int):
    self._inner_factory = inner_factory
    self._seed = seed

  @staticmethod
  def num_coefficients(dim: int) -> int:
    """Coefficients that the stage makes of `dim` values."""
    # The rule is the stage's own: the next power of two, doubled if little of
    # it would be padding.
    padded = 2**(dim - 1).bit_length()
    return 2 * padded if dim / padded > 0.85 else padded

  def create(self, value_type):
    from tensorflow_model_optimization.python.core.internal import tensor_encoding
    stage = tensor_encoding.stages.research.KashinHadamardEncodingStage()
    dim = value_type.shape[0]

    def params(seed):
      return {stage.ETA_PARAMS_KEY: 0.9, stage.DELTA_PARAMS_KEY: 1.0,
              stage.SEED_PARAMS_KEY: seed}

    @tff.tensorflow.computation
    def initial_seed():
      return collections.OrderedDict(
          seed=tf.constant([self._seed, 0], tf.int64),
          round=tf.constant(0, tf.int64))

    own_type = initial_seed.type_signature.result

    @tff.tensorflow.computation(own_type)
    def round_seed(own):
      return tf.random.experimental.stateless_fold_in(own['seed'], own['round'])

    @tff.tensorflow.computation(value_type, round_seed.type_signature.result)
    def encode(value, seed):
      encoded = stage.encode(value, params(seed))
      return tf.reshape(
          encoded[stage.ENCODED_VALUES_KEY], [self.num_coefficients(dim)])

    coefficients_type = encode.type_signature.result
    inner_process = self._inner_factory.create(coefficients_type)

    @tff.tensorflow.computation(
        coefficients_type, round_seed.type_signature.result)
    def decode(coefficients, seed):
      decoded = stage.decode(
          {stage.ENCODED_VALUES_KEY: coefficients[tf.newaxis, :]}, params(seed),
          shape=tf.constant([dim]))
      return tf.reshape(decoded, [dim])

    @tff.tensorflow.computation(own_type)
    def advance(own):
      return collections.OrderedDict(seed=own['seed'], round=own['round'] + 1)

    @tff.federated_computation()
    def init_fn():
      return tff.federated_zip(collections.OrderedDict(
          own=tff.federated_eval(initial_seed, tff.SERVER),
          inner=inner_process.initialize()))

    @tff.federated_computation(
        init_fn.type_signature.result,
        tff.FederatedType(value_type, tff.CLIENTS))
    def next_fn(state, value):
      seed = tff.federated_map(round_seed, state['own'])
      coefficients = tff.federated_map(
          encode, (value, tff.federated_broadcast(seed)))
      output = inner_process.next(state['inner'], coefficients)
      result = tff.federated_map(decode, (output.result, seed))
      new_state = tff.federated_zip(collections.OrderedDict(
          own=tff.federated_map(advance, state['own']), inner=output.state))
      return tff.templates.MeasuredProcessOutput(
          new_state, result, output.measurements)

    return tff.templates.AggregationProcess(init_fn, next_fn)


# --- The registry. ---


class TooFewBitsError(ValueError):
  """The bits per coordinate cannot carry the clients of a round."""


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
    int: 'an int', _boolean: 'true or false',
    _positive_float: 'a positive number',
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
        f'`aggregator` must be one of {", ".join(NAMES)}, found {name!r}.')
  known = _REGISTRY[name].settings
  given = {}
  for item in filter(None, rest.split(',')):
    key, equals, value = item.partition('=')
    if key not in known or not equals:
      right = ', '.join(f'{k}=...' for k in known) or 'none'
      raise ValueError(
          f'Settings of the aggregator {name!r} must be among {right}; found '
          f'{item!r}.')
    reader = known[key][0]
    try:
      given[key] = reader(value)
    except ValueError as e:
      rule = getattr(reader, 'rule', None) or _RULES[reader]
      raise ValueError(
          f'Setting {key!r} of the aggregator {name!r} must be {rule}, found '
          f'{value!r}.') from e
  settings = {}
  for key, (_, default) in known.items():
    if default is _REQUIRED and key not in given:
      raise ValueError(
          f'The aggregator {name!r} must be given the setting {key!r}, found '
          f'{text!r}. Write for instance {name}:{key}=1.')
    settings[key] = given.get(key, default)
  return Scheme(text, name, settings)


@_register('plain_mean', 'mean of 32-bit floats, in the clear')
def _plain_mean(info: Round) -> Built:
  factory = (tff.aggregators.MeanFactory() if info.weighted
             else tff.aggregators.UnweightedMeanFactory())
  return Built(factory, 32, _payload_bytes(32, info.num_values), secure=False)


@_register(
    'fixed_range',
    'fixed clipping range, modulus clients * levels, as used before autotuning; '
    'clip_range is in units of the update times the client weight',
    bits=(int, 8), clip_range=(_positive_float, _REQUIRED),
    rotate=(_boolean, False))
def _fixed_range(info: Round, bits, clip_range, rotate) -> Built:
  # The most levels for which sums of all clients still fit into `bits`.
  num_levels = 2**bits // info.num_clients
  if num_levels < 2:
    raise TooFewBitsError(
        f'`bits` of the aggregator \'fixed_range\' must be at least '
        f'{math.ceil(math.log2(2 * info.num_clients))} for {info.num_clients} '
        f'clients per round, found {bits}.')
  bits = math.ceil(math.log2(info.num_clients * num_levels))
  factory = FixedRangeSumFactory(
      clip_range=clip_range, num_levels=num_levels,
      num_clients=info.num_clients)
  num_coordinates = info.num_values
  if rotate:
    factory, num_coordinates = _rotated(factory, info)
  factory = mean_of(tff.aggregators.concat_factory(factory), info.weighted)
  return Built(factory, bits, _payload_bytes(bits, num_coordinates), secure=True)


def _rotated(inner_factory, info: Round):
  """Rotates before `inner_factory`; also returns the padded size."""
  from tff_autotune_secagg import hadamard
  from tff_autotune_secagg import rotation
  return (rotation.HadamardRotationFactory(inner_factory, seed=info.seed),
          hadamard.padded_dim(info.num_values))


@_register(
    'secure_aggregator',
    'tff.learning.secure_aggregator: 32-bit integers under secure aggregation',
    zeroing=(_boolean, True), clipping=(_boolean, True))
def _secure_aggregator(info: Round, zeroing, clipping) -> Built:
  factory = tff.learning.secure_aggregator(
      zeroing=zeroing, clipping=clipping, weighted=info.weighted)
  # Each client's integers have 32 bits, so the masked sum needs room for all.
  bits = 32 + math.ceil(math.log2(info.num_clients))
  return Built(factory, bits, _payload_bytes(bits, info.num_values), secure=True)


# What `tff.learning.compression_aggregator` does to tensors: those with more
# values than this take so many bits, smaller ones stay 32-bit floats.
_COMPRESSION_THRESHOLD = 20000
_COMPRESSION_BITS = 8


@_register(
    'compression_aggregator',
    'tff.learning.compression_aggregator: 8 bits for large tensors, in the clear',
    zeroing=(_boolean, True), clipping=(_boolean, True))
def _compression_aggregator(info: Round, zeroing, clipping) -> Built:
  factory = tff.learning.compression_aggregator(
      zeroing=zeroing, clipping=clipping, weighted=info.weighted)
  total = sum(size * (_COMPRESSION_BITS if size > _COMPRESSION_THRESHOLD else 32)
              for size in info.leaf_sizes)
  return Built(factory, total / info.num_values, math.ceil(total / 8),
               secure=False)


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
    'tff.learning.ddp_secure_aggregator without noise; always an unweighted mean',
    bits=(int, 20), zeroing=(_boolean, True))
def _ddp_secure_aggregator(info: Round, bits, zeroing) -> Built:
  _allow_deep_computations()
  factory = tff.learning.ddp_secure_aggregator(
      noise_multiplier=0.0, expected_clients_per_round=info.num_clients,
      bits=bits, zeroing=zeroing)
  # One rotation of the whole update, padded to a power of two.
  padded = 2**(info.num_values - 1).bit_length()
  return Built(factory, bits, _payload_bytes(bits, padded), secure=True)


@_register(
    'rotated_quantization',
    'rotation, then each client its own range, in the clear (Suresh et al. 2017)',
    bits=(int, 8))
def _rotated_quantization(info: Round, bits) -> Built:
  factory, padded = _rotated(
      LocallyQuantizedSumFactory(num_levels=2**bits), info)
  factory = tff.aggregators.concat_factory(factory)
  factory = (tff.aggregators.MeanFactory(factory) if info.weighted
             else tff.aggregators.UnweightedMeanFactory(factory))
  # And the two ends of the client's range.
  return Built(factory, bits, _payload_bytes(bits, padded) + 8, secure=False)


@_register(
    'kashin',
    'Kashin coefficients instead of a rotation, autotuned as the plugin is',
    modulus=(int, 256), wrap_probability=(_probability, None))
def _kashin(info: Round, modulus, wrap_probability) -> Built:
  from tff_autotune_secagg import quantize_mod
  from tff_autotune_secagg import secure_sum
  from tff_autotune_secagg import tuning
  factory = KashinFactory(
      quantize_mod.QuantizeModFactory(
          secure_sum.ModularSecureSumFactory(modulus=modulus), modulus=modulus,
          bin_size=tuning.WrappedNormalTuner(
              modulus=modulus, wrap_probability=wrap_probability)),
      seed=info.seed)
  factory = mean_of(tff.aggregators.concat_factory(factory), info.weighted)
  bits = math.ceil(math.log2(modulus))
  return Built(
      factory, bits, _payload_bytes(
          bits, KashinFactory.num_coefficients(info.num_values)), secure=True)


@_register(
    'autotuned', 'this package; wrap_probability=auto minimizes the error',
    modulus=(int, 256), wrap_probability=(_probability, None),
    rounding=(_one_of('stochastic', 'dither'), 'stochastic'),
    decoding=(_one_of('posterior_mean', 'centred'), 'posterior_mean'),
    zeroing=(_boolean, True), num_repeats=(int, 1))
def _autotuned(
    info: Round, modulus, wrap_probability, rounding, decoding, zeroing,
    num_repeats) -> Built:
  from tff_autotune_secagg import aggregators
  from tff_autotune_secagg import hadamard
  from tff_autotune_secagg import quantization
  factory = aggregators.autotuned_secure_aggregator(
      modulus=modulus, wrap_probability=wrap_probability,
      rounding=quantization.Rounding(rounding),
      decoding=quantization.Decoding(decoding), zeroing=zeroing,
      num_repeats=num_repeats, weighted=info.weighted, seed=info.seed)
  bits = math.ceil(math.log2(modulus))
  return Built(
      factory, bits,
      _payload_bytes(
          bits, hadamard.padded_dim(
              max(info.num_values, aggregators.MIN_DIM))), secure=True)


NAMES: Tuple[str, ...] = tuple(_REGISTRY)


def describe() -> str:
  """One line for each aggregator, with its settings and their defaults."""
  lines = []
  for name, entry in _REGISTRY.items():
    settings = ', '.join(
        f'{key}=' + ('...' if default is _REQUIRED else
                     'auto' if default is None else str(default).lower())
        for key, (_, default) in entry.settings.items())
    lines.append(f'{name}{":" if settings else ""}{settings} ({entry.summary})')
  return '; '.join(lines)

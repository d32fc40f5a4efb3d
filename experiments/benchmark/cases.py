# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What `timing` times: this package's work, and that of TFF and TFMOT."""

import collections
import importlib
from typing import Any, Callable, Sequence

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from experiments.benchmark import summary
import tff_autotune_secagg as autotune
from tff_autotune_secagg.numerics import round_codec
from tff_autotune_secagg.numerics.download import low_bit_leaves
from tff_autotune_secagg.numerics.prediction import past_sums
from tff_autotune_secagg.numerics.rotation import hadamard
from tff_autotune_secagg.numerics.rotation import randomized_hadamard
from tff_autotune_secagg.numerics.rounding import quantization
from tff_autotune_secagg.numerics.tuning import wrapped_normal_tuner

OURS = summary.OURS

_SEED = (20_260_101, 7)
_DOWNLOAD_BITS = (8, 4)


def _private(module: str):
  """Imports a TFF or TFMOT module whose functions have no public name.

  Without them a transform or one client's work can not be timed by itself.
  """
  return importlib.import_module(module)


def _copy(x):
  return tf.raw_ops.DeepCopy(x=x)


def _tff_rotate(x, seed):
  """What a client of `HadamardTransformFactory` computes."""
  module = _private('tensorflow_federated.python.aggregators.rotation')
  x = module._pad_zeros_pow2(x)  # pylint: disable=protected-access
  signs = module.sample_rademacher(tf.shape(x), x.dtype, seed)
  return _tff_transform(x * signs)


def _tff_transform(x):
  module = _private('tensorflow_federated.python.aggregators.hadamard')
  return module.fast_walsh_hadamard_transform(x[tf.newaxis])[0]


def _tff_round(x, scale):
  """What a client of TFF's stochastic discretization computes."""
  module = _private('tensorflow_federated.python.aggregators.discretization')
  return module._discretize_struct(  # pylint: disable=protected-access
    x, scale, stochastic=True, beta=0.0, prior_norm_bound=1e6
  )


def _tfmot_stage(name):
  stages = _private(
    'tensorflow_model_optimization.python.core.internal.tensor_encoding.stages'
  )
  return getattr(stages, name)()


def _tfmot_encode(x):
  stage = _tfmot_stage('HadamardEncodingStage')
  params, _ = stage.get_params()
  return list(stage.encode(x, params).values())[0]


def _transforms(dim: int):
  """Cases of group `transform`: functions of one vector of `dim` values."""
  order = hadamard.padded_dim(dim)
  power = 1 << (dim - 1).bit_length()

  def at_size(function, size):
    value = tf.random.stateless_normal([size], _SEED)
    return function, value

  return {
    summary.COPY: at_size(_copy, dim),
    OURS: at_size(hadamard.transform, order),
    OURS + ' inverse': at_size(hadamard.inverse_transform, order),
    'TFF Hadamard': at_size(_tff_transform, power),
  }


def _codec(dim: int, modulus: int):
  """Returns the codec of a rotated vector, and its tuner's state and bins."""
  tuner = wrapped_normal_tuner.WrappedNormalTuner(modulus=modulus)
  state = tuner.initial_state()
  state['bin_size'] = tf.constant(0.05)
  state['calibrating'] = tf.constant(False)
  spec = tf.TensorSpec([hadamard.padded_dim(dim)], tf.float32)
  codec = round_codec.RoundCodec(tuner, [spec])
  return codec, state, tuner.bin_sizes(state)


def _encoders(dim: int, modulus: int):
  """Cases of group `encode`: from a client's vector to what it sends."""
  value = tf.random.stateless_normal([dim], _SEED)
  seed = tf.constant(_SEED, tf.int64)
  codec, _, bin_sizes = _codec(dim, modulus)

  def ours(x):
    rotated = randomized_hadamard.rotate(x, seed)
    return codec.encode([rotated], bin_sizes, seed, seed)

  functions = {
    summary.COPY: _copy,
    OURS: ours,
    OURS + ' rotation only': lambda x: randomized_hadamard.rotate(x, seed),
    'TFF Hadamard + discretization': lambda x: _tff_round(
      _tff_rotate(x, seed), 20.0
    ),
    'TFF Hadamard only': lambda x: _tff_rotate(x, seed),
    'TFMOT Hadamard stage': _tfmot_encode,
  }
  return {name: (function, value) for name, function in functions.items()}


def _decoders(dim: int, modulus: int):
  """Cases of group `decode`: from the server's sum to the summed vector."""
  order = hadamard.padded_dim(dim)
  power = 1 << (dim - 1).bit_length()
  seed = tf.constant(_SEED, tf.int64)
  codec, state, _ = _codec(dim, modulus)
  past = past_sums.initial_state(dim)
  past['total'] += tf.random.stateless_normal([dim], _SEED)
  counts = collections.OrderedDict(
    contributing=tf.constant(10), rejected=tf.constant(0)
  )
  normal = tf.random.stateless_normal([order], _SEED) * (modulus / 10.0)
  residues = quantization.reduce_modulo(
    tf.cast(tf.round(normal), tf.int32), modulus
  )

  def ours(x):
    (decoded,), next_state, measured = codec.decode([x], counts, state, seed)
    return (
      randomized_hadamard.inverse_rotate(decoded, seed, dim),
      next_state,
      measured,
    )

  def predicted(x):
    expected = past_sums.predict(past, counts['contributing'])
    expected = randomized_hadamard.rotate(expected, seed)
    (decoded,), next_state, measured = codec.decode(
      [x], counts, state, seed, [expected]
    )
    decoded = randomized_hadamard.inverse_rotate(decoded, seed, dim)
    next_past = past_sums.update(
      past, decoded, counts['contributing'], tf.constant(True)
    )
    return decoded, next_state, measured, next_past

  def theirs(x):
    module = _private('tensorflow_federated.python.aggregators.rotation')
    x = _tff_transform(tf.cast(x, tf.float32) * 0.05)
    return x * module.sample_rademacher(tf.shape(x), x.dtype, seed)

  return {
    summary.COPY: (_copy, residues[:dim]),
    OURS: (ours, residues),
    summary.PREDICTED_DECODING: (predicted, residues),
    'TFF Hadamard + discretization': (theirs, tf.zeros([power], tf.int32)),
  }


def _model_codec(dim: int, bits: int):
  """Returns the codec of a model of one tensor, and its weights."""
  codec = low_bit_leaves.LowBitLeaves(
    [tf.TensorSpec([dim], tf.float32)], num_trainable=1, bits=bits
  )
  return codec, tf.random.stateless_normal([dim], _SEED)


def _model_encoders(dim: int):
  """Cases of group `download encode`: from the model to what goes down.

  TFF's own broadcast takes the model as it is: the copy.
  """
  cases = {summary.COPY: (_copy, _model_codec(dim, 8)[1])}
  for bits in _DOWNLOAD_BITS:
    codec, model = _model_codec(dim, bits)
    cases[f'{OURS} {bits} bits'] = (
      lambda x, codec=codec: codec.encode([x], tf.constant(_SEED, tf.int64)),
      model,
    )
  return cases


def _model_decoders(dim: int):
  """Cases of group `download decode`: from what went down to the model."""
  cases = {summary.COPY: (_copy, _model_codec(dim, 8)[1])}
  for bits in _DOWNLOAD_BITS:
    codec, model = _model_codec(dim, bits)
    message, _ = codec.encode([model], tf.constant(_SEED, tf.int64))
    cases[f'{OURS} {bits} bits'] = codec.decode, message
  return cases


_LOCAL = {
  'transform': lambda dim, _: _transforms(dim),
  'encode': _encoders,
  'decode': _decoders,
  'download encode': lambda dim, _: _model_encoders(dim),
  'download decode': lambda dim, _: _model_decoders(dim),
}


def local_calls(group: str, dim: int, modulus: int):
  """Returns the cases of a group other than `round`: name to call.

  Args:
    group: of `timing.GROUPS`, but no rounds.
    dim: values in a vector, before any padding.
    modulus: of this package's residues.
  """
  cases = _LOCAL[group](dim, modulus)
  return {name: _as_call(*case) for name, case in cases.items()}


def _as_call(function, value) -> Callable[[], Any]:
  graph = tf.function(function, autograph=False)
  return lambda: graph(value)


def _our_mean(modulus: int, *, limits: bool = True, predict_sum: bool = False):
  """Returns this package's mean, with zeroing and clipping or without both."""
  return autotune.autotuned_secure_aggregator(
    modulus=modulus,
    zeroing=limits,
    clipping=limits,
    weighted=False,
    predict_sum=predict_sum,
  )


def _aggregators(num_clients: int, modulus: int):
  """Cases of group `round`: unweighted factories for float32 vectors."""
  discretization = _private(
    'tensorflow_federated.python.aggregators.discretization'
  )
  plain = tff.aggregators.SumFactory()
  rounded = discretization.DiscretizationFactory(
    plain, scale_factor=20.0, stochastic=True, prior_norm_bound=1e6
  )
  return {
    summary.PLAIN_SUM: plain,
    summary.OUR_SUM: autotune.AutotunedSecureSumFactory(modulus=modulus),
    summary.OUR_PREDICTED_SUM: autotune.AutotunedSecureSumFactory(
      modulus=modulus, predict_sum=True
    ),
    summary.OUR_BARE_MEAN: _our_mean(modulus, limits=False),
    summary.OUR_MEAN: _our_mean(modulus),
    summary.OUR_PREDICTED_MEAN: _our_mean(modulus, predict_sum=True),
    'TFF Hadamard': tff.aggregators.HadamardTransformFactory(plain),
    'TFF Fourier': tff.aggregators.DiscreteFourierTransformFactory(plain),
    'TFF Hadamard + discretization': (
      tff.aggregators.HadamardTransformFactory(rounded)
    ),
    'TFF Fourier + discretization': (
      tff.aggregators.DiscreteFourierTransformFactory(rounded)
    ),
    summary.THEIR_BARE_MEAN: tff.learning.secure_aggregator(
      zeroing=False, clipping=False, weighted=False
    ),
    summary.THEIR_MEAN: tff.learning.secure_aggregator(weighted=False),
    'TFF compression_aggregator': tff.learning.compression_aggregator(
      weighted=False
    ),
    # With `zeroing` a bare process of it is too deep for TFF's own protobufs.
    'TFF ddp_secure_aggregator': tff.learning.ddp_secure_aggregator(
      noise_multiplier=0.0,
      expected_clients_per_round=num_clients,
      zeroing=False,
    ),
  }


def check(names: Sequence[str], cohorts: Sequence[int], modulus: int) -> None:
  """Raises ValueError if cases of these settings cannot be built.

  Args:
    names: of cases of group `round`.
    cohorts: numbers of clients in a round.
    modulus: of this package's residues.
  """
  for num_clients in cohorts:
    known = _aggregators(num_clients, modulus)
    for name in names:
      if name not in known:
        raise ValueError(
          f'`aggregators` must be among {", ".join(known)}, found {name!r}.'
        )


class _Rounds:
  """An aggregation process with its state and one set of client values."""

  def __init__(self, factory, values):
    self._process = factory.create(tff.TensorType(np.float32, values[0].shape))
    self._values = values
    self._state = self._process.initialize()

  def __call__(self):
    self._state = self._process.next(self._state, self._values).state


def round_calls(
  dim: int, num_clients: int, modulus: int, names: Sequence[str] = ()
):
  """Returns the aggregators as name to call; each call is the next round.

  Args:
    dim: values in a client's vector.
    num_clients: clients in a round.
    modulus: of this package's residues.
    names: of the cases wanted; all if empty.
  """
  # A few distinct vectors: memory, not the sum, limits the number of clients.
  rng = np.random.default_rng(_SEED)
  vectors = [rng.standard_normal(dim, np.float32) for _ in range(4)]
  values = [vectors[client % len(vectors)] for client in range(num_clients)]
  return {
    name: _Rounds(factory, values)
    for name, factory in _aggregators(num_clients, modulus).items()
    if not names or name in names
  }


class _Downloads:
  """A distribution process, and clients that look at what they get."""

  def __init__(self, process, weights, num_clients: int):
    self._state = process.initialize()
    self._weights = weights
    self._clients = list(range(num_clients))
    state_type, weights_type = process.next.type_signature.parameter

    @tff.tensorflow.computation(weights_type.member, np.int32)
    def look(received, number):
      total = tf.reduce_sum(received.trainable[0])
      return total + tf.cast(number, tf.float32)

    # TFF runs nothing that has clients without a value at them.
    @tff.federated_computation(
      state_type, weights_type, tff.FederatedType(np.int32, tff.CLIENTS)
    )
    def run(state, weights, numbers):
      output = process.next(state, weights)
      looked = tff.federated_map(look, (output.result, numbers))
      return output.state, tff.federated_sum(looked)

    self._run = run

  def __call__(self):
    self._state, _ = self._run(self._state, self._weights, self._clients)


def download_calls(dim: int, num_clients: int):
  """Returns the distributors as name to call; each call is the next round.

  Args:
    dim: values in the model's one tensor.
    num_clients: clients that get it.
  """
  model = np.random.default_rng(_SEED).standard_normal(dim, np.float32)
  weights = tff.learning.models.ModelWeights((model,), ())
  weights_type = tff.types.tensorflow_to_type(
    tff.learning.models.ModelWeights((tf.TensorSpec([dim], tf.float32),), ())
  )
  processes = {
    summary.PLAIN_BROADCAST: (
      tff.learning.templates.build_broadcast_process(weights_type)
    )
  }
  for bits in _DOWNLOAD_BITS:
    processes[f'{OURS} {bits} bits'] = autotune.low_bit_model_distributor(
      weights_type, bits=bits
    )
  return {
    name: _Downloads(process, weights, num_clients)
    for name, process in processes.items()
  }

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
from tff_autotune_secagg.numerics.rotation import hadamard
from tff_autotune_secagg.numerics.rotation import randomized_hadamard
from tff_autotune_secagg.numerics.rounding import quantization
from tff_autotune_secagg.numerics.tuning import wrapped_normal_tuner

OURS = 'tff_autotune_secagg'

_SEED = (20_260_101, 7)


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

  def theirs(x):
    module = _private('tensorflow_federated.python.aggregators.rotation')
    x = _tff_transform(tf.cast(x, tf.float32) * 0.05)
    return x * module.sample_rademacher(tf.shape(x), x.dtype, seed)

  return {
    summary.COPY: (_copy, residues[:dim]),
    OURS: (ours, residues),
    'TFF Hadamard + discretization': (theirs, tf.zeros([power], tf.int32)),
  }


def local_calls(group: str, dim: int, modulus: int):
  """Returns the cases of a group other than `round`: name to call.

  Args:
    group: 'transform', 'encode' or 'decode'.
    dim: values in a vector, before any padding.
    modulus: of this package's residues.
  """
  if group == 'transform':
    cases = _transforms(dim)
  else:
    build = _encoders if group == 'encode' else _decoders
    cases = build(dim, modulus)
  return {name: _as_call(*case) for name, case in cases.items()}


def _as_call(function, value) -> Callable[[], Any]:
  graph = tf.function(function, autograph=False)
  return lambda: graph(value)


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
    OURS + ' sum': autotune.AutotunedSecureSumFactory(modulus=modulus),
    OURS + ' mean': autotune.autotuned_secure_aggregator(
      modulus=modulus, weighted=False
    ),
    'TFF Hadamard': tff.aggregators.HadamardTransformFactory(plain),
    'TFF Fourier': tff.aggregators.DiscreteFourierTransformFactory(plain),
    'TFF Hadamard + discretization': (
      tff.aggregators.HadamardTransformFactory(rounded)
    ),
    'TFF Fourier + discretization': (
      tff.aggregators.DiscreteFourierTransformFactory(rounded)
    ),
    'TFF secure_aggregator': tff.learning.secure_aggregator(weighted=False),
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

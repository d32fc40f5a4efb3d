# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The quantizer as a tensor_encoding stage of TensorFlow Model Optimization.

The arithmetic is that of `QuantizeModFactory` with a fixed bin size. A stage
can be composed with other stages by `EncoderComposer`, and TensorFlow Model
Optimization has conformance tests for stages, which this one passes.
"""

import functools

import tensorflow as tf
from tensorflow_model_optimization.python.core.internal import tensor_encoding

from tff_autotune_secagg import _checks
from tff_autotune_secagg.numerics import seeds
from tff_autotune_secagg.numerics.reading import stripes
from tff_autotune_secagg.numerics.rounding import quantization


def _tf_style(cls):
  """Applies TFMOT's decorator, which all stages need, and keeps the docs."""
  decorated = tensor_encoding.core.tf_style_encoding_stage(cls)
  functools.update_wrapper(decorated.__init__, cls.__init__)
  return functools.update_wrapper(decorated, cls, updated=())


@_tf_style
class QuantizeModEncodingStage(tensor_encoding.core.EncodingStageInterface):
  """Encodes a tensor as residues modulo `modulus` of its bins.

  Encoding:
    Coordinates are divided by the bin size, rounded at random to a neighbouring
    integer and reduced to `0 .. modulus - 1`.
  Decoding:
    Residues, or sums of them whether reduced or not, are read as the integer
    nearest to 0 in their class and multiplied by the bin size.
  Types:
    Float32 tensors of defined shape. The encoded tensor, `ENCODED_VALUES_KEY`,
    is int32 if `modulus` is a power of two, where an overflow of the sum is a
    multiple of the modulus, and int64 otherwise.
  Params:
    `BIN_SIZE_KEY`, the bin size (float32), for both directions.
  Randomness:
    Every execution of `encode` draws its own seed from the system's entropy.

  Guarantees:
    Encoding commutes with sum, and a decoded sum has mean equal to the sum and
    variance at most `bin_size**2 / 4` per summand and coordinate, as long as
    none of the rounded sum leaves half a period, `modulus * bin_size / 2`.

  Reference:
    Bonawitz et al. (2019, arXiv:1912.00131).
  """

  ENCODED_VALUES_KEY = 'residues'
  BIN_SIZE_KEY = 'bin_size'

  @_checks.names_modulus
  def __init__(self, *, modulus: int, bin_size: float):
    """Initializes the stage.

    Args:
      modulus: int in 2 .. 2**30.
      bin_size: positive float, in units of the values.

    Raises:
      TypeError, ValueError: an argument is of the wrong kind or out of range.
    """
    self._modulus = _checks.check_modulus(modulus)
    self._bin_size = _checks.check_float(
      'bin_size', bin_size, at_least=1e-30, at_most=1e30
    )

  @property
  def name(self):
    """See base class."""
    return 'quantize_mod'

  @property
  def compressible_tensors_keys(self):
    """See base class."""
    return [self.ENCODED_VALUES_KEY]

  @property
  def commutes_with_sum(self):
    """See base class."""
    return True

  @property
  def decode_needs_input_shape(self):
    """See base class."""
    return False

  def get_params(self):
    """See base class."""
    params = {self.BIN_SIZE_KEY: tf.constant(self._bin_size, tf.float32)}
    return params, params

  def encode(self, x, encode_params):
    """See base class.

    Raises:
      TypeError: `x` is not float32.
      ValueError: the shape of `x` is not defined.
    """
    if x.dtype != tf.float32:
      raise _checks.type_error('x', 'a float32 tensor', x.dtype.name)
    if not x.shape.is_fully_defined():
      raise _checks.shape_error('x', x.shape)
    bin_sizes = stripes.level(encode_params[self.BIN_SIZE_KEY])
    dtype = quantization.sum_dtype(self._modulus)
    residues = quantization.encode(
      x, bin_sizes, seeds.private_seed(), modulus=self._modulus
    )
    return {self.ENCODED_VALUES_KEY: tf.cast(residues, dtype)}

  def decode(
    self, encoded_tensors, decode_params, num_summands=None, shape=None
  ):
    """See base class."""
    del num_summands, shape  # A zero-centred code needs neither.
    residues = quantization.reduce_modulo(
      encoded_tensors[self.ENCODED_VALUES_KEY], self._modulus
    )
    bins = quantization.centre(residues, self._modulus)
    return tf.cast(bins, tf.float32) * decode_params[self.BIN_SIZE_KEY]

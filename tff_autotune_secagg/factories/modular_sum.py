# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The secure modular sum, exact for every modulus and client count."""

import collections

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_autotune_secagg import _checks
from tff_autotune_secagg.factories import value_types
from tff_autotune_secagg.numerics import quantization


class ModularSecureSumFactory(tff.aggregators.UnweightedAggregationFactory):
  """Sums integers modulo `modulus` by TFF's secure modular sum.

  Built on `tff.aggregators.SecureModularSumFactory`. A backend may add residues
  in the dtype of the value and reduce afterwards, as TFF's simulation does: in
  int32 that is exact for powers of two, where overflow wraps by a multiple of
  the modulus, and wrong for others. They travel as int64.

  At clients: values outside `0 .. modulus - 1` are reduced into it.
  Types: `value_type` is a structure of int32 and int64 tensors; the result has
    the same type.
  State: empty.
  Measurements: none.

  Guarantees: the result is the exact sum modulo `modulus`, in
    `0 .. modulus - 1`, for up to 2**33 clients.
  """

  def __init__(self, *, modulus: int):
    """Initializes the factory.

    Args:
      modulus: int in 2 .. 2**30.

    Raises:
      TypeError, ValueError: `modulus` is not such an int.
    """
    self._modulus = _checks.check_modulus(modulus)

  def create(self, value_type) -> tff.templates.AggregationProcess:
    """Creates the process.

    Args:
      value_type: structure of int32 and int64 tensors.

    Returns:
      A `tff.templates.AggregationProcess`.

    Raises:
      TypeError: `value_type` holds something else.
    """
    value_types.check_integers(value_type)
    modulus = self._modulus
    is_power_of_two = modulus & (modulus - 1) == 0
    wire_dtype = np.int32 if is_power_of_two else np.int64

    @tff.tensorflow.computation(value_type)
    def to_wire(value):
      leaves = [
        tf.cast(quantization.reduce_modulo(leaf, modulus), wire_dtype)
        for leaf in value_types.flatten(value)
      ]
      return value_types.pack(leaves, value_type)

    wire_type = to_wire.type_signature.result
    inner = tff.aggregators.SecureModularSumFactory(wire_dtype(modulus))
    inner_process = inner.create(wire_type)
    specs = value_types.leaf_specs(value_type)

    @tff.tensorflow.computation(wire_type)
    def from_wire(value):
      leaves = value_types.flatten(value)
      leaves = [tf.cast(x, spec.dtype) for x, spec in zip(leaves, specs)]
      return value_types.pack(leaves, value_type)

    @tff.federated_computation(
      inner_process.initialize.type_signature.result,
      tff.FederatedType(value_type, tff.CLIENTS),
    )
    def next_fn(state, value):
      wire_value = tff.federated_map(to_wire, value)
      output = inner_process.next(state, wire_value)
      return tff.templates.MeasuredProcessOutput(
        state=output.state,
        result=tff.federated_map(from_wire, output.result),
        measurements=tff.federated_value(collections.OrderedDict(), tff.SERVER),
      )

    return tff.templates.AggregationProcess(inner_process.initialize, next_fn)

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The secure modular sum, exact for every modulus and client count."""

import tensorflow_federated as tff

from tff_autotune_secagg import _checks
from tff_autotune_secagg.factories import chain
from tff_autotune_secagg.numerics.rounding import quantization
from tff_autotune_secagg.stages import wire


class ExactModularSumFactory(chain.ChainedFactory):
  """Sums integers modulo `modulus` by TFF's secure modular sum.

  Built on `tff.aggregators.SecureModularSumFactory`. A backend may add residues
  in the dtype of the value and reduce afterwards, as TFF's simulation does. In
  int32 that is exact if the modulus is a power of two, where overflow wraps by
  a multiple of the modulus. For other moduli it would be wrong, so the residues
  travel as int64.

  The modulus is the user's. `_checks.check_modulus` checks it here and in the
  tuner. The chain hands `WireStage` the modulus of the stage before it, and
  `WireStage` refuses another one. The stage before, which quantizes or adds the
  noise, writes it into the state, so that a checkpoint of another modulus is
  refused.

  At clients:
    Values outside `0 .. modulus - 1` are reduced into that range.
  Types:
    `value_type` is a structure of int32 and int64 tensors; the result has the
    same type.
  State:
    Empty.
  Measurements:
    None.

  Guarantees:
    The result is the exact sum modulo `modulus`, in `0 .. modulus - 1`, for up
    to 2**33 clients.
  """

  @_checks.names_modulus
  def __init__(self, *, modulus: int):
    """Initializes the factory.

    Args:
      modulus: int in 2 .. 2**30.

    Raises:
      TypeError, ValueError: `modulus` is not such an int.
    """
    modulus = _checks.check_modulus(modulus)
    dtype = quantization.sum_dtype(modulus).as_numpy_dtype
    super().__init__(
      [(wire.WireStage, dict(modulus=modulus))],
      tff.aggregators.SecureModularSumFactory(dtype(modulus)),
    )

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The model on its way down to the clients, in few bits a parameter."""

from typing import Any, Callable, Optional, Union

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_autotune_secagg import _checks
from tff_autotune_secagg.factories import model_distribution
from tff_autotune_secagg.factories import value_types
from tff_autotune_secagg.numerics.download import normal_levels

_OWNER = 'low_bit_model_distributor'


def low_bit_model_distributor(
  model: Union[
    Callable[[], tff.learning.models.VariableModel],
    Callable[[], tff.learning.models.ReconstructionModel],
    tff.learning.models.FunctionalModel,
    tff.Type,
  ],
  *,
  bits: int = 8,
  seed: Optional[int] = None,
) -> tff.learning.templates.DistributionProcess:
  """Returns a `model_distributor=` for TFF's builders of learning processes.

  The server keeps its model as it is. Clients get a rounded one, train it and
  return the change of it, so that what rounding errs does not add up.

  Coded are the trainable float tensors of at least 1,024 values. The others,
  and whatever is not trainable, arrive bit for bit. See docs/download.md.

  State:
    `settings` (`bits`, and `dim`, the parameters that are coded), `seed`
    (int64 [2], public, of the rotations) and `round` (int64).
  Measurements:
    `download_nmse`, float32: the squared error of what clients get over the
    squared norm, of all coded tensors; NaN if the model is not finite.
    `download_bytes_per_client`, int64. `round_measurements` has both.
  Guarantees:
    The mean over the rotations is the model. The squared error of each coded
    tensor is 4.1e-5, 1.6e-4, 6.4e-4, 2.5e-3, 9.6e-3, 3.6e-2 or 0.13 of its
    squared norm at 8, 7, 6, 5, 4, 3 or 2 bits. Zeros arrive as zeros; a model
    that is not finite arrives as NaN.
  Limits:
    Eight bits have cost no accuracy that could be measured. Fewer may, most of
    all in deep networks without normalization.

  Args:
    model: the model function or `FunctionalModel` that the builder gets, or the
      `tff.Type` of its `tff.learning.models.ModelWeights`.
    bits: int in 2 .. 8, of a coded parameter.
    seed: int of 63 bits for rotations that repeat, or None to draw one.

  Returns:
    A `tff.learning.templates.DistributionProcess`.

  Raises:
    TypeError, ValueError: an argument is of the wrong kind or out of range.

  References:
    Vargaftik et al. (2022, arXiv:2108.08842), EDEN.
  """
  bits = _checks.check_int(
    'bits', bits, normal_levels.MIN_BITS, normal_levels.MAX_BITS
  )
  seed = _checks.check_seed(seed)
  return model_distribution.create_process(
    _weights_type(model), bits=bits, seed=seed, owner=_OWNER
  )


def _weights_type(model: Any) -> tff.StructType:
  """Returns the type of a model's `ModelWeights`."""
  if isinstance(model, tff.Type):
    weights_type = model
  elif isinstance(model, tff.learning.models.FunctionalModel):
    trainable, non_trainable = model.initial_weights
    weights_type = tff.types.tensorflow_to_type(
      tff.learning.models.ModelWeights(
        tuple(map(_spec, trainable)), tuple(map(_spec, non_trainable))
      )
    )
  else:
    weights_type = _type_of_variables(model)
  names = []
  if isinstance(weights_type, tff.StructType):
    names = tff.structure.name_list(weights_type)
  if names != ['trainable', 'non_trainable']:
    raise _model_error(weights_type)
  for spec in value_types.leaf_specs(weights_type):
    if not spec.shape.is_fully_defined():
      raise _checks.shape_error('model', spec.shape)
  return weights_type


def _type_of_variables(model: Any) -> tff.StructType:
  """Returns the type of the weights that a model with variables shares."""
  if callable(model):
    with tf.Graph().as_default():  # Its variables are no one else's concern.
      model = model()
  models = tff.learning.models
  if isinstance(model, models.ReconstructionModel):
    # What each client reconstructs for itself never travels.
    weights = models.ReconstructionModel.get_global_variables(model)
  elif isinstance(model, models.VariableModel):
    weights = models.ModelWeights.from_model(model)
  else:
    raise _model_error(type(model).__name__)
  specs = tf.nest.map_structure(
    lambda v: tf.TensorSpec(v.shape, v.dtype), weights
  )
  return tff.types.tensorflow_to_type(specs)


def _model_error(found: Any) -> TypeError:
  return _checks.type_error(
    'model',
    'a model function, a `tff.learning.models.FunctionalModel` or the type of'
    ' `tff.learning.models.ModelWeights`',
    found,
  )


def _spec(weight: Any) -> tf.TensorSpec:
  array = np.asarray(weight)
  return tf.TensorSpec(array.shape, array.dtype)

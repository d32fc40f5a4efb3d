# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Seeded randomized Hadamard rotation around an inner aggregation."""

import collections
from typing import Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_autotune_secagg import _checks
from tff_autotune_secagg.factories import state_guard
from tff_autotune_secagg.factories import value_types
from tff_autotune_secagg.numerics import hadamard
from tff_autotune_secagg.numerics import seeds


class HadamardRotationFactory(tff.aggregators.UnweightedAggregationFactory):
  """Rotates every tensor before the inner aggregation, and back after it.

  At clients: each leaf x of d entries becomes H D x, a vector of the smallest
    Hadamard order that is at least d, with random signs D and an orthonormal
    Hadamard matrix H; `num_repeats` times. Its entries then look like samples
    of a normal of variance |x|^2 / order.
  At server: the inner result, which must be linear in the clients' vectors, is
    rotated back and cropped.
  Types: `value_type` is a structure of float16, bfloat16, float32 and float64
    tensors. The inner factory is created for the same structure of vectors, in
    float64 for float64 leaves and float32 otherwise. The result type equals
    `value_type`.
  State: `settings`, `seed` (int64 [2]), `round` (int64, rounds so far) and
    `inner`.
  Measurements: those of the inner process.
  Randomness: the signs of a round come from the stored seed and the round
    number, so that all clients rotate alike and a restored state continues with
    the same rotations. The seed is public.

  Guarantees: the rotation preserves the norm and is undone exactly up to the
    rounding of the dtype; the signs are exactly +1 or -1.
  Limits: after one repeat, a leaf with j equal nonzero entries has entries of
    excess kurtosis -2 / j; two repeats make it normal as well.

  References: Ailon and Chazelle (2009); Suresh et al. (2017, arXiv:1611.00429).
  """

  def __init__(
    self,
    inner_factory: tff.aggregators.UnweightedAggregationFactory,
    *,
    num_repeats: int = 1,
    min_dim: int = 1,
    seed: Optional[int] = None,
  ):
    """Initializes the factory.

    Args:
      inner_factory: aggregates the rotated vectors.
      num_repeats: rotations one after the other, 1 to 8.
      min_dim: leaves of fewer entries are padded with zeros to so many first.
      seed: int of 0 .. 2**63 - 1, or None to draw one in every `initialize`.

    Raises:
      TypeError, ValueError: an argument is of the wrong kind or out of range.
    """
    self._inner_factory = value_types.check_sum_factory(
      'inner_factory', inner_factory
    )
    self._num_repeats = _checks.check_int('num_repeats', num_repeats, 1, 8)
    self._min_dim = _checks.check_int('min_dim', min_dim, 1)
    self._seed = _checks.check_seed(seed)

  def create(self, value_type) -> tff.templates.AggregationProcess:
    """Creates the process.

    Args:
      value_type: structure of float tensors of defined shape.

    Returns:
      A `tff.templates.AggregationProcess`.

    Raises:
      TypeError: `value_type` holds something else.
    """
    value_types.check_floats(value_type)
    specs = value_types.leaf_specs(value_type)
    settings = collections.OrderedDict(
      dim=value_types.num_entries(value_type), num_repeats=self._num_repeats
    )
    repeats, min_dim = self._num_repeats, self._min_dim

    @tff.tensorflow.computation
    def own_state():
      return collections.OrderedDict(
        settings=state_guard.as_state(settings),
        **seeds.initial_state(self._seed, seeds.ROTATION_STREAM),
      )

    @tff.tensorflow.computation(own_state.type_signature.result)
    def seed_of_round(state):
      return seeds.round_seed(state)

    seed_type = seed_of_round.type_signature.result

    @tff.tensorflow.computation(value_type, seed_type)
    def rotate(value, seed):
      leaves = value_types.flatten(value)
      rotated = [
        _rotate_leaf(leaf, _leaf_seed(seed, index), repeats, min_dim)
        for index, leaf in enumerate(leaves)
      ]
      return value_types.pack(rotated, value_type)

    rotated_type = rotate.type_signature.result
    inner_process = self._inner_factory.create(rotated_type)

    @tff.tensorflow.computation(rotated_type, own_state.type_signature.result)
    def rotate_back(value, state):
      seed = seeds.round_seed(state)
      leaves = [
        _rotate_leaf_back(leaf, _leaf_seed(seed, index), spec, repeats, min_dim)
        for index, (leaf, spec) in enumerate(
          zip(value_types.flatten(value), specs)
        )
      ]
      next_state = collections.OrderedDict(
        settings=state_guard.checked(
          state['settings'], settings, 'HadamardRotationFactory'
        ),
        **seeds.next_state(state),
      )
      return value_types.pack(leaves, value_type), next_state

    @tff.federated_computation
    def init_fn():
      own = tff.federated_eval(own_state, tff.SERVER)
      return _join(own, inner_process.initialize())

    @tff.federated_computation(
      init_fn.type_signature.result,
      tff.FederatedType(value_type, tff.CLIENTS),
    )
    def next_fn(state, value):
      # Server to clients.
      own = tff.federated_zip(
        collections.OrderedDict(
          settings=state['settings'],
          seed=state['seed'],
          round=state['round'],
        )
      )
      seed = tff.federated_broadcast(tff.federated_map(seed_of_round, own))

      # Client computation and inner aggregation.
      rotated = tff.federated_map(rotate, (value, seed))
      inner = inner_process.next(state['inner'], rotated)

      # Server computation.
      result, own = tff.federated_map(rotate_back, (inner.result, own))
      return tff.templates.MeasuredProcessOutput(
        state=_join(own, inner.state),
        result=result,
        measurements=inner.measurements,
      )

    return tff.templates.AggregationProcess(init_fn, next_fn)


def _join(own, inner):
  """Returns the factory's state with the inner one beside its own fields."""
  return tff.federated_zip(
    collections.OrderedDict(
      settings=own['settings'],
      seed=own['seed'],
      round=own['round'],
      inner=inner,
    )
  )


def _leaf_seed(seed: tf.Tensor, index: int) -> tf.Tensor:
  """Returns a seed of its own for each leaf of a structure."""
  return tf.random.experimental.stateless_fold_in(seed, index)


def _rotate_leaf(leaf, seed, num_repeats, min_dim):
  """Returns the rotated leaf as a vector; an empty leaf stays empty."""
  dtype = value_types.working_dtype(leaf.dtype)
  flat = tf.reshape(tf.cast(leaf, dtype), [-1])
  dim = flat.shape.num_elements()
  if not dim:
    return flat
  flat = tf.pad(flat, [[0, max(0, min_dim - dim)]])
  return hadamard.rotate(flat, seed, num_repeats=num_repeats)


def _rotate_leaf_back(vector, seed, spec, num_repeats, min_dim):
  """Inverse of `_rotate_leaf` for a leaf of the given spec."""
  dim = spec.shape.num_elements()
  if dim:
    vector = hadamard.inverse_rotate(
      vector, seed, max(dim, min_dim), num_repeats=num_repeats
    )[:dim]
  return tf.cast(tf.reshape(vector, spec.shape), spec.dtype)

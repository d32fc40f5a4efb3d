# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The one place that wires: stages around an inner aggregation.

However many stages there are, a client runs one computation, and the server one
before and one after the inner sum.
"""

from typing import (
  Any,
  List,
  Mapping,
  NamedTuple,
  Optional,
  Sequence,
  Tuple,
  Type,
)

import tensorflow as tf
import tensorflow_federated as tff

from tff_autotune_secagg.factories import default_context
from tff_autotune_secagg.factories import value_types
from tff_autotune_secagg.stages import stage

# The class of a stage, and the arguments it takes beside the leaves' specs.
StageBuilder = Tuple[Type[stage.Stage], Mapping[str, Any]]


class ChainedFactory(tff.aggregators.UnweightedAggregationFactory):
  """Base of the factories that are stages around an inner factory.

  If such a factory is the inner factory of another, both are wired together:
  their stages form one chain.
  """

  def __init__(
    self,
    builders: Sequence[StageBuilder],
    inner_factory: tff.aggregators.UnweightedAggregationFactory,
  ):
    """Initializes the factory.

    Args:
      builders: one for each stage, the clients' order.
      inner_factory: aggregates what the last stage passes on.
    """
    self._builders = list(builders)
    self._inner_factory = inner_factory

  def create(self, value_type) -> tff.templates.AggregationProcess:
    """Creates the process.

    Args:
      value_type: structure of tensors of defined shape: int32 or int64 for
        `ExactModularSumFactory`, floats for all others.

    Returns:
      A `tff.templates.AggregationProcess`.

    Raises:
      TypeError: `value_type` holds something else.
    """
    return create_process(self._builders, self._inner_factory, value_type)

  def unchain(self) -> Tuple[List[StageBuilder], Any]:
    """Returns all stages, and the factory behind the last one."""
    return _unchain(self._builders, self._inner_factory)


def create_process(
  builders: Sequence[StageBuilder],
  inner_factory: tff.aggregators.UnweightedAggregationFactory,
  value_type: tff.Type,
  weight_type: Optional[tff.Type] = None,
  *,
  inner_takes_weight: bool = False,
) -> tff.templates.AggregationProcess:
  """Creates the aggregation process of a chain of stages.

  Args:
    builders: one for each stage, the clients' order.
    inner_factory: aggregates what the last stage passes on.
    value_type: structure of tensors of defined shape.
    weight_type: of a client's weight, a scalar; None for a process without
      weights.
    inner_takes_weight: whether the weight goes to the inner factory as it is.
      If not, the first stage gets it behind the value's leaves.

  Returns:
    A `tff.templates.AggregationProcess`.

  Raises:
    TypeError: `value_type` does not fit a stage.
  """
  default_context.warn_once()
  builders, inner_factory = _unchain(builders, inner_factory)
  stages, inner_value_type = _build(builders, value_type)
  weight_types = () if weight_type is None else (weight_type,)
  to_first, to_inner = weight_types, ()
  if inner_takes_weight:
    to_first, to_inner = to_inner, to_first
  inner_process = inner_factory.create(inner_value_type, *to_inner)
  encoded_types = (value_type, *to_first)
  chain = _compute(stages, encoded_types, inner_value_type, inner_process)
  return _wire(chain, inner_process, encoded_types, to_inner)


def _wire(chain, inner_process, encoded_types, inner_weight_types):
  """Returns the process of a chain around `inner_process`."""
  num_encoded = len(encoded_types)

  @tff.federated_computation
  def init_fn():
    return tff.federated_map(chain.initialize, inner_process.initialize())

  def run_round(state, *arguments):
    # Server to clients.
    prepared = tff.federated_map(chain.prepare, state)
    parameters = tff.federated_broadcast(prepared[1])

    # Client computation.
    to_encode, to_inner = arguments[:num_encoded], arguments[num_encoded:]
    encoded = tff.federated_map(chain.encode, (*to_encode, parameters))

    # Inner aggregation.
    inner = inner_process.next(prepared[0], encoded[0], *to_inner)
    if chain.limits:
      sums = tff.federated_secure_sum(encoded[1], max_input=chain.limits)
    else:
      sums = tff.federated_value((), tff.SERVER)

    # Server computation.
    decoded = tff.federated_map(
      chain.decode,
      (state, inner.state, inner.result, inner.measurements, sums),
    )
    return tff.templates.MeasuredProcessOutput(
      state=decoded[0], result=decoded[1], measurements=decoded[2]
    )

  argument_types = (*encoded_types, *inner_weight_types)
  # TFF takes no `*arguments`.
  if len(argument_types) > 1:

    def next_fn(state, value, weight):
      return run_round(state, value, weight)

  else:

    def next_fn(state, value):
      return run_round(state, value)

  next_fn = tff.federated_computation(
    next_fn,
    init_fn.type_signature.result,
    *(tff.FederatedType(t, tff.CLIENTS) for t in argument_types),
  )
  return tff.templates.AggregationProcess(init_fn, next_fn)


def _unchain(builders, inner_factory):
  """Returns all stage builders up to the first factory that has no stages."""
  # A factory with its own `create` is more than its stages.
  if getattr(type(inner_factory), 'create', None) is ChainedFactory.create:
    more, inner_factory = inner_factory.unchain()
    return [*builders, *more], inner_factory
  return list(builders), inner_factory


def _build(builders, value_type):
  """Builds each stage for what the one before it passes on.

  Returns:
    The stages, and the type of the structure that the last one passes on.
  """
  stages = []
  for stage_class, options in builders:
    if stage_class.takes_integers:
      value_types.check_integers(value_type)
      in_modulus = stages[-1].out_modulus if stages else None
      options = dict(options, in_modulus=in_modulus)
    else:
      value_types.check_floats(value_type)
    made = stage_class(value_types.leaf_specs(value_type), **options)
    value_type = value_types.with_leaves(
      value_type if made.keeps_structure else None, made.out_specs
    )
    stages.append(made)
  return stages, value_type


class _Chain(NamedTuple):
  """The TensorFlow computations of a chain.

  Attributes:
    initialize: inner state -> state.
    prepare: state -> inner state, parameters of all stages.
    encode: a client's arguments, parameters -> value for the inner aggregation,
      signals of the stages that have some.
    limits: largest values of these signals.
    decode: state, next inner state, inner result, inner measurements, summed
      signals -> next state, result, measurements.
  """

  initialize: tff.Computation
  prepare: tff.Computation
  encode: tff.Computation
  limits: Tuple[Any, ...]
  decode: tff.Computation


def _compute(stages, argument_types, inner_value_type, inner_process) -> _Chain:
  """Returns the computations of a chain around `inner_process`."""
  value_type = argument_types[0]
  inner_type = inner_process.next.type_signature.result

  @tff.tensorflow.computation(inner_type.state.member)
  def initialize(inner_state):
    state = inner_state
    for made in reversed(stages):
      state = stage.initial_state(made, state)
    return state

  state_type = initialize.type_signature.result

  @tff.tensorflow.computation(state_type)
  def prepare(state):
    own_states, inner_state = _unnest(stages, state)
    parameters = []
    for made, (settings, own) in zip(stages, own_states):
      # No client hears of a state with other settings.
      with tf.control_dependencies(list(settings.values())):
        found = tf.nest.map_structure(tf.identity, made.parameters(own))
      parameters.append(found)
    return inner_state, tuple(parameters)

  parameters_type = prepare.type_signature.result[1]

  @tff.tensorflow.computation(tff.to_type((*argument_types, parameters_type)))
  def encode(arguments):
    *values, parameters = arguments
    leaves = [leaf for v in values for leaf in value_types.flatten(v)]
    signals = []
    for made, of_stage in zip(stages, parameters):
      leaves, found = made.encode(leaves, of_stage)
      if made.signal_limits:
        signals.append(found)
    return value_types.pack(leaves, inner_value_type), tuple(signals)

  @tff.tensorflow.computation(
    state_type,
    inner_type.state.member,
    inner_type.result.member,
    inner_type.measurements.member,
    encode.type_signature.result[1],
  )
  def decode(state, inner_state, result, measurements, sums):
    own_states, _ = _unnest(stages, state)
    state, sums = inner_state, list(sums)
    leaves = value_types.flatten(result)
    for made, (settings, own) in reversed(list(zip(stages, own_states))):
      found = sums.pop() if made.signal_limits else ()
      leaves, own, measured = made.decode(leaves, found, own)
      state = stage.nest_state(made, settings, own, state)
      measurements = stage.nest_measurements(made, measured, measurements)
    return state, value_types.pack(leaves, value_type), measurements

  limits = tuple(made.signal_limits for made in stages if made.signal_limits)
  return _Chain(initialize, prepare, encode, limits, decode)


def _unnest(stages, state):
  """Returns checked settings and state of each stage, and the inner state."""
  own_states, checked = [], []
  for made in stages:
    # In order: the error names the outermost setting that differs.
    with tf.control_dependencies(checked):
      settings, own, state = stage.unnest_state(made, state)
    checked = checked + list(settings.values())
    own_states.append((settings, own))
  return own_states, state

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""A stage: one aspect of an aggregation, at clients and at the server.

The section "Adding a stage" of CONTRIBUTING.md has a whole one.
"""

import abc
import collections
from typing import Any, List, Mapping, Optional, Sequence, Tuple, Union

import tensorflow as tf

from tff_autotune_secagg.stages import state_guard


class Stage(abc.ABC):
  """Changes what clients send, and undoes the change on the sum.

  The idea is that of tensor_encoding's stages and of optax's transformations:
  a stage is four pure functions on tensors, and knows nothing of the stages
  around it. Values are lists of leaves; a structure's containers are put back
  by whoever wires the stages.

  In a round, the server computes `parameters` from the stage's state and sends
  them to the clients. Each client runs `encode`; leaves go on to the next
  stage, signals are integers that are summed securely by themselves. The server
  runs `decode` on the sum and on the summed signals.

  Whoever wires the stages constructs them, with the specs of the leaves that
  come in as the only positional argument and the stage's own settings by name.
  The constructor of a stage that `takes_integers` is given `in_modulus` as
  well, used or not: the `out_modulus` of the stage before it, or None if the
  integers can be any.

  A new stage defines `encode` and `decode`, and of the rest what it changes:
  `out_specs` if other leaves leave than come in, `parameters` if clients need
  something of the state, `initial_state`, `settings` and `signal_limits` if it
  has some. `nest_state` and `nest_measurements` put its state and measurements
  around those of the stages behind; its methods see its own state only, without
  the settings.
  """

  # Whether leaves are integers; float16, bfloat16, float32 or float64 if not.
  takes_integers = False
  # Whether there is one leaf out for each leaf in, in the same containers.
  keeps_structure = True
  # Modulus of the residues that leave the stage; None if they are no residues.
  out_modulus: Optional[int] = None
  # Largest value of each signal of a client, by name.
  signal_limits: Mapping[str, int] = collections.OrderedDict()
  # The settings, by name, that a state must have been written with. A state
  # with other settings is refused in the name of `owner`. A setting from which
  # others follow comes first.
  settings: Mapping[str, Union[int, float]] = collections.OrderedDict()
  owner = ''
  # The name of what the stages behind have, in state and measurements; it comes
  # first. None: `inner`, which comes last, if the stage has some of its own.
  level: Optional[str] = None
  # Whether measurements of the stages behind stand beside the stage's own.
  measures_on_one_level = False

  def __init__(self, specs: Sequence[tf.TensorSpec]):
    """Initializes the stage for leaves of these specs."""
    self._specs = list(specs)
    # Of the leaves that `encode` returns.
    self.out_specs = self._specs

  def initial_state(self) -> collections.OrderedDict:
    """Returns the state before the first round: named tensors, or none."""
    return collections.OrderedDict()

  def parameters(self, state: collections.OrderedDict) -> Any:
    """Returns what clients need of the state: a structure of tensors."""
    del state  # Unused.
    return collections.OrderedDict()

  @abc.abstractmethod
  def encode(
    self, leaves: Sequence[tf.Tensor], parameters: Any
  ) -> Tuple[List[tf.Tensor], collections.OrderedDict]:
    """Returns the leaves that one client passes on, and its signals."""

  @abc.abstractmethod
  def decode(
    self,
    leaves: Sequence[tf.Tensor],
    signals: collections.OrderedDict,
    state: collections.OrderedDict,
  ) -> Tuple[List[tf.Tensor], collections.OrderedDict, collections.OrderedDict]:
    """Returns the sum before `encode`, the next state and measurements."""


def initial_state(made: Stage, inner: Any) -> Any:
  """Returns the nested state before the first round."""
  settings = state_guard.as_state(made.settings)
  return nest_state(made, settings, made.initial_state(), inner)


def nest_state(
  made: Stage,
  settings: collections.OrderedDict,
  own: collections.OrderedDict,
  inner: Any,
) -> Any:
  """Returns a stage's state with that of the stages behind it."""
  if settings:
    own = collections.OrderedDict(settings=settings, **own)
  return _nest(made, own, inner)


def unnest_state(
  made: Stage, state: Any
) -> Tuple[collections.OrderedDict, collections.OrderedDict, Any]:
  """Returns the arguments of `nest_state`, settings after a check.

  Raises:
    tf.errors.InvalidArgumentError: when run, if a setting differs.
  """
  settings = state_guard.assert_settings(
    state['settings'] if made.settings else {}, made.settings, made.owner
  )
  names = made.initial_state()
  own = collections.OrderedDict((name, state[name]) for name in names)
  if made.level or settings or own:
    state = state[made.level or 'inner']
  return settings, own, state


def nest_measurements(
  made: Stage, own: collections.OrderedDict, inner: Any
) -> Any:
  """Returns a stage's measurements with those of the stages behind it."""
  if made.measures_on_one_level:
    # What has no measurements has an empty tuple.
    return collections.OrderedDict([*own.items(), *dict(inner).items()])
  return _nest(made, own, inner)


def _nest(made, own, inner):
  """Returns both on two levels; `inner` itself if the stage adds nothing."""
  if made.level:
    return collections.OrderedDict([(made.level, inner), *own.items()])
  if own:
    return collections.OrderedDict([*own.items(), ('inner', inner)])
  return inner

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Settings that a factory writes into its state and checks in every round.

A checkpoint of another modulus or size has the same types as the right
checkpoint. Only its content can tell the two apart: the settings.
"""

import collections
from typing import Any, List, Mapping, Union

import tensorflow as tf

from tff_autotune_secagg import _checks


def as_state(settings: Mapping[str, Union[int, float]]):
  """Returns the settings as named scalars, int64 or float64."""
  return collections.OrderedDict(
    (name, _as_scalar(value)) for name, value in settings.items()
  )


def _as_scalar(value):
  is_float = isinstance(value, float)
  return tf.constant(value, tf.float64 if is_float else tf.int64)


def assert_settings(
  state: collections.OrderedDict,
  settings: Mapping[str, Union[int, float]],
  owner: str,
) -> collections.OrderedDict:
  """Returns settings found in a state, once they are known to be `settings`.

  Args:
    state: what `as_state` wrote when the state was initialized.
    settings: the settings of the running factory.
    owner: name of the factory, for the error.

  Returns:
    Tensors equal to `state`.

  Raises:
    tf.errors.InvalidArgumentError: when run, if a setting differs. The contexts
      of `simulation` turn it into a ValueError.
  """
  found = collections.OrderedDict()
  # What follows from another comes last.
  for name, value in sorted(
    settings.items(), key=lambda item: _checks.follows(item[0])
  ):
    # In order: the error names the first setting that differs.
    with tf.control_dependencies(list(found.values())):
      is_wanted = tf.equal(state[name], _as_scalar(value))
      checks = refuse_unless(is_wanted, name, state[name], owner, value)
    with tf.control_dependencies(checks):
      found[name] = tf.identity(state[name])
  return collections.OrderedDict((name, found[name]) for name in settings)


def refuse_unless(
  is_sound: tf.Tensor, name: str, found: tf.Tensor, owner: str, wanted: Any
) -> List[tf.Operation]:
  """Returns a check that fails, when run, unless a scalar of a state is sound.

  Args:
    is_sound: bool scalar.
    name: of the scalar in the state.
    found: the scalar.
    owner: as in `assert_settings`.
    wanted: what it should be, for the error.

  Returns:
    Operations, for `tf.control_dependencies`; none where TensorFlow runs them
    at once.
  """
  told = tf.strings.format('{}', found)
  for value, word in _checks.setting_words(name).items():
    told = tf.where(tf.equal(found, tf.cast(value, found.dtype)), word, told)
  before, after = _checks.refused_state(name, '{}', owner, wanted).split('{}')
  sentence = tf.strings.join([before, told, after])
  check = tf.debugging.Assert(is_sound, [sentence])
  return [] if check is None else [check]

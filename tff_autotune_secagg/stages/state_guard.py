# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Settings that a factory writes into its state and checks in every round.

A checkpoint of another modulus or size has the same types as the right one, so
that nothing but its content can tell. The settings are that content.
"""

import collections
from typing import Mapping

import tensorflow as tf

from tff_autotune_secagg import _checks


def as_state(settings: Mapping[str, int]) -> collections.OrderedDict:
  """Returns the settings as named int64 scalars."""
  return collections.OrderedDict(
    (name, tf.constant(value, tf.int64)) for name, value in settings.items()
  )


def assert_settings(
  state: collections.OrderedDict, settings: Mapping[str, int], owner: str
) -> collections.OrderedDict:
  """Returns settings found in a state, after checking that they are these.

  Args:
    state: what `as_state` wrote when the state was initialized.
    settings: the settings of the running factory.
    owner: name of the factory, for the error.

  Returns:
    Tensors equal to `state`.

  Raises:
    tf.errors.InvalidArgumentError: when run, if one differs. The contexts of
      `simulation` turn it into a ValueError.
  """
  checks = []
  for name, value in settings.items():
    wanted = tf.constant(value, tf.int64)
    sentence = _checks.refused_state(name, '{}', owner, value)
    message = tf.strings.format(sentence, state[name])
    checks.append(tf.debugging.Assert(tf.equal(state[name], wanted), [message]))
  with tf.control_dependencies([c for c in checks if c is not None]):
    return collections.OrderedDict(
      (name, tf.identity(state[name])) for name in settings
    )

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a tuner returns, held to what it must return.

A user may write a tuner. What is wrong with it is said in words where
TensorFlow traces it, that is in `create`; values that only a round shows are
refused in the round.
"""

import collections
from typing import Any, List, Tuple

import tensorflow as tf
import tree

from tff_autotune_secagg import _checks
from tff_autotune_secagg.numerics.reading import fitting
from tff_autotune_secagg.numerics.reading import stripes
from tff_autotune_secagg.numerics.tuning import tuners


class CheckedTuner(tuners.Tuner):
  """Another tuner, whose answers are checked and have the dtypes they must.

  Methods raise a TypeError that names the other tuner's class, its method, the
  rule and what was found.
  """

  def __init__(self, tuner: tuners.Tuner):
    """Initializes the tuner.

    Args:
      tuner: whose answers to give.
    """
    super().__init__(
      modulus=tuner.modulus, rounding=tuner.rounding, decoding=tuner.decoding
    )
    self._tuner = tuner
    self._name = type(tuner).__name__

  @property
  def calibrates(self) -> bool:
    """See base class."""
    return self._tuner.calibrates

  @property
  def centres_lost_rounds(self) -> bool:
    """See base class."""
    return self._tuner.centres_lost_rounds

  def check_first_bins(self) -> None:
    """Raises ValueError if no first round can be run."""
    # Values are known here, even if somebody traces `create`.
    with tf.init_scope():
      bin_sizes = self.bin_sizes(self.initial_state())
      if not _are_usable(bin_sizes):
        sentence = self._refusal('{:g}', '{:g}')
        raise ValueError(sentence.format(*map(float, _ends(bin_sizes))))

  def refuse_unusable(self, bin_sizes: tf.Tensor) -> List[tf.Operation]:
    """Returns a check that fails, when run, for bins that no round can have.

    Args:
      bin_sizes: float32 [NUM_STRIPES].

    Returns:
      Operations, for `tf.control_dependencies`; none where TensorFlow runs them
      at once.
    """
    sentence = tf.strings.format(
      self._refusal('{}', '{}'), list(_ends(bin_sizes))
    )
    check = tf.debugging.Assert(_are_usable(bin_sizes), [sentence])
    return [] if check is None else [check]

  def initial_state(self) -> Any:
    """Returns the state before the first round, all of it tensors."""
    state = self._ask('initial_state')
    leaves = [
      self._tensor('initial_state', 'tensors', leaf)
      for leaf in tf.nest.flatten(state)
    ]
    return tf.nest.pack_sequence_as(state, leaves)

  def bin_sizes(self, state: collections.OrderedDict) -> tf.Tensor:
    """Returns the bin sizes of the coming round, float32 [NUM_STRIPES]."""
    return self._floats(
      'bin_sizes', self._ask('bin_sizes', state), [stripes.NUM_STRIPES]
    )

  def reported_bin_size(self, state: collections.OrderedDict) -> tf.Tensor:
    """Returns the bin size that a calibration names, float32."""
    return self._floats(
      'reported_bin_size', self._ask('reported_bin_size', state), []
    )

  def next_state(
    self,
    state: collections.OrderedDict,
    fitted: fitting.WrappedNormalFit,
    num_clients: tf.Tensor,
  ) -> collections.OrderedDict:
    """Returns the state after a round, in the containers of the one before."""
    found = self._ask('next_state', state, fitted, num_clients)
    rule = 'the fields and dtypes of the state that it is given'
    try:
      tf.nest.assert_same_structure(state, found)
    except (TypeError, ValueError):
      raise self._error('next_state', rule, _fields(found)) from None
    leaves = []
    for (path, wanted), leaf in zip(
      tree.flatten_with_path(state), tf.nest.flatten(found)
    ):
      leaf = self._tensor('next_state', rule, leaf)
      spec = tf.TensorSpec(wanted.shape, wanted.dtype)
      if not spec.is_compatible_with(leaf):
        where = ' at ' + repr('/'.join(map(str, path))) if path else ''
        raise self._error(
          'next_state', f'{rule}: {_told(spec)}{where}', _told(leaf)
        )
      leaves.append(leaf)
    return tf.nest.pack_sequence_as(state, leaves)

  def size_forecast(
    self, state: collections.OrderedDict
  ) -> Tuple[tf.Tensor, tf.Tensor]:
    """Returns what the tuner believed of the round, two float32."""
    found = self._ask('size_forecast', state)
    if not isinstance(found, (list, tuple)) or len(found) != 2:
      raise self._error('size_forecast', 'two float32 scalars', _told(found))
    size, uncertainty = (
      self._floats('size_forecast', number, []) for number in found
    )
    return size, uncertainty

  def modulus_is_too_small(self, num_clients: tf.Tensor) -> tf.Tensor:
    """Tells whether no bin size serves this many clients well, scalar bool."""
    rule = 'a scalar bool'
    found = self._ask('modulus_is_too_small', num_clients)
    found = self._tensor('modulus_is_too_small', rule, found)
    if found.dtype != tf.bool or found.shape != []:
      raise self._error('modulus_is_too_small', rule, _told(found))
    return found

  def _ask(self, method, *arguments):
    """Returns the tuner's answer."""
    try:
      return getattr(self._tuner, method)(*arguments)
    except tf.errors.OperatorNotAllowedInGraphError:
      raise TypeError(
        f'`{self._name}.{method}` must decide by `tf.where` and'
        ' `tf.logical_and`, found a Python `if`, `and` or the like on a tensor.'
      ) from None

  def _floats(self, method, found, shape):
    """Returns floats as float32, once they have the right shape."""
    rule = 'a float32 scalar'
    if shape:
      rule = (
        f'float32 of shape {tf.TensorShape(shape)}, which `tuning.level` makes'
        ' of a scalar'
      )
    tensor = self._tensor(method, rule, found)
    if not tensor.dtype.is_floating or tensor.shape != shape:
      raise self._error(method, rule, _told(tensor))
    return tf.cast(tensor, tf.float32)

  def _tensor(self, method, rule, found):
    """Returns what a method found as a tensor."""
    try:
      return tf.convert_to_tensor(found)
    except (TypeError, ValueError):
      raise self._error(method, rule, _told(found)) from None

  def _error(self, method, rule, found):
    return TypeError(
      f'`{self._name}.{method}` must return {rule}, found {found}.'
    )

  def _refusal(self, first, last):
    """Returns the sentence that refuses bin sizes."""
    return (
      f'{_checks.BIN_SIZES_REFUSAL} `{self._name}` must be finite, above 0 and'
      f' equal or ascending, found {first} to {last}: mend its `bin_sizes` or'
      ' the state that they come from.'
    )


def _are_usable(bin_sizes):
  """Tells whether a round can have these bins, scalar bool; NaN is not above.

  A descending ladder would be read as one bin size.
  """
  return tf.reduce_all(
    [
      tf.reduce_all(bin_sizes[1:] >= bin_sizes[:-1]),
      bin_sizes[0] > 0.0,
      bin_sizes[-1] < float('inf'),
    ]
  )


def _ends(bin_sizes):
  """Returns the first and the last bin size."""
  return bin_sizes[0], bin_sizes[-1]


def _told(found):
  """Returns a tensor's dtype and shape, or another thing's type, in words."""
  if isinstance(found, tf.TensorSpec) or tf.is_tensor(found):
    return f'{found.dtype.name} of shape {found.shape}'
  return f'{found!r:.40} ({type(found).__name__})'


def _fields(found):
  """Returns the names of a state's fields, or what is in its place."""
  if isinstance(found, dict):
    return f'fields {sorted(map(str, found))}'
  return _told(found)

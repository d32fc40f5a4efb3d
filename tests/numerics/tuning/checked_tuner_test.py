# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a user's tuner may get wrong, and in which words it is told."""

import collections

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests import fits
from tff_autotune_secagg.numerics.reading import stripes
from tff_autotune_secagg.numerics.tuning import checked_tuner
from tff_autotune_secagg.numerics.tuning import tuners

_CLIENTS = tf.constant(3.0, tf.float64)
_BINS = '`Mine.bin_sizes` must return float32 of shape (16,), which'
_BINS += ' `tuning.level` makes of a scalar, found '
_NEXT = '`Mine.next_state` must return the fields and dtypes of the state that'
_NEXT += ' it is given'


class Mine(tuners.Tuner):
  """Right, until a test puts another answer in the place of a method's."""

  def __init__(self, **answers):
    super().__init__(modulus=16)
    for name, answer in answers.items():
      setattr(self, name, lambda *_, answer=answer: answer)

  def initial_state(self):
    return collections.OrderedDict(b=tf.constant(0.5), a=1)

  def bin_sizes(self, state):
    return stripes.level(state['b'])

  def next_state(self, state, fitted, num_clients):
    return state


def _checked(**answers):
  return checked_tuner.CheckedTuner(Mine(**answers))


class CheckedTunerTest(parameterized.TestCase):
  def test_right_answers_are_taken(self):
    checked = _checked()
    state = checked.initial_state()
    self.assertEqual([x.dtype for x in state.values()], [tf.float32, tf.int32])
    checked.check_first_bins()
    bins = checked.bin_sizes(state)
    checked.refuse_unusable(bins)
    self.assertEqual((bins.dtype, bins.shape), (tf.float32, [16]))
    self.assertEqual(float(checked.reported_bin_size(state)), 0.5)
    self.assertIs(checked.calibrates, False)
    self.assertEqual(checked.modulus, 16)

  def test_a_decision_in_python_is_refused(self):
    class Deciding(Mine):
      def bin_sizes(self, state):
        return stripes.level(state['b'] if state['a'] > 0 else 1.0)

    checked = checked_tuner.CheckedTuner(Deciding())
    state = checked.initial_state()
    checked.bin_sizes(state)  # Known values can be decided by.
    with tf.Graph().as_default():
      state = tf.nest.map_structure(
        lambda x: tf.compat.v1.placeholder(x.dtype, x.shape), state
      )
      with self.assertRaisesRegex(
        TypeError, '^`Deciding.bin_sizes` must decide by `tf.where`'
      ):
        checked.bin_sizes(state)

  def test_what_can_only_mean_one_thing_is_taken(self):
    for bins in ([0.5] * 16, np.full(16, 0.5), tf.fill([16], np.float64(0.5))):
      found = _checked(bin_sizes=bins).bin_sizes({})
      self.assertEqual(found.dtype, tf.float32)
      np.testing.assert_array_equal(found, np.full(16, 0.5))
    # Fields in another order, in another kind of dictionary.
    checked = _checked(next_state=dict(a=tf.constant(2), b=tf.constant(0.25)))
    state = checked.next_state(checked.initial_state(), fits.fitted(), _CLIENTS)
    self.assertEqual(list(state.items()), [('b', 0.25), ('a', 2)])

  @parameterized.named_parameters(
    ('scalar', tf.constant(0.5), 'float32 of shape ().'),
    ('number', 0.5, 'float32 of shape ().'),
    ('too_few', tf.fill([15], 0.5), 'float32 of shape (15,).'),
    ('integers', tf.fill([16], 1), 'int32 of shape (16,).'),
    ('none', None, 'None (NoneType).'),
  )
  def test_bin_sizes_of_another_shape_or_kind_are_refused(self, bins, found):
    with self.assertRaisesWithLiteralMatch(TypeError, _BINS + found):
      _checked(bin_sizes=bins).bin_sizes({})

  @parameterized.named_parameters(
    ('none', None, ', found None (NoneType).'),
    ('fields', dict(a=1, c=0.5), ", found fields ['a', 'c']."),
    (
      'dtype',
      dict(a=1, b=tf.constant(0.5, tf.float64)),
      ": float32 of shape () at 'b', found float64 of shape ().",
    ),
    (
      'shape',
      dict(a=np.ones(2, np.int32), b=0.5),
      ": int32 of shape () at 'a', found int32 of shape (2,).",
    ),
  )
  def test_a_next_state_of_other_fields_or_dtypes_is_refused(self, state, rest):
    checked = _checked(next_state=state)
    with self.assertRaisesWithLiteralMatch(TypeError, _NEXT + rest):
      checked.next_state(checked.initial_state(), fits.fitted(), _CLIENTS)

  @parameterized.named_parameters(
    ('initial_state', 'initial_state', None, (), 'tensors, found None '),
    (
      'reported_bin_size',
      'reported_bin_size',
      tf.fill([16], 0.5),
      ({},),
      'a float32 scalar, found float32 of shape (16,).',
    ),
    (
      'size_forecast',
      'size_forecast',
      0.5,
      ({},),
      'two float32 scalars, found 0.5 (float).',
    ),
    (
      'modulus_is_too_small',
      'modulus_is_too_small',
      0.0,
      (_CLIENTS,),
      'a scalar bool, found float32 of shape ().',
    ),
  )
  def test_other_answers_are_refused(self, method, answer, arguments, rest):
    with self.assertRaises(TypeError) as caught:
      getattr(_checked(**{method: answer}), method)(*arguments)
    self.assertStartsWith(
      str(caught.exception), f'`Mine.{method}` must return {rest}'
    )

  @parameterized.parameters(
    (0.0, '0 to 0'),
    (-0.5, '-0.5 to -0.5'),
    (np.nan, 'nan to nan'),
    (np.inf, 'inf to inf'),
    (np.arange(16.0, 0.0, -1.0), '16 to 1'),
    ([1.0, np.nan] * 8, '1 to nan'),
  )
  def test_bin_sizes_that_no_round_can_have_are_refused(self, bins, found):
    bins = np.broadcast_to(np.float32(bins), [16])
    message = (
      'The bin sizes of `Mine` must be finite, above 0 and equal or ascending,'
      f' found {found}: mend its `bin_sizes` or the state that they come from.'
    )
    checked = _checked(bin_sizes=bins)
    with self.assertRaisesWithLiteralMatch(ValueError, message):
      checked.check_first_bins()
    with self.assertRaises(tf.errors.InvalidArgumentError) as caught:
      checked.refuse_unusable(checked.bin_sizes({}))
    self.assertIn(message, str(caught.exception))


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `stage`, and of what all stages do on plain tensors, without TFF."""

import collections
import importlib
import inspect
import pkgutil

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests import documented_stage
from tff_autotune_secagg import stages
from tff_autotune_secagg.numerics.tuning import tuners
from tff_autotune_secagg.stages import clip
from tff_autotune_secagg.stages import flatten
from tff_autotune_secagg.stages import mark_broken
from tff_autotune_secagg.stages import predict
from tff_autotune_secagg.stages import quantize
from tff_autotune_secagg.stages import rotate
from tff_autotune_secagg.stages import sample
from tff_autotune_secagg.stages import share_noise
from tff_autotune_secagg.stages import stage
from tff_autotune_secagg.stages import weigh
from tff_autotune_secagg.stages import wire

_FLOATS = (
  tf.TensorSpec([], tf.float16),
  tf.TensorSpec([0], tf.float32),
  tf.TensorSpec([3, 20], tf.float64),
  tf.TensorSpec([4], tf.bfloat16),
)
_INTEGERS = (tf.TensorSpec([2, 2], tf.int32), tf.TensorSpec([], tf.int64))

_VECTOR = (tf.TensorSpec([20], tf.float32),)

# Name, class, options and specs: every stage there is, see `test_none_is_left`.
_STAGES = (
  ('flatten', flatten.FlattenStage, {}, _FLOATS),
  ('flatten_nothing', flatten.FlattenStage, {}, ()),
  (
    'rotate',
    rotate.RotateStage,
    dict(num_rotations=2, min_dim=8, seed=1),
    _FLOATS,
  ),
  (
    'quantize',
    quantize.QuantizeStage,
    # Values are multiples of the bin size and come back exactly.
    dict(tuner=tuners.FixedBinSize(bin_size=0.5, modulus=2**12), seed=1),
    _FLOATS,
  ),
  (
    'predict',
    predict.PredictStage,
    dict(
      rotation=dict(num_rotations=1, min_dim=8, seed=1),
      quantization=dict(
        tuner=tuners.FixedBinSize(bin_size=1e-3, modulus=2**24), seed=1
      ),
    ),
    _FLOATS,
  ),
  ('mark_broken', mark_broken.MarkBrokenStage, {}, _FLOATS),
  ('weigh', weigh.WeighStage, dict(is_weighted=False), _FLOATS),
  ('wire', wire.WireStage, dict(modulus=1000, in_modulus=None), _INTEGERS),
  (
    'clip',
    clip.ClipStage,
    # No client is as long.
    dict(l2_norm_clip=100.0, noise_multiplier=1.0, count_stddev=1.0),
    _VECTOR,
  ),
  # Of so few coordinates the sample is all.
  ('sample', sample.SampleStage, dict(sampled_fraction=0.5, seed=1), _VECTOR),
  (
    'share_noise',
    share_noise.ShareNoiseStage,
    dict(
      noise_multiplier=2e-4,
      min_clients=3,
      max_norm=30.0,
      modulus=2**20,
      client_seed_fn=None,
    ),
    _VECTOR,
  ),
  ('of_contributing', documented_stage.ScaleStage, {}, _FLOATS),
)
_MEANS = (weigh.WeighStage, share_noise.ShareNoiseStage)


class Identity(stage.Stage):
  """What a stage does that defines no more than it must."""

  def encode(self, leaves, parameters):
    return leaves, collections.OrderedDict()

  def decode(self, leaves, signals, state):
    return leaves, state, collections.OrderedDict()


class Named(Identity):
  level = 'value'


class Flat(Identity):
  measures_on_one_level = True


class WithState(Identity):
  def initial_state(self):
    return collections.OrderedDict(a=tf.constant(1), b=tf.constant(2))


class WithSettings(WithState):
  owner = 'Somebody'
  settings = collections.OrderedDict(x=3, y=4)


class DefaultsTest(absltest.TestCase):
  def test_has_no_state_parameters_nor_signals(self):
    made = Identity([])
    for found in (
      made.initial_state(),
      made.parameters(collections.OrderedDict()),
      made.signal_limits,
    ):
      self.assertEqual(found, collections.OrderedDict())
    self.assertFalse(made.takes_integers)
    self.assertTrue(made.keeps_structure)

  def test_passes_on_the_specs_that_come_in(self):
    self.assertSequenceEqual(Identity(_VECTOR).out_specs, _VECTOR)

  def test_abstract_methods_must_be_defined(self):
    with self.assertRaises(TypeError):
      stage.Stage()  # pylint: disable=abstract-class-instantiated


class NestingTest(absltest.TestCase):
  def test_without_state_nests_nothing(self):
    made, inner, none = Identity([]), object(), collections.OrderedDict()
    self.assertIs(stage.initial_state(made, inner), inner)
    self.assertIs(stage.nest_state(made, none, none, inner), inner)
    self.assertIs(stage.nest_measurements(made, none, inner), inner)
    self.assertEqual(stage.unnest_state(made, inner), (none, none, inner))

  def test_state_is_nested_in_front_and_taken_apart_again(self):
    made, inner = WithState([]), object()
    state = stage.initial_state(made, inner)
    self.assertSequenceEqual(list(state), ['a', 'b', 'inner'])
    self.assertIs(state['inner'], inner)
    settings, own, found = stage.unnest_state(made, state)
    self.assertIs(found, inner)
    self.assertEmpty(settings)
    self.assertSequenceEqual(list(own), ['a', 'b'])
    measured = collections.OrderedDict(c=3)
    self.assertSequenceEqual(
      list(stage.nest_measurements(made, measured, inner)), ['c', 'inner']
    )

  def test_a_level_with_a_name_is_there_without_state_and_comes_first(self):
    made, inner = Named([]), object()
    state = stage.initial_state(made, inner)
    self.assertEqual(list(state.items()), [('value', inner)])
    _, own, found = stage.unnest_state(made, state)
    self.assertEmpty(own)
    self.assertIs(found, inner)
    measured = collections.OrderedDict(c=3)
    self.assertEqual(
      list(stage.nest_measurements(made, measured, inner).items()),
      [('value', inner), ('c', 3)],
    )

  def test_settings_come_first_and_are_checked(self):
    made, inner = WithSettings([]), object()
    state = stage.initial_state(made, inner)
    self.assertSequenceEqual(list(state), ['settings', 'a', 'b', 'inner'])
    settings, own, found = stage.unnest_state(made, state)
    self.assertIs(found, inner)
    self.assertEqual({n: int(s) for n, s in settings.items()}, dict(x=3, y=4))
    self.assertSequenceEqual(list(own), ['a', 'b'])
    # Of two that differ it is the first.
    state['settings'] = dict(x=tf.constant(5, tf.int64), y=settings['x'])
    with self.assertRaisesRegex(
      tf.errors.InvalidArgumentError,
      'The state was written with `x` 5, but this Somebody has `x` 3:',
    ):
      stage.unnest_state(made, state)

  def test_measurements_on_one_level(self):
    measured = collections.OrderedDict(c=3)
    for inner, names in ((collections.OrderedDict(d=4), ['c', 'd']), ((), 'c')):
      found = stage.nest_measurements(Flat([]), measured, inner)
      self.assertSequenceEqual(list(found), names)


class EveryStageTest(parameterized.TestCase):
  def test_none_is_left(self):
    found = set()
    for module in pkgutil.iter_modules(stages.__path__, f'{stages.__name__}.'):
      members = vars(importlib.import_module(module.name)).values()
      found |= {c for c in members if inspect.isclass(c)}
    found = {c for c in found if issubclass(c, stage.Stage)} - {stage.Stage}
    self.assertGreaterEqual(len(found), 7)
    tested = {stage_class for _, stage_class, *_ in _STAGES}
    self.assertEqual(found, tested - {documented_stage.ScaleStage})

  @parameterized.named_parameters(*_STAGES)
  def test_decode_of_a_sum_is_the_sum(self, stage_class, options, specs):
    made = stage_class(list(specs), **options)
    state = made.initial_state()
    parameters = made.parameters(state)
    clients = [
      [
        tf.cast(
          tf.reshape(
            tf.range(spec.shape.num_elements()) % 5 + number, spec.shape
          ),
          spec.dtype,
        )
        for spec in specs
      ]
      for number in range(3)
    ]
    encoded = [made.encode(leaves, parameters) for leaves in clients]
    for leaves, signals in encoded:
      self.assertEqual(
        [(leaf.shape, leaf.dtype) for leaf in leaves],
        [(spec.shape, spec.dtype) for spec in made.out_specs],
      )
      if made.keeps_structure:
        self.assertLen(leaves, len(specs))
      self.assertSequenceEqual(list(signals), list(made.signal_limits))
      for name, limit in made.signal_limits.items():
        self.assertBetween(int(signals[name]), 0, limit)
    leaves = [sum(parts) for parts in zip(*(leaves for leaves, _ in encoded))]
    signals = tf.nest.map_structure(
      lambda *parts: sum(parts), *(signals for _, signals in encoded)
    )
    decoded, next_state, measured = made.decode(leaves, signals, state)
    self.assertIsInstance(measured, collections.OrderedDict)
    # The next state has the types of the first.
    tf.nest.map_structure(
      lambda a, b: self.assertEqual((a.dtype, a.shape), (b.dtype, b.shape)),
      state,
      next_state,
    )
    num_clients = 3 if stage_class in _MEANS else 1
    # Five standard deviations of the noise, 2e-4 of `max_norm`.
    atol = 0.03 if stage_class is share_noise.ShareNoiseStage else 1e-4
    for leaf, spec, *parts in zip(decoded, specs, *clients):
      self.assertEqual((leaf.shape, leaf.dtype), (spec.shape, spec.dtype))
      total = sum(np.asarray(tf.cast(part, tf.float64)) for part in parts)
      np.testing.assert_allclose(
        tf.cast(leaf, tf.float64) * num_clients, total, rtol=5e-3, atol=atol
      )
    self.assertLen(decoded, len(specs))

  @parameterized.named_parameters(*_STAGES)
  def test_state_nests_around_any_other(self, stage_class, options, specs):
    made = stage_class(list(specs), **options)
    inner = collections.OrderedDict(x=tf.constant(7))
    state = stage.initial_state(made, inner)
    settings, own, found = stage.unnest_state(made, state)
    self.assertEqual(found, inner)
    self.assertEqual(
      {name: float(value) for name, value in settings.items()},
      dict(made.settings),
    )
    again = stage.nest_state(made, settings, own, found)
    tf.nest.assert_same_structure(again, state)
    tf.nest.map_structure(np.testing.assert_array_equal, again, state)
    # Who has settings has a name to refuse others by.
    self.assertEqual(bool(made.settings), bool(made.owner))


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import collections
import functools

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests import documented_stage
from tests import doubles
from tests import factory_conformance
from tff_autotune_secagg import aggregators
from tff_autotune_secagg.factories import chain
from tff_autotune_secagg.factories import flatten
from tff_autotune_secagg.factories import mean
from tff_autotune_secagg.factories import modular_sum
from tff_autotune_secagg.factories import quantize_mod
from tff_autotune_secagg.factories import rotation
from tff_autotune_secagg.numerics.rounding import modes
from tff_autotune_secagg.numerics.tuning import tuners
from tff_autotune_secagg.numerics.tuning import wrapped_normal_tuner
from tff_autotune_secagg.stages import stage
from tff_autotune_secagg.stages import wire

setUpModule = factory_conformance.set_up_context

_MODULUS = 64
_VALUE_TYPE = tff.to_type(
  collections.OrderedDict(
    a=tff.TensorType(np.float32, [40, 30]),
    b=(tff.TensorType(np.float16), tff.TensorType(np.float64, [300])),
  )
)
_FLOAT = tff.TensorType(np.float32)


class _Apart(tff.aggregators.UnweightedAggregationFactory):
  """Does what its inner factory does; no chain goes through it."""

  def __init__(self, inner_factory):
    self._inner_factory = inner_factory

  def create(self, value_type):
    return self._inner_factory.create(value_type)


def _nest(between):
  """The whole plugin, with `between` around every inner factory."""
  tuner = wrapped_normal_tuner.WrappedNormalTuner(
    modulus=_MODULUS, rounding=modes.Rounding.DITHER
  )
  factory = modular_sum.ExactModularSumFactory(modulus=_MODULUS)
  factory = quantize_mod.QuantizeModFactory(
    between(factory), tuner=tuner, seed=5
  )
  factory = rotation.HadamardRotationFactory(between(factory), seed=6)
  return between(flatten.FlattenFactory(between(factory)))


def _one_chain(factory):
  return factory


@functools.lru_cache(maxsize=None)
def _mean_process(between):
  """A mean with weights over `_nest`; TFF takes seconds to make each."""
  return mean.SecureMeanFactory(_nest(between)).create(_VALUE_TYPE, _FLOAT)


def _num_computations(process, placement):
  """How often `next` runs TensorFlow at clients, or at the server."""
  found = []

  def visit(block):
    # A map of a lambda only selects from what is there.
    if isinstance(block, tff.framework.Call) and isinstance(
      block.function, tff.framework.Intrinsic
    ):
      argument = block.argument
      if isinstance(argument, tff.framework.Struct) and len(argument):
        if isinstance(argument[0], tff.framework.CompiledComputation):
          found.append(argument[1].type_signature.placement)
    return block, False

  tff.framework.transform_preorder(process.next.to_building_block(), visit)
  return found.count(placement)


class OneChainTest(parameterized.TestCase):
  def test_a_client_runs_one_computation_and_the_server_two(self):
    process, apart = _mean_process(_one_chain), _mean_process(_Apart)
    # What TFF's modular sum adds of its own.
    innermost = tff.aggregators.SecureModularSumFactory(_MODULUS).create(
      tff.TensorType(np.int32, [1501])
    )
    for placement, number in ((tff.CLIENTS, 1), (tff.SERVER, 2)):
      of_tff = _num_computations(innermost, placement)
      self.assertEqual(_num_computations(process, placement), of_tff + number)
      # The control: five stages apart run five times as many.
      self.assertEqual(_num_computations(apart, placement), of_tff + 5 * number)

  def test_unchains_to_all_stages_and_what_is_behind_them(self):
    builders, behind = _nest(_one_chain).unchain()
    self.assertEqual(
      [stage_class.__name__ for stage_class, _ in builders],
      ['FlattenStage', 'RotateStage', 'QuantizeStage', 'WireStage'],
    )
    self.assertIsInstance(behind, tff.aggregators.SecureModularSumFactory)
    # A ready composition is such a nest.
    ready = aggregators.AutotunedSecureSumFactory(modulus=_MODULUS)
    self.assertEqual(
      [stage_class for stage_class, _ in ready.unchain()[0]],
      [stage_class for stage_class, _ in builders],
    )
    apart = flatten.FlattenFactory(_Apart(flatten.FlattenFactory(ready)))
    builders, behind = apart.unchain()
    self.assertLen(builders, 1)
    self.assertIsInstance(behind, _Apart)

  def test_a_factory_with_a_create_of_its_own_is_not_fused(self):
    created = []

    class Recording(flatten.FlattenFactory):
      def create(self, value_type):
        created.append(value_type)
        return super().create(value_type)

    inner = Recording(tff.aggregators.SumFactory())
    factory = flatten.FlattenFactory(inner)
    builders, behind = factory.unchain()
    self.assertLen(builders, 1)
    self.assertIs(behind, inner)
    process = factory.create(_VALUE_TYPE)
    self.assertEqual(created, [tff.TensorType(np.float64, [1501])])
    self.assertEqual(_num_computations(process, tff.CLIENTS), 2)

    # The control: a subclass that keeps `create` is.
    class Keeping(flatten.FlattenFactory):
      pass

    inner = Keeping(tff.aggregators.SumFactory())
    builders, behind = flatten.FlattenFactory(inner).unchain()
    self.assertLen(builders, 2)
    self.assertIsInstance(behind, tff.aggregators.SumFactory)


class SameAsApartTest(parameterized.TestCase):
  """One chain, and the same factories each with a computation of its own."""

  def _values(self, num_clients, scale, seed):
    rng = np.random.default_rng(seed)

    def value():
      a = scale * rng.standard_normal([40, 30])
      half = np.float16(scale * rng.standard_normal())
      b = (half, scale * rng.standard_normal(300))
      return collections.OrderedDict(a=a.astype(np.float32), b=b)

    return [value() for _ in range(num_clients)]

  def _assert_same(self, one, other):
    tf.nest.map_structure(
      np.testing.assert_array_equal,
      *([o.result, o.state, o.measurements] for o in (one, other)),
    )

  def test_types(self):
    for make in (
      _mean_process,
      lambda between: mean.SecureUnweightedMeanFactory(_nest(between)).create(
        _VALUE_TYPE
      ),
    ):
      fused, apart = make(_one_chain), make(_Apart)
      tff.test.assert_types_identical(
        fused.initialize.type_signature, apart.initialize.type_signature
      )
      tff.test.assert_types_identical(
        fused.next.type_signature, apart.next.type_signature
      )

  def test_rounds_bit_for_bit(self):
    fused, apart = _mean_process(_one_chain), _mean_process(_Apart)
    state = fused.initialize()
    tf.nest.map_structure(
      np.testing.assert_array_equal, state, apart.initialize()
    )
    bad = self._values(3, 1e3, seed=9)
    bad[1]['a'][3, 4] = np.nan
    found = []
    for values in (
      self._values(4, 1e-2, seed=1),
      self._values(4, 1e-2, seed=2),
      self._values(4, 1e3, seed=3),
      [],
      self._values(4, 1e3, seed=4),
      bad,
      self._values(1, 1e3, seed=5),
    ):
      weights = [np.float32(1 + i / 3) for i in range(len(values))]
      one = fused.next(state, values, weights)
      self._assert_same(one, apart.next(state, values, weights))
      state = one.state
      measured = one.measurements['value']
      found.append(
        (
          bool(measured['calibrating']),
          bool(measured['blind']),
          int(measured['num_clients']),
          int(one.measurements['rejected_clients']),
        )
      )
    # The history is the one that was meant.
    self.assertEqual(
      found,
      [
        (True, False, 4, 0),
        (False, False, 4, 0),
        (False, True, 4, 0),
        (True, False, 0, 0),
        (True, False, 4, 0),
        (False, False, 2, 1),
        (False, False, 1, 0),
      ],
    )


class _CountingStage(stage.Stage):
  """Doubles; sends a 1 that the server adds to its state."""

  signal_limits = collections.OrderedDict(one=1)

  def __init__(self, specs, *, factor):
    self._specs = specs
    self._factor = factor

  @property
  def out_specs(self):
    return self._specs

  def initial_state(self):
    return collections.OrderedDict(clients=tf.constant(0))

  def parameters(self, state):
    return state['clients']

  def encode(self, leaves, parameters):
    del parameters  # Only shown to arrive.
    factor = self._factor
    return [leaf * tf.cast(factor, leaf.dtype) for leaf in leaves], (
      collections.OrderedDict(one=tf.constant(1))
    )

  def decode(self, leaves, signals, state):
    next_state = collections.OrderedDict(
      clients=state['clients'] + signals['one']
    )
    return leaves, next_state, collections.OrderedDict(seen=signals['one'])


class ChainedFactoryTest(absltest.TestCase):
  def test_stages_of_a_user_with_signals_states_and_measurements(self):
    factory = chain.ChainedFactory(
      [(_CountingStage, dict(factor=2)), (_CountingStage, dict(factor=5))],
      doubles.SumPlusOneFactory(),
    )
    process = factory.create(tff.TensorType(np.float32, [2]))
    state = process.initialize()
    for number in range(1, 3):
      output = process.next(state, [np.float32([1, 2])] * 3)
      state = output.state
      np.testing.assert_array_equal(output.result, [31, 61])
      self.assertEqual(state['clients'], 3 * number)
      self.assertEqual(state['inner']['clients'], 3 * number)
      self.assertEqual(state['inner']['inner'], number)
      self.assertEqual(output.measurements['seen'], 3)
      self.assertEqual(output.measurements['inner']['seen'], 3)
      np.testing.assert_array_equal(
        output.measurements['inner']['inner'], [30, 60]
      )

  def test_without_stages_is_the_inner_factory(self):
    factory = chain.ChainedFactory([], doubles.SumPlusOneFactory())
    process = factory.create(_FLOAT)
    output = process.next(process.initialize(), [np.float32(2), np.float32(3)])
    self.assertEqual(output.result, 6)
    self.assertEqual(output.state, 1)


class TypeErrorTest(parameterized.TestCase):
  """Each stage checks what the one before it passes on."""

  def test_integers_for_float_stages(self):
    value_type = tff.to_type([np.float32, np.int32])
    for factory in (
      flatten.FlattenFactory(tff.aggregators.SumFactory()),
      rotation.HadamardRotationFactory(tff.aggregators.SumFactory()),
      quantize_mod.QuantizeModFactory(
        tff.aggregators.SumFactory(),
        tuner=tuners.FixedBinSize(bin_size=1.0, modulus=8),
      ),
      mean.SecureUnweightedMeanFactory(tff.aggregators.SumFactory()),
    ):
      with self.assertRaisesWithLiteralMatch(
        TypeError,
        "`value_type` must hold only float tensors, found int32 at '1'.",
      ):
        factory.create(value_type)

  def test_floats_for_an_integer_stage_in_the_middle(self):
    factory = flatten.FlattenFactory(
      modular_sum.ExactModularSumFactory(modulus=8)
    )
    with self.assertRaisesWithLiteralMatch(
      TypeError,
      '`value_type` must hold only int32 or int64 tensors, found'
      ' float64[1501].',
    ):
      factory.create(_VALUE_TYPE)

  def test_residues_for_a_float_stage_in_the_middle(self):
    factory = chain.ChainedFactory(
      [(wire.WireStage, dict(modulus=8))],
      flatten.FlattenFactory(tff.aggregators.SumFactory()),
    )
    with self.assertRaisesWithLiteralMatch(
      TypeError,
      '`value_type` must hold only float tensors, found int32[3].',
    ):
      factory.create(tff.TensorType(np.int32, [3]))


class DocumentedStageTest(absltest.TestCase):
  def test_the_factory_of_contributing_sums_and_learns_its_scale(self):
    names = dict(vars(documented_stage))
    exec(documented_stage.blocks()[1], names)
    process = names['scaled'](tff.aggregators.SumFactory()).create(_VALUE_TYPE)
    rng = np.random.default_rng(1)
    values = [
      collections.OrderedDict(
        a=10 * rng.normal(size=[40, 30]).astype(np.float32),
        b=(np.float16(i), rng.normal(size=[300])),
      )
      for i in range(3)
    ]
    state, scales = process.initialize(), []
    self.assertSequenceEqual(list(state), ['scale', 'inner'])
    for _ in range(2):
      output = process.next(state, values)
      state = output.state
      scales.append(float(output.measurements['scale']))
    wanted = sum(map(factory_conformance.vector_of, values))
    found = factory_conformance.vector_of(output.result)
    # One of the leaves is float16.
    np.testing.assert_allclose(found, wanted, rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(scales, [1.0, np.abs(wanted).max()], rtol=1e-3)


if __name__ == '__main__':
  absltest.main()

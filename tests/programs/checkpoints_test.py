# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Saving, loading and refusing states, of aggregation and of training.

All randomness is dither and seeded rotations, so that a run that continues in
another process must repeat the undisturbed one bit for bit.
"""

import asyncio
import copy
import functools
import os
import pathlib
import subprocess
import sys

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff
import tree

from tests import factory_conformance
from tests import fresh_python
import tff_autotune_secagg as autotune
from tff_autotune_secagg.programs import checkpoints
from tff_autotune_secagg.programs import state_folder

setUpModule = factory_conformance.set_up_context

_PROJECT = pathlib.Path(__file__).parents[2]
_VALUE_TYPE = tff.TensorType(np.float32, [1500])
# Appears in no message but one that prints weights.
_WEIGHT = 0.7654321


@functools.lru_cache(maxsize=None)
def _aggregation():
  """An aggregation process of the ready-made kind."""
  factory = autotune.AutotunedSecureSumFactory(
    modulus=256, rounding=autotune.Rounding.DITHER, seed=1
  )
  return factory.create(_VALUE_TYPE)


def _values(round_num):
  rng = np.random.default_rng(round_num)
  return list(rng.normal(size=(3, 1500)).astype(np.float32))


@functools.lru_cache(maxsize=None)
def _training():
  """Federated averaging of a linear model with the ready-made aggregator."""

  def model_fn():
    spec = (tf.TensorSpec([None, 4]), tf.TensorSpec([None, 1]))
    dense = tf.keras.layers.Dense(
      1, kernel_initializer=tf.keras.initializers.Constant(_WEIGHT)
    )
    model = tf.keras.Sequential([tf.keras.layers.InputLayer([4]), dense])
    return tff.learning.models.from_keras_model(
      model, loss=tf.keras.losses.MeanSquaredError(), input_spec=spec
    )

  return tff.learning.algorithms.build_weighted_fed_avg(
    model_fn,
    client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1),
    model_aggregator=autotune.autotuned_secure_aggregator(
      zeroing=False,
      clipping=False,
      rounding=autotune.Rounding.DITHER,
      seed=1,
    ),
  )


def _datasets(round_num):
  rng = np.random.default_rng([9, round_num])
  return [
    tf.data.Dataset.from_tensor_slices(
      (
        rng.normal(size=(6, 4)).astype(np.float32),
        rng.normal(size=(6, 1)).astype(np.float32),
      )
    ).batch(3)
    for _ in range(3)
  ]


def _train(state, first, last):
  for round_num in range(first, last + 1):
    state = _training().next(state, _datasets(round_num)).state
  return state


def _manager(folder, name):
  return tff.program.FileProgramStateManager(
    os.path.join(folder, name), keep_total=3
  )


def continue_training(folder):
  """Runs in a new process: loads the newest state and trains two rounds."""
  autotune.simulation.set_local_context()
  manager = _manager(folder, 'states')
  state, version = asyncio.run(autotune.load_latest_state(manager, _training()))
  state = _train(state, version + 1, version + 2)
  asyncio.run(manager.save(state, version + 2))
  autotune.simulation.close()


def _assert_equal_states(state, other):
  tree.assert_same_structure(state, other, check_types=False)
  for leaf, other_leaf in zip(tree.flatten(state), tree.flatten(other)):
    np.testing.assert_array_equal(leaf, other_leaf)


class ContinuationTest(absltest.TestCase):
  def test_aggregation_continues_from_a_file_as_if_undisturbed(self):
    process = _aggregation()
    manager = _manager(self.create_tempdir().full_path, 'states')
    state = process.initialize()
    for round_num in (1, 2, 3):
      state = process.next(state, _values(round_num)).state
    asyncio.run(manager.save(state, 3))
    loaded, version = asyncio.run(autotune.load_latest_state(manager, process))
    self.assertEqual(version, 3)
    _assert_equal_states(loaded, state)
    for round_num in (4, 5):
      undisturbed = process.next(state, _values(round_num))
      resumed = process.next(loaded, _values(round_num))
      np.testing.assert_array_equal(resumed.result, undisturbed.result)
      _assert_equal_states(resumed.state, undisturbed.state)
      _assert_equal_states(resumed.measurements, undisturbed.measurements)
      state, loaded = undisturbed.state, resumed.state
    # The negative control: a state that forgot its bin size differs.
    fresh = process.next(process.initialize(), _values(5))
    self.assertTrue(np.any(fresh.result != undisturbed.result))

  @pytest.mark.slow
  def test_training_continues_in_a_new_process_as_if_undisturbed(self):
    folder = self.create_tempdir().full_path
    manager = _manager(folder, 'states')
    state = _train(_training().initialize(), 1, 2)
    asyncio.run(manager.save(state, 2))
    code = fresh_python.RARELY_COLLECTED + (
      'import sys; from tests.programs import checkpoints_test;'
      ' checkpoints_test.continue_training(sys.argv[1])'
    )
    log_path = os.path.join(folder, 'log')
    with open(log_path, 'w') as log:
      status = subprocess.run(
        [sys.executable, '-c', code, folder],
        cwd=_PROJECT,
        stdout=log,
        stderr=log,
        timeout=240,
      ).returncode
    self.assertEqual(status, 0, pathlib.Path(log_path).read_text()[-2000:])
    undisturbed = _train(state, 3, 4)
    resumed, version = asyncio.run(
      autotune.load_latest_state(manager, _training())
    )
    self.assertEqual(version, 4)
    _assert_equal_states(resumed, undisturbed)

  def test_without_a_checkpoint_the_initial_state_is_returned(self):
    manager = _manager(self.create_tempdir().full_path, 'none')
    state, version = asyncio.run(
      autotune.load_latest_state(manager, _aggregation())
    )
    self.assertEqual(version, 0)
    _assert_equal_states(state, _aggregation().initialize())

  def test_version_0_is_loaded_as_any_other(self):
    # `tff.learning.programs.train_model` so saves what it starts from.
    process = _aggregation()
    manager = _manager(self.create_tempdir().full_path, 'states')
    saved = process.next(process.initialize(), _values(1)).state
    asyncio.run(manager.save(saved, 0))
    state, version = asyncio.run(autotune.load_latest_state(manager, process))
    self.assertEqual(version, 0)
    _assert_equal_states(state, saved)
    # The negative control: it is not the initial state.
    with self.assertRaises(AssertionError):
      _assert_equal_states(state, process.initialize())


def _empty(folder, version, name):
  """Leaves nothing in a file of a checkpoint, as a full disk does."""
  (path,) = pathlib.Path(folder, f'program_state_{version}').rglob(name)
  path.write_bytes(b'')


class UnreadableTest(parameterized.TestCase):
  """Checkpoints that were written halfway."""

  def setUp(self):
    super().setUp()
    folder = self.create_tempdir().full_path
    self._manager = _manager(folder, 'states')
    self._folder = os.path.join(folder, 'states')
    self._states = []
    state = _aggregation().initialize()
    for version in (1, 2):
      state = _aggregation().next(state, _values(version)).state
      asyncio.run(self._manager.save(state, version))
      self._states.append(state)

  def _load(self):
    return asyncio.run(
      autotune.load_latest_state(self._manager, _aggregation())
    )

  @parameterized.parameters(
    'saved_model.pb', 'variables.data-00000-of-00001', 'variables.index'
  )
  def test_the_version_before_is_loaded_and_said(self, name):
    _empty(self._folder, 2, name)
    with self.assertLogs(level='WARNING') as logged:
      state, version = self._load()
    self.assertEqual(version, 1)
    _assert_equal_states(state, self._states[0])
    (line,) = logged.output
    self.assertIn(
      'The checkpoint of version 2 cannot be read and is passed over: ', line
    )

  def test_none_that_can_be_read_is_refused(self):
    for version in (1, 2):
      _empty(self._folder, version, 'saved_model.pb')
    with self.assertLogs(level='WARNING'):
      with self.assertRaisesRegex(
        ValueError,
        r'^One of the checkpoints must be whole, found that none of the'
        r' versions \[1, 2\] can be read \(.*\)\. They stay where they are;'
        r' another folder begins anew\.$',
      ):
        self._load()


def _with_setting(state, name, value):
  """A copy of an aggregator's state in which one setting is another."""
  state = copy.deepcopy(state)
  owner = state if name in state['settings'] else state['inner']
  owner['settings'][name] = np.int64(value)
  return state


class RefusalTest(parameterized.TestCase):
  def _assert_refused(self, process, state, values, message, owner):
    """Both by the check and by a round that was started without it."""
    with self.assertRaisesWithLiteralMatch(
      ValueError, message.format('process')
    ):
      autotune.check_state(process, state)
    with self.assertRaisesWithLiteralMatch(ValueError, message.format(owner)):
      process.next(state, values)

  @parameterized.named_parameters(
    ('modulus', 'modulus', 16, 256, 'QuantizeModFactory'),
    (
      'rounding',
      'dither',
      0,
      1,
      'QuantizeModFactory',
      'the settings of the checkpoint',
      '`rounding` Rounding.STOCHASTIC',
      '`rounding` Rounding.DITHER',
    ),
    (
      'version',
      'state_format',
      2,
      3,
      'QuantizeModFactory',
      'the version of this package that wrote it',
    ),
    (
      'size',
      'dim',
      1501,
      1500,
      'HadamardRotationFactory',
      'the model of the checkpoint',
    ),
    ('rotation', 'num_rotations', 2, 1, 'HadamardRotationFactory'),
  )
  def test_other_settings_are_refused_in_one_sentence(
    self,
    name,
    found,
    wanted,
    owner,
    made_by='the settings of the checkpoint',
    told_found=None,
    told_wanted=None,
  ):
    process = _aggregation()
    state = _with_setting(process.initialize(), name, found)
    message = (
      f'The state was written with {told_found or f"`{name}` {found}"}, but'
      f' this {{}} has {told_wanted or f"`{name}` {wanted}"}: start from'
      f' `initialize()` or use {made_by}.'
    )
    self._assert_refused(process, state, _values(1), message, owner)

  def test_the_setting_that_others_follow_from_is_named(self):
    # A format decides what a modulus means; by the alphabet, dither is first.
    process = _aggregation()
    state = process.initialize()
    for name, value in (('dither', 0), ('modulus', 16), ('state_format', 2)):
      state = _with_setting(state, name, value)
    with self.assertRaisesRegex(ValueError, 'with `state_format` 2, '):
      autotune.check_state(process, state)

  def test_the_state_of_another_process_is_refused(self):
    # Not made up as above: what a process of another modulus really wrote.
    other = autotune.AutotunedSecureSumFactory(
      modulus=16, rounding=autotune.Rounding.DITHER, seed=1
    ).create(_VALUE_TYPE)
    with self.assertRaisesRegex(
      ValueError,
      r'^The state was written with `modulus` 16, but this process has'
      r' `modulus` 256: .{60,90}$',
    ):
      autotune.check_state(_aggregation(), other.initialize())

  def test_sizes_that_are_padded_alike_are_told_apart(self):
    small, smaller = (
      autotune.AutotunedSecureSumFactory(modulus=256, seed=1).create(
        tff.TensorType(np.float32, [size])
      )
      for size in (200, 199)
    )
    with self.assertRaisesRegex(
      ValueError,
      '^The state was written with `dim` 199, but this process has `dim` 200:',
    ):
      autotune.check_state(small, smaller.initialize())

  def test_check_state_wants_a_process(self):
    with self.assertRaisesWithLiteralMatch(
      TypeError,
      '`process` must be a tff.templates.IterativeProcess, found 3 (int).',
    ):
      autotune.check_state(3, {})

  def test_a_folder_is_no_state_manager(self):
    with self.assertRaisesWithLiteralMatch(
      TypeError,
      '`state_manager` must be a tff.program.ProgramStateManager, such as'
      " `tff.program.FileProgramStateManager(folder)`, found 'states' (str).",
    ):
      asyncio.run(autotune.load_latest_state('states', _aggregation()))

  def test_own_states_are_taken(self):
    process = _aggregation()
    autotune.check_state(process, process.initialize())
    state = process.next(process.initialize(), _values(1)).state
    autotune.check_state(process, state)

  def test_a_training_state_of_another_modulus_is_refused(self):
    process = _training()
    state = copy.deepcopy(process.initialize())
    state.aggregator['value']['inner']['settings']['modulus'] = np.int64(16)
    with self.assertRaises(ValueError) as caught:
      process.next(state, _datasets(1))
    self.assertStartsWith(
      str(caught.exception), 'The state was written with `modulus` 16, but'
    )
    self.assertLess(len(str(caught.exception)), 200)
    with self.assertRaises(ValueError) as caught:
      autotune.check_state(process, state)
    self.assertNotIn(str(_WEIGHT), str(caught.exception))
    self.assertLess(len(str(caught.exception)), 200)

  def test_other_weights_are_refused_by_name_and_not_by_value(self):
    process = _training()
    state = copy.deepcopy(process.initialize())
    kernel = np.full([5, 1], _WEIGHT, np.float32)
    state.global_model_weights.trainable[0] = kernel
    with self.assertRaisesWithLiteralMatch(
      ValueError,
      "`state` must hold float32[4, 1] at 'global_model_weights/trainable/0',"
      ' found float32[5, 1].',
    ):
      autotune.check_state(process, state)

  def test_other_fields_are_refused_by_name(self):
    process = _aggregation()
    state = copy.deepcopy(process.initialize())
    del state['inner']['tuner']['bin_size']
    with self.assertRaisesWithLiteralMatch(
      ValueError,
      '`state` must have the fields of `process`, found that it lacks'
      " 'inner/tuner/bin_size'.",
    ):
      autotune.check_state(process, state)
    state['inner']['tuner']['width'] = np.float32(_WEIGHT)
    state['inner']['tuner']['bin_size'] = np.float32(1)
    with self.assertRaisesWithLiteralMatch(
      ValueError,
      '`state` must have the fields of `process`, found that it has besides'
      " 'inner/tuner/width'.",
    ):
      autotune.check_state(process, state)

  @parameterized.parameters(
    (
      ['settings/dim', 'inner/tuner/rung', 'inner/tuner/forecast/level'],
      ['settings/dim', 'inner/tuner/rung'],
      '`wrap_probability` a number where the process has `wrap_probability`'
      ' None',
    ),
    # The keys of one dictionary are all that is told of a checkpoint.
    (
      ['clipped_count_agg', 'clipping_norm', 'inner_agg'],
      ['inner_agg', 'zeroed_count_agg', 'zeroing_norm'],
      '`zeroing` True where the process has `zeroing` False',
    ),
    (
      ['state/aggregator/zeroing_norm/0', 'state/aggregator/inner_agg/value/a'],
      [
        'state/aggregator/zeroing_norm/0',
        'state/aggregator/inner_agg/clipping_norm/0',
        'state/aggregator/inner_agg/inner_agg/value/a',
      ],
      '`clipping` True where the process has `clipping` False',
    ),
  )
  def test_fields_are_told_by_the_argument_that_makes_them(
    self, wanted, found, told
  ):
    self.assertEqual(
      checkpoints.difference_of_fields(wanted, found), f'found those of {told}'
    )
    # Of a part that has no such argument, the field is named.
    self.assertStartsWith(
      checkpoints.difference_of_fields(wanted, ['weights']),
      'found that it lacks ',
    )

  def test_a_round_tells_other_fields_without_their_values(self):
    process = _aggregation()
    state = copy.deepcopy(process.initialize())
    state['inner']['tuner']['width'] = np.float32(_WEIGHT)
    with self.assertRaisesRegex(
      TypeError,
      r'^Cannot serialize a struct value of \d elements to a struct type'
      r' requiring \d elements\. If it is a state, `check_state\(process,'
      r' state\)` says what differs\.$',
    ):
      process.next(state, _values(1))

  def test_a_checkpoint_of_other_fields_is_refused_without_its_values(self):
    process = _aggregation()
    manager = _manager(self.create_tempdir().full_path, 'states')
    weights = dict(weights=np.full([3], _WEIGHT, np.float32))
    asyncio.run(manager.save(weights, 1))
    with self.assertRaisesWithLiteralMatch(
      ValueError,
      'The checkpoint must have the fields of the process, found that it'
      " lacks 'inner':"
      ' another model or aggregator, or another version of them, has written'
      ' it.',
    ) as caught:
      asyncio.run(autotune.load_latest_state(manager, process))
    self.assertTrue(caught.exception.__suppress_context__)

  def test_another_format_is_named_before_the_fields(self):
    process = _aggregation()
    state = copy.deepcopy(process.initialize())
    settings = state['inner']['settings']
    wanted = int(settings['state_format'])
    settings['state_format'] = np.int64(1)
    del state['inner']['tuner']['rung']
    folder = self.create_tempdir().full_path
    asyncio.run(_manager(folder, 'states').save(state, 1))
    for manager in (
      _manager(folder, 'states'),
      state_folder.StateFolder(os.path.join(folder, 'states'), num_kept=1),
    ):
      with self.assertRaisesWithLiteralMatch(
        ValueError,
        'The checkpoint must have the fields of the process, found'
        f' `state_format` 1 and not {wanted}: another model or aggregator, or'
        ' another version of them, has written it.',
      ):
        asyncio.run(autotune.load_latest_state(manager, process))

  def test_a_checkpoint_of_another_modulus_is_refused_when_loaded(self):
    process = _aggregation()
    manager = _manager(self.create_tempdir().full_path, 'states')
    state = _with_setting(process.initialize(), 'modulus', 16)
    asyncio.run(manager.save(state, 7))
    with self.assertRaisesRegex(
      ValueError, '^The state was written with `modulus` 16, but this'
    ):
      asyncio.run(autotune.load_latest_state(manager, process))


if __name__ == '__main__':
  absltest.main()

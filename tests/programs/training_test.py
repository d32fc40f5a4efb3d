# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of a training in a folder; interrupts are in `tests/project/`."""

import asyncio
import csv
import errno
import fcntl
import functools
import logging
import os
import pathlib
import shutil
import sys
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests import factory_conformance
import tff_autotune_secagg as autotune
from tff_autotune_secagg import programs
from tff_autotune_secagg.programs import training_folder

setUpModule = factory_conformance.set_up_context


@functools.lru_cache(maxsize=None)
def _process(modulus=None, use_bias=False):
  def model_fn():
    # A weight that goes to the mean of the data in one step.
    dense = tf.keras.layers.Dense(
      1, use_bias=use_bias, kernel_initializer='zeros', input_shape=[1]
    )
    return tff.learning.models.from_keras_model(
      tf.keras.Sequential([dense]),
      loss=tf.keras.losses.MeanSquaredError(),
      input_spec=(tf.TensorSpec([None, 1]), tf.TensorSpec([None, 1])),
    )

  aggregator = None
  if modulus is not None:
    aggregator = autotune.autotuned_secure_aggregator(
      modulus=modulus, zeroing=False, clipping=False, seed=1
    )
  return tff.learning.algorithms.build_weighted_fed_avg(
    model_fn,
    client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.5),
    model_aggregator=aggregator,
  )


def _client_data(round_num):
  example = np.ones([1, 1], np.float32), np.full([1, 1], round_num, np.float32)
  return [tf.data.Dataset.from_tensor_slices(example).batch(1)] * 2


class TrainInFolderTest(parameterized.TestCase):
  def _train(self, **changes):
    arguments = dict(
      process=_process(),
      client_data=_client_data,
      folder=self._folder,
      num_rounds=1,
    )
    programs.train_in_folder(**{**arguments, **changes})

  def setUp(self):
    super().setUp()
    self._folder = os.path.join(self.create_tempdir().full_path, 'a', 'b')

  def test_continues_with_the_clients_of_the_next_round(self):
    seen = []

    def on_round(round_num, metrics):
      seen.append((round_num, float(metrics['model_metrics']['loss'])))

    options = dict(on_ready=seen.append, on_round=on_round)

    async def cell():  # In a notebook, an event loop runs already.
      self._train(num_rounds=3, **options)

    self._train(num_rounds=2, **options)
    asyncio.run(cell())
    # The weight is the number of the round before, whose target it has met.
    self.assertEqual(seen, [0, (1, 1.0), (2, 1.0), 2, (3, 1.0)])
    self.assertEqual(self._rounds_with_rows(), [*'123'])
    self._assert_model_of_round(3)

  def _assert_model_of_round(self, round_num):
    """The weight is the number of the round."""
    weights = tf.saved_model.load(os.path.join(self._folder, 'model'))()
    self.assertEqual(
      [w.numpy().item() for w in weights['trainable']], [round_num]
    )
    self.assertEmpty(weights['non_trainable'])

  def _states(self):
    return sorted(os.listdir(os.path.join(self._folder, 'states')))

  def test_five_states_are_kept_and_what_was_begun_is_removed(self):
    self._train()
    for name in ('states/program_state_1_temp1234', 'model_temp9876'):
      os.makedirs(os.path.join(self._folder, name))
    shutil.rmtree(os.path.join(self._folder, 'model'))
    # A training that is done already writes what a kill kept it from writing.
    self._train(on_round=lambda *_: self.fail())
    self.assertEqual(self._states(), ['program_state_0', 'program_state_1'])
    self._assert_model_of_round(1)
    self._train(num_rounds=7)
    kept = [f'program_state_{number}' for number in range(3, 8)]
    self.assertEqual(self._states(), kept)
    self.assertCountEqual(
      os.listdir(self._folder), ['lock', 'metrics.csv', 'model', 'states']
    )

  @parameterized.named_parameters(
    ('description', 'saved_model.pb', 0),
    ('values', 'variables.data-00000-of-00001', 40),
    ('index', 'variables.index', 20),
  )
  def test_continues_from_the_state_before_one_that_was_half_written(
    self, name, size
  ):
    self._train(num_rounds=3)
    broken = os.path.join(self._folder, 'states', 'program_state_3')
    (path,) = pathlib.Path(broken).rglob(name)
    os.truncate(path, size)
    seen = []
    with self.assertLogs(level='WARNING') as logged:
      self._train(
        num_rounds=4,
        on_ready=seen.append,
        on_round=lambda number, _: seen.append(number),
      )
    (line,) = logged.output
    self.assertIn('The checkpoint of version 3 cannot be read and is', line)
    self.assertEqual(seen, [2, 3, 4])
    self.assertEqual(self._rounds_with_rows(), [*'1234'])
    self._assert_model_of_round(4)
    # Nothing is lost of what could not be read.
    self.assertIn('program_state_3.unreadable_1', self._states())

  def test_without_a_whole_state_nothing_begins(self):
    self._train()
    for path in pathlib.Path(self._folder).rglob('saved_model.pb'):
      os.truncate(path, 0)
    before = self._states()
    with self.assertLogs(level='WARNING'):
      with self.assertRaisesRegex(
        ValueError, r'none of the versions \[0, 1\] can be read'
      ):
        self._train(num_rounds=2, on_round=lambda *_: self.fail())
    self.assertEqual(self._states(), before)

  @parameterized.named_parameters(
    (
      'model',
      dict(use_bias=True),
      'The checkpoint must have the fields of the process, found that it lacks'
      " 'state/global_model_weights/trainable/1': another model",
    ),
    (
      'aggregator',
      dict(modulus=256),
      'The checkpoint must have the fields of the process, found that it'
      " (lacks|has besides) 'state/aggregator/.*': another model",
    ),
  )
  def test_states_of_another_process_are_refused_in_a_sentence(
    self, options, message
  ):
    self._train()
    self._assert_refused(_process(**options), message)

  def test_states_of_another_modulus_are_refused_in_a_sentence(self):
    self._train(process=_process(modulus=256))
    self._assert_refused(
      _process(modulus=16),
      'The state was written with `modulus` 256, but this process has `modulus`'
      ' 16: ',
    )

  def _assert_refused(self, process, message):
    before = self._states()
    with self.assertRaisesRegex(ValueError, f'^{message}') as caught:
      self._train(process=process, on_ready=self.fail)
    self.assertLess(len(str(caught.exception)), 250)
    self.assertEqual(self._states(), before)

  @parameterized.parameters('run[lr=0.1]', 'back\\slash', 'a*', 'b?')
  def test_refuses_a_folder_that_could_not_be_continued(self, name):
    self._folder = os.path.join(self._folder, name)
    with self.assertRaisesRegex(
      ValueError, r'^`folder` must be a path without `\*`, `\?`, `\[` and back'
    ):
      self._train()
    self.assertFalse(os.path.exists(self._folder))

  def test_what_on_round_raises_ends_the_training_before_the_state(self):
    def on_round(round_num, metrics):
      if round_num == 2:
        raise ValueError('no')

    with self.assertRaisesRegex(ValueError, '^no$'):
      self._train(num_rounds=50, on_round=on_round)
    self.assertEqual(self._states(), ['program_state_0', 'program_state_1'])
    seen = []
    self._train(num_rounds=3, on_round=lambda number, _: seen.append(number))
    self.assertEqual(seen, [2, 3])

  def test_on_round_ends_python_after_the_round_it_was_told_of(self):
    seen = []

    def on_round(round_num, metrics):
      seen.append(round_num)
      if round_num == 2:
        sys.exit('bye')

    with mock.patch.object(logging.getLogger('asyncio'), 'error') as log:
      with self.assertRaisesRegex(SystemExit, '^bye$'):
        self._train(num_rounds=50, on_round=on_round)
    log.assert_not_called()
    self.assertEqual(
      self._states(), [f'program_state_{number}' for number in range(3)]
    )
    self.assertEqual(self._rounds_with_rows(), [*'12'])
    self._train(num_rounds=3, on_round=on_round)
    self.assertEqual(seen, [1, 2, 3])

  def _rounds_with_rows(self):
    with open(os.path.join(self._folder, 'metrics.csv'), newline='') as file:
      return [row['round'] for row in csv.DictReader(file)]

  def test_nothing_is_written_after_a_round_that_could_not_be_reported(self):
    """Though the program has begun to, as rounds are quicker than its end."""
    seen = []

    def on_round(round_num, metrics):
      seen.append(round_num)
      if round_num == 2:
        raise ValueError('no')

    os.makedirs(self._folder)
    reports = training_folder.Reports(self._folder, on_round)
    states = training_folder.States(self._folder, reports)

    async def write():
      tasks = []
      for number in (1, 2, 3):
        tasks.append(states.save({'x': np.int32(number)}, number))
        tasks.append(reports.release({'loss': 0.5}, number))
      return await asyncio.gather(*tasks, return_exceptions=True)

    results = asyncio.run(write())
    self.assertEqual([type(r) for r in results if r], [ValueError])
    self.assertEqual(seen, [1, 2])
    self.assertEqual(self._states(), ['program_state_1'])
    self.assertEqual(states.latest, {'x': 1})
    # `train_model` can fail between the two: such a state waits for no row.
    asyncio.run(states.save({'x': np.int32(4)}, 4))
    self.assertEqual(self._states(), ['program_state_1'])

  @parameterized.parameters('1', '12', '12,0.', '12,0.5\r', '\0\0')
  def test_a_row_that_was_half_written_is_removed(self, torn):
    found = self._rows_after(f'round,loss\r\n11,0.5\r\n{torn}')
    self.assertEqual(found, 'round,loss\r\n11,0.5\r\n12,0.25\r\n')

  @parameterized.parameters('', 'rou')
  def test_a_table_without_its_names_begins_anew(self, text):
    self.assertEqual(self._rows_after(text), 'round,loss\r\n12,0.25\r\n')

  def test_rows_whose_states_are_gone_are_kept_aside(self):
    os.makedirs(self._folder)
    path = pathlib.Path(self._folder, 'metrics.csv')
    for number in (1, 2):
      path.write_text(f'round,loss\n{number},0.5\n')
      with self.assertLogs(level='WARNING') as logged:
        training_folder.Reports(self._folder, lambda *_: None)
      self.assertIn('has no states', logged.output[0])
      self.assertNotIn('0.5', path.read_text())
      aside = pathlib.Path(f'{path}.set_aside_{number}')
      self.assertEqual(aside.read_text(), f'round,loss\n{number},0.5\n')

  def test_a_file_that_is_no_table_of_rounds_is_refused(self):
    os.makedirs(self._folder)
    path = pathlib.Path(self._folder, 'metrics.csv')
    path.write_text('groceries\nmilk\n')
    with self.assertRaisesRegex(
      ValueError, "^`folder` must have a metrics.csv with a column 'round'"
    ):
      training_folder.Reports(self._folder, lambda *_: None)
    self.assertEqual(path.read_text(), 'groceries\nmilk\n')

  def _rows_after(self, text):
    """The table when round 12 has been reported."""
    os.makedirs(os.path.join(self._folder, 'states', 'program_state_11'))
    path = pathlib.Path(self._folder, 'metrics.csv')
    path.write_bytes(text.encode())
    reports = training_folder.Reports(self._folder, lambda *_: None)
    asyncio.run(reports.release({'loss': 0.25}, 12))
    return path.read_bytes().decode()

  def test_a_state_that_cannot_be_written_ends_the_training(self):
    def on_round(round_num, metrics):
      if round_num == 2:
        shutil.rmtree(os.path.join(self._folder, 'states'))
        with open(os.path.join(self._folder, 'states'), 'w'):
          pass

    with self.assertRaisesRegex(OSError, '^`folder` must be a folder to write'):
      self._train(num_rounds=50, on_round=on_round)
    with open(os.path.join(self._folder, 'metrics.csv'), newline='') as file:
      self.assertLess(len(list(csv.DictReader(file))), 10)

  @parameterized.parameters(
    (dict(process=1), TypeError, '^`process` must be a `tff.learning.template'),
    (dict(client_data=[1]), TypeError, '^`client_data` must be a function, f'),
    (dict(folder=1), TypeError, '^`folder` must be a path, found 1'),
    (dict(folder=''), ValueError, "^`folder` must be a path, '.' for the curr"),
    (
      dict(num_rounds=0),
      ValueError,
      '^`num_rounds` must be an int of at least',
    ),
    (dict(num_rounds=2.0), TypeError, '^`num_rounds` must be an int of at lea'),
    (dict(on_ready=1), TypeError, '^`on_ready` must be a function, found 1'),
    (dict(on_round=1), TypeError, '^`on_round` must be a function, found 1'),
  )
  def test_rejects_arguments_and_makes_no_folder(self, change, error, message):
    with self.assertRaisesRegex(error, message):
      self._train(**change)
    self.assertFalse(os.path.exists(self._folder))

  def test_refuses_a_folder_that_another_run_has(self):
    os.makedirs(self._folder)
    with open(os.path.join(self._folder, 'lock'), 'w') as lock:
      fcntl.flock(lock, fcntl.LOCK_EX)
      with self.assertRaisesRegex(
        OSError, "^`folder` must .* that no other run has: '.*/a/b' is in use"
      ):
        self._train()
    self.assertEqual(os.listdir(self._folder), ['lock'])

  def test_a_file_system_without_locks_is_said(self):
    error = OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
    with mock.patch.object(fcntl, 'flock', side_effect=error):
      with self.assertRaisesRegex(
        OSError, "^`folder` must .*: '.*/a/b': No locks available[.]$"
      ):
        self._train()


if __name__ == '__main__':
  absltest.main()

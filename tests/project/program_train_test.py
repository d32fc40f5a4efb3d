# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests the example that trains through TFF's program API, in a few rounds."""

import csv
import pathlib

from absl.testing import absltest
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from examples import program_train
from tff_autotune_secagg import simulation


class DataSourceTest(absltest.TestCase):
  def test_iterator_that_was_saved_goes_on_with_the_next_round(self):
    clients_type = tff.FederatedType(
      tff.SequenceType(tff.TensorType(np.float32)), tff.CLIENTS
    )
    source = program_train.data_source(lambda number: number, clients_type)
    iterator = source.iterator()
    self.assertEqual([iterator.select(2), iterator.select(2)], [1, 2])
    restored = type(iterator).from_bytes(iterator.to_bytes())
    self.assertEqual(restored.select(2), 3)
    self.assertEqual(restored.federated_type, clients_type)
    self.assertEqual(source.iterator().select(2), 1)


class DigitsTest(absltest.TestCase):
  def test_clients_of_a_round_are_the_same_in_every_call(self):
    digits = program_train.Digits(clients_per_round=3)

    def pixels(round_num):
      return [
        sum(float(tf.reduce_sum(batch['x'])) for batch in dataset)
        for dataset in digits.client_data(round_num)
      ]

    self.assertLen(set(pixels(1)), 3)
    self.assertEqual(pixels(1), pixels(1))
    self.assertNotEqual(pixels(1), pixels(2))


@pytest.mark.slow
class TrainTest(absltest.TestCase):
  def tearDown(self):
    simulation.close()
    super().tearDown()

  def test_program_writes_all_that_it_promises_and_continues(self):
    output_dir = pathlib.Path(self.create_tempdir().full_path)
    options = dict(clients_per_round=2)
    program_train.train(str(output_dir), num_rounds=1, **options)
    accuracy = program_train.train(str(output_dir), num_rounds=3, **options)
    self.assertBetween(accuracy, 0.0, 1.0)

    with open(output_dir / 'metrics.csv', newline='') as file:
      rows = list(csv.DictReader(file))
    self.assertEqual([row['round'] for row in rows], ['1', '2', '3'])
    name = 'aggregator/zeroing/value/calibrating'
    # The continued run knows the bin size: only the very first round looks.
    self.assertEqual([row[name] for row in rows], ['True', 'False', 'False'])
    self.assertIn('model_metrics/loss', rows[0])

    checkpoints = {path.name for path in (output_dir / 'checkpoints').iterdir()}
    self.assertIn('program_state_0', checkpoints)
    self.assertIn('program_state_3', checkpoints)
    events = list((output_dir / 'tensorboard').iterdir())
    self.assertLen(events, 2)
    tags = {
      value.tag
      for event in tf.compat.v1.train.summary_iterator(str(events[0]))
      for value in event.summary.value
    }
    self.assertIn(name, tags)
    self.assertTrue(any((output_dir / 'model').glob('*round_3*')))


if __name__ == '__main__':
  absltest.main()

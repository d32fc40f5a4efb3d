# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
import dataclasses

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow_federated as tff

from experiments.common import result_rows
from experiments.training import trainer
from tests import tiny_training
from tff_autotune_secagg import simulation


class ConfigTest(parameterized.TestCase):
  @parameterized.named_parameters(
    (
      'rounds',
      dict(num_rounds=0),
      r'`num_rounds` must be an int of at least 1, found 0\.',
    ),
    (
      'clients',
      dict(num_clients=5, clients_per_round=6),
      r'`clients_per_round` must be at most `num_clients`, found 6 and 5\.',
    ),
    (
      'partition',
      dict(partition='random'),
      r"`partition` must be 'iid' or 'dirichlet', found 'random'\.",
    ),
    (
      'download',
      dict(model_download_bits=16),
      r'`model_download_bits` must be 2 to 8, or 32 for floats, found 16\.',
    ),
    (
      'cohort',
      dict(fewest_clients_per_round=3),
      '`fewest_clients_per_round` must be 0 to `clients_per_round`, found 3'
      r' and 2\.',
    ),
    (
      'momentum',
      dict(server_optimizer='adam', server_momentum=0.9),
      r"`server_momentum` must be 0 with 'adam', found 0\.9\.",
    ),
    ('aggregator', dict(aggregator='sum'), '`aggregator` must be one of .*'),
  )
  def test_wrong_settings_are_refused(self, changes, message):
    with self.assertRaisesRegex(ValueError, f'^{message}$'):
      dataclasses.replace(tiny_training.CONFIG, **changes)

  def test_names_of_runs_from_before_the_download_could_be_coded(self):
    config = dataclasses.replace(tiny_training.CONFIG, model_download_bits=32)
    self.assertNotIn('model_download_bits', config.asdict())
    self.assertEqual(tiny_training.CONFIG.asdict()['model_download_bits'], 8)


class SamplingTest(absltest.TestCase):
  def test_clients_of_a_round_depend_on_seed_and_round_only(self):
    config = dataclasses.replace(
      tiny_training.CONFIG, num_clients=50, clients_per_round=20
    )
    other = dataclasses.replace(config, aggregator='plain_mean', num_rounds=99)
    for round_num in (1, 2):
      drawn = trainer.sample_clients(config, round_num)
      self.assertLen(set(drawn), 20)
      np.testing.assert_array_equal(
        drawn, trainer.sample_clients(other, round_num)
      )
    self.assertFalse(
      np.array_equal(
        trainer.sample_clients(config, 1),
        trainer.sample_clients(config, 2),
      )
    )


class MeasurementTest(absltest.TestCase):
  def test_flat_keys_and_only_small_numbers(self):
    flat = trainer.scalar_measurements(
      {
        'a': {'b': np.float32(1.5), 'c': ()},
        'd': np.arange(3),
        'e': np.zeros(100),
        'f': b'text',
        'g': True,
      }
    )
    self.assertEqual(flat, {'a/b': 1.5, 'd': [0, 1, 2], 'g': True})

  def test_cohorts_vary_if_asked(self):
    config = dataclasses.replace(
      tiny_training.CONFIG,
      num_clients=50,
      clients_per_round=40,
      fewest_clients_per_round=4,
    )
    sizes = [len(trainer.sample_clients(config, r)) for r in range(400)]
    self.assertBetween(min(sizes), 4, 5)
    self.assertBetween(max(sizes), 38, 40)
    # Uniform logarithms, and the standard error of their mean.
    logs = np.log(sizes)
    error = np.log(10) / np.sqrt(12 * len(sizes))
    self.assertLess(abs(np.mean(logs) - np.log(4 * np.sqrt(10))), 4 * error)


@pytest.mark.slow
class ResumeTest(absltest.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    simulation.set_local_context()
    data = trainer.load_data(tiny_training.CONFIG)
    cls._undisturbed = tiny_training.numbers(
      trainer.run(tiny_training.CONFIG, data)
    )

  def setUp(self):
    super().setUp()
    simulation.set_local_context()
    self.addCleanup(simulation.close)

  def test_rows_hold_the_numbers_of_each_round(self):
    self.assertEqual([r['round'] for r in self._undisturbed], list(range(1, 8)))
    # Evaluated every other round, and after the last.
    self.assertEqual(
      [r['round'] for r in self._undisturbed if 'test_accuracy' in r],
      [2, 4, 6, 7],
    )
    for row in self._undisturbed:
      self.assertEqual(row['bits_per_coordinate'], 8)
      # 7,840 codes, and ten biases as floats.
      self.assertBetween(row['download_bytes_per_client'], 7880, 9000)
      self.assertBetween(row['download_nmse'], 3e-5, 5e-5)
      self.assertEqual(
        row['bytes_per_client'],
        result_rows.measurement(row, 'bytes_per_client'),
      )

  def test_stopping_anywhere_and_continuing_gives_the_same_rows(self):
    folder = self.create_tempdir().full_path
    data = trainer.load_data(tiny_training.CONFIG)
    manager = tff.program.FileProgramStateManager(folder, keep_total=2)
    taken = {}
    # As killed in round 5, after the checkpoint of round 3 and two more rows,
    # then not at all.
    for stop in (5, 7):
      for row in trainer.run(
        tiny_training.CONFIG, data, state_manager=manager, checkpoint_every=3
      ):
        taken[row['round']] = row
        if row['round'] == stop:
          break
    self.assertEqual(
      tiny_training.numbers(taken[r] for r in sorted(taken)), self._undisturbed
    )


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
import dataclasses
import multiprocessing
import os
import pathlib
import signal
import time

from absl.testing import absltest
from absl.testing import parameterized
import pytest

from experiments.common import command_line
from experiments.common import result_rows
from experiments.common import results_file
from experiments.training import sweep as training_sweep
from experiments.training import trainer
from tests import tiny_training
from tff_autotune_secagg import simulation


def _sweep(folder, config=tiny_training.CONFIG):
  return training_sweep.TrainingSweep(
    [config],
    output_dir=folder,
    checkpoint_every=3,
    tensorboard=False,
    quiet=True,
  )


class RefusalTest(parameterized.TestCase):
  """What cannot work ends before anything is run, and leaves nothing."""

  def _refused(self, message, *texts, folder=None):
    folder = folder or os.path.join(self.create_tempdir().full_path, 'a', 'b')
    runs = training_sweep.TrainingSweep(
      [tiny_training.with_aggregator(text) for text in texts],
      output_dir=folder,
      quiet=True,
    )
    with self.assertRaisesRegex(command_line.UserError, message):
      runs.run()
    return folder

  @parameterized.parameters(
    ('autotuned:modulus=1', '^`modulus` must be'),
    ('kashin:modulus=3000000000', '^`modulus` must be'),
    ('autotuned:num_rotations=0', '^`num_rotations` must be'),
    ('fixed_range:bits=1,clip_range=1', '^`bits` of the aggregator'),
    ('ddp_secure_aggregator:bits=0', '^`bits` of the aggregator'),
    ('distributed_dp:modulus=4', '^`modulus`'),
    ('distributed_dp:min_clients=1', '^`min_clients` must be'),
  )
  def test_a_setting_of_the_last_run_is_found_before_the_first(
    self, text, message
  ):
    folder = self._refused(message, 'plain_mean', text)
    self.assertFalse(os.path.exists(os.path.dirname(folder)))

  def test_a_folder_that_another_run_writes_to(self):
    folder = self.create_tempdir().full_path
    path = os.path.join(folder, results_file.NAME)
    with results_file.ResultsFile(path).held():
      self._refused('^Another run writes to .*', 'plain_mean', folder=folder)

  def test_data_that_is_missing(self):
    folder = os.path.join(self.create_tempdir().full_path, 'results')
    runs = training_sweep.TrainingSweep(
      [
        dataclasses.replace(
          tiny_training.CONFIG, smoke=False, dataset='cifar10'
        )
      ],
      output_dir=folder,
      data_dir=self.create_tempdir().full_path,
      quiet=True,
    )
    with self.assertRaisesRegex(FileNotFoundError, '^The CIFAR-10 file'):
      runs.run()
    self.assertFalse(os.path.exists(folder))


def _run_sweep(folder):
  _sweep(folder).run()


class WorkersTest(absltest.TestCase):
  def test_a_worker_that_does_not_answer_is_named(self):
    folder = self.create_tempdir().full_path
    runs = training_sweep.TrainingSweep(
      [tiny_training.CONFIG],
      output_dir=folder,
      quiet=True,
      workers=['127.0.0.1:1'],
    )
    with self.assertRaisesRegex(ValueError, '^--workers: .*127.0.0.1:1'):
      runs.run()

  def test_a_malformed_address_is_named(self):
    folder = self.create_tempdir().full_path
    runs = training_sweep.TrainingSweep(
      [tiny_training.CONFIG],
      output_dir=folder,
      quiet=True,
      workers=['nonsense'],
    )
    with self.assertRaisesRegex(ValueError, '^--workers: .*nonsense'):
      runs.run()


@pytest.mark.slow
class ResumeTest(absltest.TestCase):
  def test_a_killed_process_is_continued_without_a_gap_or_a_doubled_row(self):
    folder = self.create_tempdir().full_path
    path = os.path.join(folder, results_file.NAME)
    process = multiprocessing.get_context('spawn').Process(
      target=_run_sweep, args=(folder,)
    )
    process.start()
    # Row 4 follows the first checkpoint. If the process is faster than the
    # look at its file, it is killed later or ends: the claim is the same.
    while process.is_alive() and len(results_file.ResultsFile(path).rows()) < 5:
      time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    simulation.set_local_context()
    undisturbed = tiny_training.numbers(
      trainer.run(tiny_training.CONFIG, trainer.load_data(tiny_training.CONFIG))
    )
    simulation.close()
    with open(path, 'ab') as f:
      f.write(b'{"kind": "round", "ru')  # As if killed while writing.
    self.assertEqual(_sweep(folder).run(), 0)
    rows = result_rows.read(path)
    self.assertEqual(tiny_training.numbers(rows), undisturbed)
    # Nothing is left to do, and doing it changes nothing.
    self.assertEqual(_sweep(folder).run(), 0)
    self.assertEqual(result_rows.read(path), rows)
    # A last checkpoint that was written halfway is written again.
    (state,) = pathlib.Path(folder).rglob('program_state_7/saved_model.pb')
    state.write_bytes(b'')
    with self.assertLogs(level='WARNING') as logged:
      self.assertEqual(_sweep(folder).run(), 0)
    # Among warnings of TensorFlow, at times.
    self.assertIn(
      'checkpoint of version 7 cannot be read', '\n'.join(logged.output)
    )
    self.assertEqual(tiny_training.numbers(result_rows.read(path)), undisturbed)
    self.assertNotEmpty(state.read_bytes())
    # A checkpoint whose rows were lost is refused.
    with open(path) as f:
      lines = f.readlines()
    with open(path, 'w') as f:
      f.writelines(lines[:3])
    with self.assertRaisesRegex(
      ValueError,
      '^The checkpoint of round 7 in .* must come with the rows '
      'of all rounds before it in .*, found 2 rows[.] Restore the file',
    ):
      _sweep(folder).run()


if __name__ == '__main__':
  absltest.main()

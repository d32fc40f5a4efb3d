# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
import dataclasses
import multiprocessing
import os
import signal
import time

from absl.testing import absltest
import pytest

from experiments.common import result_rows
from experiments.common import sweep
from experiments.training import sweep as training_sweep
from experiments.training import trainer
from tff_autotune_secagg import simulation

# Dither draws nothing but from the stored seed: rows repeat bit for bit.
_CONFIG = trainer.smoke(
  trainer.Config(
    dataset='digits',
    model='logistic',
    num_clients=4,
    clients_per_round=2,
    aggregator='autotuned:modulus=256,rounding=dither,zeroing=false',
  )
)
_CONFIG = dataclasses.replace(_CONFIG, num_rounds=7, eval_every=2)


def _numbers(rows):
  """Rows without what differs between two runs of the same numbers."""
  dropped = ('wall_seconds', 'run', 'kind', 'config')
  return [{k: v for k, v in r.items() if k not in dropped} for r in rows]


def _sweep(folder, config=_CONFIG):
  return training_sweep.TrainingSweep(
    [config],
    output_dir=folder,
    checkpoint_every=3,
    tensorboard=False,
    quiet=True,
  )


def _run_sweep(folder):
  _sweep(folder).run()


class WorkersTest(absltest.TestCase):
  def test_a_worker_that_does_not_answer_is_named(self):
    folder = self.create_tempdir().full_path
    runs = training_sweep.TrainingSweep(
      [_CONFIG], output_dir=folder, quiet=True, workers=['127.0.0.1:1']
    )
    with self.assertRaisesRegex(SystemExit, '^--workers: .*127.0.0.1:1'):
      runs.run()

  def test_a_malformed_address_is_named(self):
    folder = self.create_tempdir().full_path
    runs = training_sweep.TrainingSweep(
      [_CONFIG], output_dir=folder, quiet=True, workers=['nonsense']
    )
    with self.assertRaisesRegex(SystemExit, '^--workers: .*nonsense'):
      runs.run()


@pytest.mark.slow
class ResumeTest(absltest.TestCase):
  def test_a_killed_process_is_continued_without_a_gap_or_a_doubled_row(self):
    folder = self.create_tempdir().full_path
    path = os.path.join(folder, sweep.RESULTS_NAME)
    process = multiprocessing.get_context('spawn').Process(
      target=_run_sweep, args=(folder,)
    )
    process.start()
    # Row 4 follows the first checkpoint. If the process is faster than the
    # look at its file, it is killed later or ends: the claim is the same.
    while process.is_alive() and len(result_rows.ResultsFile(path).rows()) < 5:
      time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    with open(path, 'ab') as f:
      f.write(b'{"kind": "round", "ru')  # As if killed while writing.
    self.assertEqual(_sweep(folder).run(), 0)
    rows = result_rows.read(path)
    self.assertEqual(_numbers(rows), self._undisturbed())
    # Nothing is left to do, and doing it changes nothing.
    self.assertEqual(_sweep(folder).run(), 0)
    self.assertEqual(result_rows.read(path), rows)
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

  def _undisturbed(self):
    # A sweep closes the context that it finds.
    simulation.set_local_context()
    self.addCleanup(simulation.close)
    return _numbers(trainer.run(_CONFIG, trainer.load_data(_CONFIG)))


if __name__ == '__main__':
  absltest.main()

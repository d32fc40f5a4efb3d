# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the examples, in a few rounds."""

import contextlib
import csv
import io
import os
import pathlib
import re
import signal
import subprocess
import sys

from absl.testing import absltest
import pytest

from examples import fedavg
from examples import program_train
from tests import child_signals
from tests import fresh_python
from tests.simulation import processes
from tff_autotune_secagg import simulation
from tff_autotune_secagg.programs import training_folder

_PROJECT = pathlib.Path(__file__).parents[2]

# As `python -m examples.program_train` does.
_PROGRAM = (
  fresh_python.RARELY_COLLECTED
  + 'import runpy\n'
  + 'runpy.run_module("examples.program_train", run_name="__main__")\n'
)


def tearDownModule():
  # Test files that come later in the same Python may count on a context.
  simulation.set_local_context()


def _printed(main, *arguments, **options) -> str:
  with contextlib.redirect_stdout(io.StringIO()) as stdout:
    main(*arguments, **options)
  return stdout.getvalue()


class CopyTest(absltest.TestCase):
  def test_help_is_printed_and_loads_nothing_heavy(self):
    for name in ('fedavg', 'program_train'):
      found = subprocess.run(
        [
          sys.executable,
          '-X',
          'importtime',
          '-m',
          f'examples.{name}',
          '--help',
        ],
        cwd=_PROJECT,
        capture_output=True,
        text=True,
        check=True,
      )
      self.assertStartsWith(found.stdout, f'usage: {name}.py [-h]')
      self.assertNotIn('numpy', found.stderr)
      self.assertIn('argparse', found.stderr)  # The negative control.

  def test_the_examples_to_copy_are_short(self):
    for path in (_PROJECT / 'examples').glob('*.py'):
      self.assertLessEqual(len(path.read_text('utf-8').splitlines()), 65, path)


@pytest.mark.slow
class ExamplesTest(absltest.TestCase):
  def test_fedavg_learns_and_shows_it(self):
    lines = _printed(fedavg.main, num_rounds=6).splitlines()
    self.assertLen(lines, 6)
    self.assertRegex(
      lines[0], r'^round 1: accuracy [\d.]+%, looking for a bin size$'
    )
    pattern = (
      r'round \d: accuracy ([\d.]+)%, bin size [\d.e-]+, predicted error'
      r' ([\d.e-]+)'
    )
    found = [re.fullmatch(pattern, line) for line in lines[1:]]
    # Ten digits: 10 % is a guess, and 80 % is what it reaches by then.
    self.assertGreater(float(found[-1].group(1)), 40)
    self.assertLess(float(found[-1].group(2)), 0.02)

  def test_program_ends_by_an_interrupt_and_continues(self):
    folder = pathlib.Path(self.create_tempdir().full_path)
    paths = folder / 'stdout', folder / 'stderr'
    # As it is silent by itself.
    environment = dict(os.environ)
    environment.pop('TF_CPP_MIN_LOG_LEVEL', None)
    with open(paths[0], 'w') as stdout, open(paths[1], 'w') as stderr:
      child = child_signals.popen(
        [sys.executable, '-c', _PROGRAM, folder / 'run'],
        cwd=_PROJECT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
      )
      try:
        self.assertTrue(
          processes.wait_for(
            lambda: (
              'round 2' in paths[0].read_text() or child.poll() is not None
            )
          )
        )
        with self.assertRaisesRegex(OSError, 'that no other run has: .*run'):
          with training_folder.held(str(folder / 'run')):
            self.fail()
        child.send_signal(signal.SIGINT)
        status = child.wait(timeout=processes.DEADLINE_SECONDS)
      finally:
        child.kill()
        child.wait()
    self.assertEqual(
      paths[1].read_text(), 'Interrupted; the same command continues.\n'
    )
    self.assertEqual(status, 1)
    first, *rounds = paths[0].read_text().splitlines()
    self.assertEqual(first, '0 of 20 rounds are done.')
    done = len(rounds)
    self.assertGreaterEqual(done, 2)

    printed = _printed(
      program_train.main, folder / 'run', num_rounds=done + 1
    ).splitlines()
    self.assertLen(printed, 2)
    self.assertEqual(printed[0], f'{done} of {done + 1} rounds are done.')
    self.assertRegex(
      printed[1], rf'^round {done + 1}: loss \d\.\d+, error [\d.e-]+$'
    )
    with open(folder / 'run' / 'metrics.csv', newline='') as file:
      rows = list(csv.DictReader(file))
    self.assertEqual(
      [int(row['round']) for row in rows], list(range(1, done + 2))
    )
    # The continued run knows the bin size: only the very first round looks.
    (name,) = [name for name in rows[0] if name.endswith('/calibrating')]
    self.assertEqual(name, 'aggregator/zeroing/clipping/value/calibrating')
    calibrating = [row[name] for row in rows]
    self.assertEqual(calibrating, ['True'] + ['False'] * done)

  def test_a_folder_that_cannot_be_written_is_one_sentence(self):
    with self.assertRaisesRegex(
      SystemExit,
      '^`folder` must be a folder to write to that no other run has: '
      r"'/dev/null/a': Not a directory\.$",
    ):
      program_train.main('/dev/null/a')

  def test_clients_of_a_round_are_the_same_in_every_call(self):
    def pixels(round_num):
      return [
        sum(float(batch[0].numpy().sum()) for batch in dataset)
        for dataset in program_train.client_data(round_num)
      ]

    self.assertLen(set(pixels(1)), 10)
    self.assertEqual(pixels(1), pixels(1))
    self.assertNotEqual(pixels(1), pixels(2))


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs every binary, shrunken by --smoke, and reads every flag file."""

import contextlib
import dataclasses
import glob
import io
import json
import os
import re
import signal
import subprocess
import sys
import time

from absl import flags
from absl.testing import absltest
from absl.testing import flagsaver
from absl.testing import parameterized
import numpy as np
import pytest

from experiments.common import aggregators
from experiments.common import flag_groups
from experiments.common import plots
from experiments.common import result_rows
from experiments.mean_estimation import estimation
from experiments.mean_estimation import plot
from experiments.mean_estimation import run
from experiments.training import plot
from experiments.training import run
from experiments.training import sweep
from experiments.training import tabulate
from experiments.wrapped_normal import plot
from tests import binary_runner
from tests import child_signals

FLAGS = flags.FLAGS
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_CONFIGS = os.path.join(_ROOT, 'experiments', 'configs')
_FLAG_FILES = {
  os.path.basename(path)[: -len('.flags')]
  for path in glob.glob(os.path.join(_CONFIGS, '*.flags'))
}
_ESTIMATION_FLAG_FILES = sorted(
  name for name in _FLAG_FILES if name.startswith('mean_estimation')
)
_RESULTS = os.path.join(os.path.dirname(_CONFIGS), 'results')
_PUBLISHED = sorted(
  name
  for name in _FLAG_FILES
  if os.path.exists(os.path.join(_RESULTS, f'{name}.jsonl'))
)
_TRAINING_FLAG_FILES = sorted(_FLAG_FILES - set(_ESTIMATION_FLAG_FILES))


def _is_picture(path):
  with open(path, 'rb') as f:
    return f.read(8) == b'\x89PNG\r\n\x1a\n'


def _popen(module, folder, *arguments):
  # As a user has it: pytest's configuration sets how much TensorFlow says.
  environment = {
    k: v for k, v in os.environ.items() if k != 'TF_CPP_MIN_LOG_LEVEL'
  }
  # Files, not pipes: a worker process could hold a pipe open.
  with (
    open(os.path.join(folder, 'out'), 'w') as out,
    open(os.path.join(folder, 'err'), 'w') as err,
  ):
    return subprocess.Popen(
      [sys.executable, '-m', f'experiments.{module}', *arguments],
      cwd=_ROOT,
      stdout=out,
      stderr=err,
      stdin=subprocess.DEVNULL,
      env=environment,
      preexec_fn=child_signals.take_interrupts,
    )


def _read(folder, name):
  with open(os.path.join(folder, name)) as f:
    return f.read()


@contextlib.contextmanager
def _flags_of(name):
  """Within it, flags are those of a flag file and nothing else."""
  with flagsaver.flagsaver():
    for flag in FLAGS:
      FLAGS[flag].unparse()
    path = os.path.join(_CONFIGS, f'{name}.flags')
    flag_groups.parse(['binary', f'--flagfile={path}'])
    yield


class FlagFilesTest(parameterized.TestCase):
  def test_finds_the_flag_files(self):
    self.assertContainsSubset(
      {'demo', 'cifar_alpha', 'fashion_iid'}, _TRAINING_FLAG_FILES
    )
    self.assertNotEmpty(_ESTIMATION_FLAG_FILES)

  @parameterized.parameters(*_ESTIMATION_FLAG_FILES)
  def test_estimation_flag_file_describes_runs(self, name):
    with _flags_of(name):
      configs = flag_groups.mean_estimation_configs()
      recorded = flag_groups.recording_config()
    self.assertLen(set(configs), len(configs))
    self.assertNotEmpty(configs)
    for config in configs:
      self.assertGreater(config.num_rounds, config.settling_rounds)
      self.assertGreaterEqual(recorded.num_rounds, config.num_rounds)

  @parameterized.parameters(*_TRAINING_FLAG_FILES)
  def test_training_flag_file_describes_buildable_runs(self, name):
    with _flags_of(name):
      configs = flag_groups.training_configs()
    self.assertLen({json.dumps(c.asdict()) for c in configs}, len(configs))
    for config in configs:
      scheme = aggregators.parse(config.aggregator)
      # The others refuse no setting that parsing lets pass.
      if scheme.name == 'fixed_range':
        scheme.build(
          aggregators.Round(config.clients_per_round, (300, 20), seed=1)
        )


class PublishedResultsTest(parameterized.TestCase):
  @parameterized.parameters(*_PUBLISHED)
  def test_are_the_whole_of_their_flag_file(self, name):
    """Every run that the flags describe, every round of it once, no other."""
    with _flags_of(name):
      if name in _TRAINING_FLAG_FILES:
        configs = [c.asdict() for c in flag_groups.training_configs()]
      else:
        configs = [
          dataclasses.asdict(c) for c in flag_groups.mean_estimation_configs()
        ]
    rounds = {}
    for row in result_rows.read(os.path.join(_RESULTS, f'{name}.jsonl')):
      config = {k: v for k, v in row['config'].items() if k != 'training'}
      key = json.dumps(config, sort_keys=True)
      rounds.setdefault(key, []).append(row['round'])
    wanted = {json.dumps(c, sort_keys=True): c for c in configs}
    self.assertContainsSubset(rounds, wanted)
    for key in set(wanted) - set(rounds):
      # Some bits cannot carry the clients; a sweep says so and goes on.
      with self.assertRaises(aggregators.TooFewBitsError):
        self._build(wanted[key])
    for key, numbers in rounds.items():
      self.assertEqual(numbers, list(range(1, wanted[key]['num_rounds'] + 1)))

  def _build(self, config):
    text = estimation.Config(**config).text(1.0)
    aggregators.parse(text).build(
      aggregators.Round(config['num_clients'], (config['dim'],), 1)
    )


@pytest.mark.slow
class SmokeTest(absltest.TestCase):
  def test_demo(self):
    folder = self.create_tempdir().full_path
    output = os.path.join(folder, 'results')
    process = _popen('run_demo', folder, '--smoke', f'--output_dir={output}')
    self.assertEqual(process.wait(), 0, _read(folder, 'err'))
    table = _read(folder, 'out')
    for text in (
      'plain_mean',
      'fixed_range',
      'autotuned:modulus=256',
      'autotuned:modulus=16',
      'bits per coordinate',
    ):
      self.assertIn(text, table)
    self.assertTrue(_is_picture(os.path.join(output, 'demo.png')))
    rows = result_rows.read(os.path.join(output, sweep.RESULTS_NAME))
    self.assertLen(rows, 4 * 2)
    self.assertLen(os.listdir(os.path.join(output, 'tensorboard')), 4)
    # Nothing but progress on standard error: no log lines, no colours.
    for line in _read(folder, 'err').splitlines():
      self.assertRegex(line, '^(plain_mean|fixed_range|autotuned k=[0-9]+)')

  def test_training_and_its_figures(self):
    folder = self.create_tempdir().full_path
    status = binary_runner.run_main(
      run_federated_training,
      '--smoke',
      '--quiet',
      '--dataset=cifar10',
      '--model=all_cnn_c',
      '--partition=dirichlet',
      f'--output_dir={folder}',
      '--aggregator=plain_mean',
      '--aggregator=fixed_range:clip_range=1',
    )
    self.assertEqual(status, 0)
    path = os.path.join(folder, sweep.RESULTS_NAME)
    names = {r['config']['aggregator'] for r in result_rows.read(path)}
    self.assertEqual(names, {'plain_mean', 'fixed_range:clip_range=1'})
    with self.assertRaisesRegex(ValueError, 'such as autotuned, found none'):
      binary_runner.run_main(
        plot_training,
        f'--results={path}',
        '--figure=tuning',
        f'--output={folder}/never.png',
      )
    for figure in set(plot._FIGURES) - {'tuning'}:
      picture = os.path.join(folder, f'{figure}.png')
      self.assertEqual(
        binary_runner.run_main(
          plot_training,
          f'--results={path}',
          f'--figure={figure}',
          f'--output={picture}',
        ),
        0,
      )
      self.assertTrue(_is_picture(picture))
    table = io.StringIO()
    with contextlib.redirect_stdout(table):
      self.assertEqual(
        binary_runner.run_main(tabulate_training, f'--results={path}'), 0
      )
    self.assertRegex(
      table.getvalue(),
      r'\| `plain_mean` \| 32 \| [0-9,]+ \| 1 \| .* \| [+]0[.]00',
    )
    with self.assertRaisesRegex(
      ValueError,
      '^`select` must leave some rows, found none with '
      "'seed=9'; the values of 'seed' are 1[.]$",
    ):
      binary_runner.run_main(
        plot_training,
        f'--results={path}',
        '--select=seed=9',
        f'--output={folder}/never.png',
      )

  def test_mean_estimation_and_its_figure(self):
    folder = self.create_tempdir().full_path
    arguments = (
      '--smoke',
      '--quiet',
      f'--output_dir={folder}',
      '--vectors=dense,recorded',
      '--bits=2,8',
      '--aggregator=fixed_range:bits={bits},clip_range={max}',
    )
    self.assertEqual(binary_runner.run_main(run_mean_estimation, *arguments), 0)
    path = os.path.join(folder, sweep.RESULTS_NAME)
    rows = result_rows.read(path)
    self.assertEqual(
      [r['config']['vectors'] for r in rows],
      ['dense', 'dense', 'recorded', 'recorded'],
    )
    for row in rows:
      self.assertBetween(row['nmse'], 1e-6, 0.01)
    # Again: all is there, nothing is added.
    self.assertEqual(binary_runner.run_main(run_mean_estimation, *arguments), 0)
    self.assertEqual(result_rows.read(path), rows)
    picture = os.path.join(folder, 'picture.png')
    self.assertEqual(
      binary_runner.run_main(
        plot_mean_estimation, f'--results={path}', f'--output={picture}'
      ),
      0,
    )
    self.assertTrue(_is_picture(picture))

  def test_memory(self):
    folder = self.create_tempdir().full_path
    output = os.path.join(folder, 'memory.jsonl')
    process = _popen(
      'run_memory',
      folder,
      '--dim=3000',
      '--num_clients=2',
      f'--output={output}',
    )
    self.assertEqual(process.wait(), 0, _read(folder, 'err'))
    (row,) = result_rows.ResultsFile(output).rows()
    self.assertLess(row['nmse'][-1], 0.01)
    self.assertGreater(
      row['python_peak_mib'], row['python_before_rounds_mib'] - 1
    )
    self.assertGreater(row['worker_peak_mib'], 10)

  def test_wrapped_normal(self):
    picture = os.path.join(self.create_tempdir().full_path, 'picture.png')
    self.assertEqual(
      binary_runner.run_main(plot_wrapped_normal, f'--output={picture}'), 0
    )
    self.assertTrue(_is_picture(picture))


class CommandLineTest(absltest.TestCase):
  @pytest.mark.slow
  def test_interrupt_names_the_last_checkpoint_and_the_way_on(self):
    folder = self.create_tempdir().full_path
    output = os.path.join(folder, 'results')
    process = _popen(
      'run_federated_training',
      folder,
      f'--output_dir={output}',
      '--model=logistic',
      '--num_rounds=100000',
      '--num_clients=100',
      '--clients_per_round=1',
      '--checkpoint_every=2',
      '--notensorboard',
      '--aggregator=plain_mean',
    )
    self.addCleanup(process.kill)
    rows = result_rows.ResultsFile(os.path.join(output, sweep.RESULTS_NAME))
    while process.poll() is None and len(rows.rows()) < 5:
      time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    self.assertEqual(process.wait(), sweep.INTERRUPTED_STATUS)
    said = _read(folder, 'err')
    self.assertRegex(
      said,
      r'\nInterrupted\. Last checkpoint: round \d+ in .*checkpoints.*\. '
      rf'The same command with --output_dir={re.escape(output)} continues',
    )
    self.assertNotIn('Traceback', said)
    # The checkpoint that it names is there.
    number, place = re.search(r'round (\d+) in (\S+)\. The', said).groups()
    self.assertIn(f'program_state_{number}', os.listdir(place))

  def test_help_has_groups_and_wrong_flags_one_sentence(self):
    text = flag_groups.help_text('Summary.')
    self.assertStartsWith(text, 'Summary.\n\n')
    # Other binaries of this process may have added groups of their own.
    for part in (
      'Data:\n  --dataset=<digits|fashion_mnist|cifar10>\n',
      '\nClients:\n',
      '\nAggregation:\n',
      '\nSeeds:\n',
      '\nOutput:\n',
      '  --[no]smoke\n',
    ):
      self.assertIn(part, text)
    for wrong, right in (
      ('--dataset=mnist', 'digits|fashion_mnist|cifar10'),
      ('--aggregator=sum', 'must be one of plain_mean, fixed_range'),
      ('--num_rounds=0', 'num_rounds=0'),
      ('--seeds=a', "`seeds` must be nonnegative ints, found 'a'."),
      ('--num_round=3', 'Did you mean: num_rounds'),
      ('stray', "Arguments must be flags like --name=value, found 'stray'."),
    ):
      with self.subTest(wrong):
        with self.assertRaises(SystemExit) as caught, flagsaver.flagsaver():
          with self._captured() as text:
            flag_groups.parse(['binary', wrong])
        self.assertEqual(caught.exception.code, 1)
        self.assertIn(right, text())

  def _captured(self):
    @contextlib.contextmanager
    def capture():
      stream = io.StringIO()
      with contextlib.redirect_stderr(stream):
        yield stream.getvalue

    return capture()


class PlotNumbersTest(absltest.TestCase):
  def test_lattice_limit_doubles_with_clients_and_quarters_with_bits(self):
    self.assertAlmostEqual(plots.lattice_limit(8, 10), 10 / 4**8)
    self.assertEqual(plots.lattice_limit(1, 100), 1.0)

  def test_sigma_over_t_of_the_legend(self):
    # The two-sided 5 % point of the normal is 1.959964.
    self.assertIn(
      '=0.51)',
      plots.alpha_label('autotuned:modulus=256,wrap_probability=0.05'),
    )

  def test_the_bin_size_of_a_calibration_is_left_out(self):
    def row(calibrating):
      return dict(
        aggregator={'value/bin_size': 0.5, 'value/calibrating': calibrating}
      )

    self.assertIsNone(plots.tuned_bin_size(row(True)))
    self.assertEqual(plots.tuned_bin_size(row(False)), 0.5)
    self.assertIsNone(plots.tuned_bin_size({'aggregator': {}}))

  def test_synthetic_vectors_are_what_their_names_say(self):
    def draw(kind):
      config = estimation.Config(
        'plain_mean', vectors=kind, num_rounds=1, num_clients=4, dim=20000
      )
      return estimation.synthetic_vectors(config)[0]

    for kind in ('dense', 'sparse', 'heavy_tailed', 'aligned', 'orthogonal'):
      self.assertAlmostEqual(
        np.sqrt(np.mean(draw(kind) ** 2)), 0.01, delta=1e-6
      )
    self.assertAlmostEqual(np.mean(draw('sparse') != 0), 0.01, delta=0.002)
    aligned = draw('aligned')
    self.assertGreater(np.corrcoef(aligned)[0, 1], 0.98)
    orthogonal = draw('orthogonal')
    np.testing.assert_array_equal(
      np.count_nonzero(orthogonal, axis=0) <= 1, True
    )
    heavy = draw('heavy_tailed')
    self.assertGreater(np.mean(heavy**4) / np.mean(heavy**2) ** 2, 6)


if __name__ == '__main__':
  absltest.main()

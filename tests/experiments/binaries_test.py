# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs every binary, shrunken by --smoke or by its flags."""

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import time

from absl import flags
from absl.testing import absltest
from absl.testing import parameterized
import pytest
import tensorflow as tf

import experiments
from experiments.benchmark import timing
from experiments.common import command_line
from experiments.common import result_rows
from experiments.common import results_file
from experiments.deployment import plot as plot_deployment
from experiments.distributed_dp import plot as plot_distributed_dp
from experiments.error_table import plot as plot_error_table
from experiments.mean_estimation import plot as plot_mean_estimation
from experiments.mean_estimation import run as run_mean_estimation
from experiments.training import plot as plot_training
from experiments.training import run as run_training
from experiments.training import tabulate as tabulate_training
from experiments.wrapped_normal import plot as plot_wrapped_normal
from tests import binary_runner
from tests import child_signals
from tests import fresh_python
from tff_autotune_secagg import simulation

del tf  # Loaded here, since Keras fails if that happens within `app.run`.

_ROOT = os.path.dirname(os.path.dirname(experiments.__file__))
_LONGEST_BINARY = 70


def setUpModule():
  # A home that cannot be written, as in a sandbox, is worth two lines to
  # Matplotlib.
  os.environ.setdefault('MPLCONFIGDIR', absltest.get_default_test_tmpdir())


def _is_picture(path):
  with open(path, 'rb') as f:
    return f.read(8) == b'\x89PNG\r\n\x1a\n'


def _popen(module, folder, *arguments):
  # As a user has it: pytest's configuration sets how much TensorFlow says.
  environment = {
    k: v for k, v in os.environ.items() if k != 'TF_CPP_MIN_LOG_LEVEL'
  }
  # As `python -m` runs it.
  code = (
    f'{fresh_python.RARELY_COLLECTED}import runpy\n'
    f'runpy.run_module("experiments.{module}", run_name="__main__",'
    ' alter_sys=True)'
  )
  # Files, not pipes: a worker process could hold a pipe open.
  with (
    open(os.path.join(folder, 'out'), 'w') as out,
    open(os.path.join(folder, 'err'), 'w') as err,
  ):
    return child_signals.popen(
      [sys.executable, '-c', code, *arguments],
      cwd=_ROOT,
      stdout=out,
      stderr=err,
      stdin=subprocess.DEVNULL,
      env=environment,
    )


def _read(folder, name):
  with open(os.path.join(folder, name)) as f:
    return f.read()


def tearDownModule():
  simulation.close()


@pytest.mark.slow
class SmokeTest(absltest.TestCase):
  def _run(self, module, *arguments):
    """Runs a binary that ends well; returns what it printed."""
    found = binary_runner.run_as_main(f'experiments.{module}', *arguments)
    self.assertEqual(found.status, 0, found.stderr)
    return found.stdout

  def test_demo(self):
    folder = self.create_tempdir().full_path
    output = os.path.join(folder, 'results')
    process = _popen(
      'training.run_demo',
      folder,
      '--smoke',
      # Two of the four that its flag file has, and no convolutions: TFF
      # compiles each.
      '--model=logistic',
      '--aggregator=plain_mean',
      '--aggregator=autotuned:modulus=16,clipping=false',
      f'--output_dir={output}',
    )
    self.assertEqual(process.wait(), 0, _read(folder, 'err'))
    table = _read(folder, 'out')
    for text in (
      'plain_mean',
      'autotuned:modulus=16,clipping=false',
      'accuracy    bits    bytes up/down',
      'Against plain_mean:',
    ):
      self.assertIn(text, table)
    for line in table.partition('Picture: ')[0].splitlines():
      self.assertLessEqual(len(line), 80, line)
    self.assertTrue(_is_picture(os.path.join(output, 'demo.png')))
    rows = result_rows.read(os.path.join(output, results_file.NAME))
    self.assertLen(rows, 2 * 2)
    self.assertLen(os.listdir(os.path.join(output, 'tensorboard')), 2)
    # Nothing but progress on standard error: no log lines, no colours.
    for line in _read(folder, 'err').splitlines():
      self.assertRegex(line, '^(plain_mean|autotuned:modulus)')

  def test_training_and_its_figures(self):
    folder = self.create_tempdir().full_path
    status = binary_runner.run_main(
      run_training,
      '--smoke',
      '--quiet',
      '--dataset=cifar10',
      '--model=logistic',
      '--partition=dirichlet',
      f'--output_dir={folder}',
      '--aggregator=plain_mean',
      '--aggregator=fixed_range:clip_range=1',
    )
    self.assertEqual(status, 0)
    path = os.path.join(folder, results_file.NAME)
    names = {r['config']['aggregator'] for r in result_rows.read(path)}
    self.assertEqual(names, {'plain_mean', 'fixed_range:clip_range=1'})
    with self.assertRaisesRegex(ValueError, 'such as autotuned, found none'):
      binary_runner.run_main(
        plot_training,
        f'--results={path}',
        '--figure=tuning',
        f'--output={folder}/never.png',
      )
    for figure in set(plot_training.FIGURES) - {
      'tuning',
      'alpha',
      'prediction',
    }:
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
        binary_runner.run_main(
          tabulate_training, f'--results={path}', '--accuracies=0.001,0.999'
        ),
        0,
      )
    self.assertRegex(
      table.getvalue(),
      r'\| `plain_mean` +\| 32 +(\| [0-9,]+ +){2}\| 1 +\| .* \| [+]0[.]00',
    )
    self.assertRegex(
      table.getvalue(),
      r'(?s)To a test accuracy of 0[.]1 %:.*\| `plain_mean` +\| 1 of 1 .*'
      r'To a test accuracy of 99[.]9 %:.*\| `plain_mean` +\| 0 of 1 +\| - ',
    )
    with self.assertRaisesRegex(
      ValueError,
      "^--accuracies must be numbers above 0 and below 1, .*'0.8,84'[.]$",
    ):
      binary_runner.run_main(
        tabulate_training, f'--results={path}', '--accuracies=0.8,84'
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
      '--model=logistic',
      '--bits=8',
      '--aggregator=fixed_range:bits={bits},clip_range={max}',
    )
    self.assertEqual(binary_runner.run_main(run_mean_estimation, *arguments), 0)
    path = os.path.join(folder, results_file.NAME)
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
    self._run('benchmark.run_memory', '--smoke', f'--results={output}')
    (row,) = result_rows.read(output, kind='memory')
    self.assertLess(row['nmse'][-1], 0.01)
    self.assertGreater(
      row['python_peak_mib'], row['python_before_rounds_mib'] - 1
    )
    self.assertGreater(row['worker_peak_mib'], 10)

  def test_benchmark(self):
    folder = self.create_tempdir().full_path
    output = os.path.join(folder, 'times.jsonl')
    printed = self._run(
      'benchmark.run',
      '--smoke',
      # Two of nine: TFF compiles each.
      '--aggregators=TFF sum,tff_autotune_secagg sum',
      f'--results={output}',
    )
    rows = result_rows.read(output, kind='time')
    self.assertSetEqual({row['group'] for row in rows}, set(timing.GROUPS))
    self.assertRegex(printed, r'\| round +\| 1,100 +\| 2 +\|')

  def test_error_table_and_its_figure(self):
    folder = self.create_tempdir().full_path
    output = os.path.join(folder, 'rows.jsonl')
    # What is given wins.
    self._run(
      'error_table.run', '--smoke', '--moduli=64', f'--results={output}'
    )
    rows = result_rows.read(output)
    self.assertEqual([row['modulus'] for row in rows], [64] * 3)
    picture = os.path.join(folder, 'picture.png')
    status = binary_runner.run_main(
      plot_error_table, f'--results={output}', f'--output={picture}'
    )
    self.assertEqual(status, 0)
    self.assertTrue(_is_picture(picture))

  def test_convergence_its_table_and_its_figure(self):
    folder = self.create_tempdir().full_path
    output = os.path.join(folder, 'rows.jsonl')
    arguments = (
      '--smoke',
      '--dataset=digits',
      '--aggregator=plain_mean',
      '--aggregator=fixed_range:bits=12,clip_range={max},rotate=true',
      '--aggregator=fixed_range:bits=1,clip_range=1',
      f'--results={output}',
    )
    found = binary_runner.run_as_main('experiments.convergence.run', *arguments)
    self.assertEqual(found.status, 0, found.stderr)
    self.assertIn('clip_range=1 seed 1 skipped: `bits` of', found.stderr)
    rows = result_rows.read(output)
    self.assertEqual([row['round'] for row in rows], 2 * [1, 2, 4])
    # Again: all is there, nothing is added.
    self._run('convergence.run', *arguments)
    self.assertEqual(result_rows.read(output), rows)
    printed = self._run('convergence.tabulate', f'--results={output}')
    self.assertIn('| fixed_range, 12 bits, known range, rotated |', printed)
    picture = os.path.join(folder, 'picture.png')
    self._run('convergence.plot', f'--results={output}', f'--output={picture}')
    self.assertTrue(_is_picture(picture))

  def test_distributed_dp_and_its_figure(self):
    folder = self.create_tempdir().full_path
    output = os.path.join(folder, 'rows.jsonl')
    printed = self._run('distributed_dp.run', '--smoke', f'--results={output}')
    self.assertLen(printed.splitlines(), 5)
    self.assertLen(result_rows.read(output), 4)
    picture = os.path.join(folder, 'errors.png')
    status = binary_runner.run_main(
      plot_distributed_dp, f'--results={output}', f'--output={picture}'
    )
    self.assertEqual(status, 0)
    self.assertTrue(_is_picture(picture))

  def test_distributed_dp_of_a_sample(self):
    output = os.path.join(self.create_tempdir().full_path, 'rows.jsonl')
    printed = self._run(
      'distributed_dp.run_sampling',
      '--smoke',
      '--seeds=1',
      f'--results={output}',
    )
    self.assertLen(printed.splitlines(), 2 + 4)
    self.assertLen(result_rows.read(output), 2)

  def test_protocol_cost(self):
    folder = self.create_tempdir().full_path
    output = os.path.join(folder, 'rows.jsonl')
    for _ in range(2):  # Rows are replaced, not added to.
      self._run('protocol_cost.run', '--smoke', f'--results={output}')
      self.assertLen(result_rows.read(output), 2 + 4)

  def test_deployment_and_its_figure(self):
    folder = self.create_tempdir().full_path
    printed = self._run(
      'deployment.run',
      '--smoke',
      '--quiet',
      '--model=logistic',
      '--aggregator=autotuned:modulus=256,zeroing=false,clipping=false',
      '--nosimulate',
      '--dropout=0',
      f'--output_dir={folder}',
    )
    self.assertRegex(printed, 'a client sends +dtype +length')
    self.assertRegex(printed, '1 +masked +[0-9.]+ % +2 of 2')
    path = os.path.join(folder, results_file.NAME)
    self.assertEqual([r['survivors'] for r in result_rows.read(path)], [2, 2])
    self.assertTrue(_is_picture(os.path.join(folder, 'deployment.png')))
    picture = os.path.join(folder, 'again.png')
    status = binary_runner.run_main(
      plot_deployment, f'--results={path}', f'--output={picture}'
    )
    self.assertEqual(status, 0)
    self.assertTrue(_is_picture(picture))

  def test_soak(self):
    folder = self.create_tempdir().full_path
    output = os.path.join(folder, 'rows.jsonl')
    self._run('soak.run', '--smoke', '--dither', f'--results={output}')
    (row,) = result_rows.read(output)
    self.assertEqual(row['round'], 8)
    # What it kept to continue from is gone; the lock of the file stays.
    self.assertSameElements(
      os.listdir(folder), ['rows.jsonl', 'rows.jsonl.lock']
    )

  def test_scaling(self):
    folder = self.create_tempdir().full_path
    path = os.path.join(folder, 'rows.jsonl')
    printed = self._run(
      'scaling.run',
      '--smoke',
      '--aggregator=plain_mean',  # Quickly compiled.
      f'--results={path}',
    )
    self.assertRegex(printed, '^num_workers 0  rounds_per_minute')
    (row,) = result_rows.read(path)
    self.assertEqual((row['round'], row['num_workers']), (1, 0))

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
      'training.run',
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
    rows = results_file.ResultsFile(os.path.join(output, results_file.NAME))
    while process.poll() is None and len(rows.rows()) < 5:
      time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    self.assertEqual(process.wait(), command_line.INTERRUPTED_STATUS)
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

  def test_help_lists_the_flags_of_the_binary(self):
    folder = self.create_tempdir().full_path
    for module, names in (
      ('training.run', ('aggregator', 'num_rounds', 'output_dir', '[no]smoke')),
      ('mean_estimation.run', ('aggregator', 'vectors', 'num_rounds')),
      ('training.plot', ('results', 'figure', 'output')),
    ):
      process = _popen(module, folder, '--help')
      self.assertEqual(process.wait(), 0)
      for name in names:
        self.assertIn(f'\n  --{name}:', _read(folder, 'out'))
      # No flag of another binary.
      self.assertNotIn('--sigma_over_t', _read(folder, 'out'))

  def test_what_a_user_can_mend_is_one_sentence_and_leaves_nothing(self):
    rows = os.path.join(_ROOT, 'experiments', '{}', 'results', '{}.jsonl')
    benchmark = rows.format('benchmark', 'benchmark')
    error_table = rows.format('error_table', 'error_table')
    for module, arguments, message in (
      ('training.plot', ['--output=a.png'], '--results must have a value'),
      (
        'training.plot',
        ['--results=none.jsonl', '--output={}/a.png'],
        "There is no file of result rows 'none.jsonl'.",
      ),
      (
        'training.tabulate',
        ['--results={}/mispelt/r.jsonl'],
        'There is no file of result rows ',
      ),
      (
        'training.tabulate',
        [f'--results={rows.format("training", "demo")}', '--reference=none'],
        '--reference must be an aggregator of the rows, which have autotuned',
      ),
      (
        'error_table.plot',
        [f'--results={benchmark}', '--output={}/a.png'],
        "must have rows of kind 'round' with modulus, nmse, bits_above_bound",
      ),
      (
        'benchmark.plot',
        [f'--results={error_table}', '--output={}/a.png'],
        "must have rows of kind 'time' with group, case, seconds",
      ),
      (
        'error_table.plot',
        [f'--results={error_table}', '--output={}/mispelt/a.png'],
        '--output must lie in a folder that is there',
      ),
      (
        'error_table.plot',
        [f'--results={error_table}', '--output={}/a.nonsense'],
        "--output: Format 'nonsense' is not supported",
      ),
      (
        'error_table.plot',
        [f'--results={error_table}', '--select=a=1', '--output={}/a.png'],
        "`select` must name a setting, found 'a'; they are none.",
      ),
      (
        'error_table.plot',
        [f'--results={error_table}', '--output={}/a'],
        '--output must end in .png or the like, found',
      ),
      ('training.run', ['--seeds=', '--smoke'], 'found an empty one'),
      ('training.run', ['--seeds=1,1', '--smoke'], 'found this one twice'),
      ('mean_estimation.run', ['--vectors=', '--smoke'], 'found an empty one'),
      ('error_table.run', ['--results=/dev/null/r.jsonl'], 'Not a directory.'),
      ('soak.run', ['--results={}'], 'Is a directory.'),
      (
        'protocol_cost.run',
        ['--results={}/a.jsonl,{}/b.jsonl'],
        '--results must be one file to write to, found 2.',
      ),
      ('error_table.run', ['--results={}/r', '--cohorts=0'], 'at least 1'),
      ('scaling.run', ['--aggregator=sum'], '`aggregator` must be one of'),
      ('scaling.run', ['--results=/dev/null/r.jsonl'], 'Not a directory.'),
      ('training.run', ['stray'], "must be flags like --name=value, found 'st"),
    ):
      with self.subTest(' '.join([module, *arguments])):
        wanted = os.path.join(self.create_tempdir().full_path, '')
        status, _, said = binary_runner.run_as_main(
          f'experiments.{module}',
          *(text.replace('{}', wanted) for text in arguments),
        )
        self.assertEqual(status, 1, said)
        self.assertIn(message, said)
        self.assertEqual(said.count('\n'), 1, said)
        self.assertEmpty(os.listdir(wanted))

  def test_a_wrong_flag_is_one_sentence(self):
    for wrong, right in (
      ('--dataset=mnist', 'digits|fashion_mnist|cifar10'),
      (
        '--aggregator=sum',
        'must be one of plain_mean, clipped_mean, fixed_range',
      ),
      ('--aggregator=kashin:modulus={bits', "'{bits'"),
      ('--num_rounds=0', 'num_rounds=0'),
      ('--seeds=a', 'must be ints of at least 0, separated by commas, found'),
      ('--vectors=dense,flat', "found 'flat'"),
      ('--num_round=3', 'Did you mean: num_rounds'),
    ):
      with self.subTest(wrong):
        with self.assertRaises(flags.Error) as caught:
          with binary_runner.parsed_flags(wrong):
            pass
        self.assertIn(right, str(caught.exception))
        self.assertNotIn('\n', str(caught.exception))
    # The negative control.
    with binary_runner.parsed_flags('--aggregator=kashin:modulus={modulus}'):
      pass


def _binaries():
  for folder, _, names in os.walk(os.path.dirname(experiments.__file__)):
    for name in names:
      if re.fullmatch(r'(run|run_\w+|plot|tabulate)\.py', name):
        yield os.path.relpath(os.path.join(folder, name), _ROOT)


class SourceTest(parameterized.TestCase):
  def test_finds_the_binaries(self):
    self.assertContainsSubset(
      ['experiments/training/run.py', 'experiments/benchmark/run_memory.py'],
      list(_binaries()),
    )

  def test_help_loads_no_tensorflow(self):
    # Each in a fork of one Python that has loaded what all of them need.
    code = (
      'import os, runpy, sys\n'
      'from experiments.common import command_line\n'
      'for module in sys.argv[1:]:\n'
      '  if os.fork():\n'
      '    os.wait()\n'
      '    continue\n'
      '  sys.argv = [module, "--help"]\n'
      '  try:\n'
      '    runpy.run_module(module, run_name="__main__")\n'
      '  except SystemExit as e:\n'
      '    print(module, e.code, sorted({"tensorflow", "scipy", "matplotlib"}'
      ' & set(sys.modules)), flush=True)\n'
      '  os._exit(0)\n'
    )
    modules = [
      path[: -len('.py')].replace(os.sep, '.') for path in sorted(_binaries())
    ]
    found = subprocess.run(
      [sys.executable, '-c', code, *modules],
      cwd=_ROOT,
      capture_output=True,
      text=True,
      check=True,
    )
    for module in modules:
      self.assertIn(f'\n{module} 0 []\n', found.stdout)

  @parameterized.parameters(
    *(path for path in sorted(_binaries()) if '/run' in path)
  )
  def test_a_run_can_be_shrunk(self, path):
    with open(os.path.join(_ROOT, path)) as f:
      text = f.read()
    self.assertRegex(text, r'define_smoke\(\)|adopt_module_key_flags')

  @parameterized.parameters(*sorted(_binaries()))
  def test_a_binary_is_short_and_takes_only_flags(self, path):
    with open(os.path.join(_ROOT, path)) as f:
      text = f.read()
    self.assertLessEqual(text.count('\n'), _LONGEST_BINARY)
    self.assertRegex(text, r'\n  (command_line|plot_binary)[.]run\(\s*main')
    module = path[: -len('.py')].replace(os.sep, '.')
    self.assertIn(f'python -m {module}', text)


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of flags, flag files, errors and exit status, without TensorFlow."""

import os
import subprocess
import sys

from absl import flags
from absl.testing import absltest
from absl.testing import parameterized

import experiments
from experiments.common import command_line
from experiments.training import flags as training_flags
from tests import binary_runner

_ROOT = os.path.dirname(os.path.dirname(experiments.__file__))
_ERRORS_BINARY = """
import sys
from experiments.common import command_line

def main():
  kind = sys.argv[1] if len(sys.argv) > 1 else ''
  raise eval(ERROR)

command_line.run(main, on_interrupt='Interrupted. Go on.')
"""


class FlagFileTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self._path = self.create_tempfile(
      'a.flags',
      '# A comment.\n--num_rounds=7\n--aggregator=plain_mean\n'
      '--aggregator=autotuned:modulus=16\n--noaugment\n--smoke\n',
    ).full_path

  def _configs(self, *arguments):
    with binary_runner.parsed_flags(*arguments):
      return training_flags.configs()

  def test_values_are_defaults_and_the_command_line_replaces_them(self):
    arguments = [f'--flagfile={self._path}', '--nosmoke']
    first, second = self._configs(*arguments)
    self.assertEqual((first.num_rounds, first.smoke), (7, False))
    self.assertEqual(second.aggregator, 'autotuned:modulus=16')
    # Before or after the file.
    for given in (
      ['--aggregator=kashin', *arguments],
      [*arguments, '--aggregator=kashin'],
    ):
      (config,) = self._configs(*given)
      self.assertEqual(config.aggregator, 'kashin')

  def test_each_aggregator_has_its_download(self):
    path = self.create_tempfile(
      'b.flags',
      '--aggregator=plain_mean\n--aggregator=kashin\n'
      '--model_download_bits=32,8\n',
    ).full_path

    def bits(*more):
      found = self._configs('--flagfile', path, *more)
      return [config.model_download_bits for config in found]

    self.assertEqual(bits(), [32, 8])
    self.assertEqual(bits('--model_download_bits=4'), [4, 4])
    # The file's numbers are of the file's aggregators.
    self.assertEqual(bits('--aggregator=kashin'), [32])
    with self.assertRaisesRegex(
      command_line.UserError, 'one for each of 1 aggregators, found 2 numbers'
    ):
      bits('--aggregator=kashin', '--model_download_bits=8,4')

  def test_each_seed_has_a_partition_of_its_own_if_asked(self):
    arguments = ['--flagfile', self._path, '--seeds=3,5', '--partition_seed=10']
    for more, expected in (
      ([], [10, 10]),
      (['--partition_of_each_seed'], [13, 15]),
    ):
      configs = self._configs(*arguments, *more)[::2]
      self.assertEqual([c.seed for c in configs], [3, 5])
      self.assertEqual([c.partition_seed for c in configs], expected)

  def test_smoke_shrinks_what_is_not_given(self):
    first, _ = self._configs('--flagfile', self._path)
    self.assertEqual((first.num_rounds, first.num_clients), (2, 4))
    self.assertTrue(first.smoke)
    first, _ = self._configs(f'--flagfile={self._path}', '--num_rounds=5')
    self.assertEqual((first.num_rounds, first.num_clients), (5, 4))

  def test_smoke_keeps_every_given_seed_and_a_cohort_of_given_size(self):
    found = self._configs('--smoke', '--seeds=3,4', '--clients_per_round=6')
    self.assertEqual({config.seed for config in found}, {3, 4})
    self.assertEqual(
      {(c.clients_per_round, c.num_clients) for c in found}, {(6, 6)}
    )
    (config,) = self._configs(
      '--smoke', '--num_clients=1', '--aggregator=plain_mean'
    )
    self.assertEqual((config.clients_per_round, config.num_clients), (1, 1))

  @parameterized.parameters(
    (
      '--num_round=3\n',
      "must hold flags of this binary, found '--num_round=3'",
    ),
    ('--num_rounds=many\n', 'num_rounds'),
    ('stray\n', "must hold flags of this binary, found 'stray'"),
  )
  def test_a_wrong_line_is_named(self, text, message):
    path = self.create_tempfile('b.flags', text).full_path
    with self.assertRaisesRegex(flags.Error, message):
      self._configs(f'--flagfile={path}')

  def test_a_file_that_is_not_there_is_named(self):
    with self.assertRaisesRegex(
      flags.Error, "must name a file, found 'no.flags'"
    ):
      self._configs('--flagfile=no.flags')

  def test_more_clients_than_there_are_is_one_sentence(self):
    with self.assertRaisesWithLiteralMatch(
      command_line.UserError,
      '`clients_per_round` must be at most `num_clients`, found 10 and 5.',
    ):
      self._configs('--num_clients=5')


class RunTest(parameterized.TestCase):
  def _run(self, error, *arguments):
    code = _ERRORS_BINARY.replace('ERROR', repr(error))
    found = subprocess.run(
      [sys.executable, '-c', code, *arguments],
      cwd=_ROOT,
      capture_output=True,
      text=True,
      check=False,
    )
    return found.returncode, found.stderr

  @parameterized.parameters(
    ("command_line.UserError('A must be B.')", 1, 'A must be B.\n'),
    ("FileNotFoundError('There is no x.')", 1, 'There is no x.\n'),
    (
      "OSError(28, 'No space left on device', 'r.jsonl')",
      1,
      "'r.jsonl': No space left on device.\n",
    ),
    ('KeyboardInterrupt()', 130, '\nInterrupted. Go on.\n'),
  )
  def test_what_a_user_can_mend_is_one_sentence(self, error, status, said):
    self.assertEqual(self._run(error), (status, said))

  def test_a_fault_of_the_code_keeps_its_traceback(self):
    status, said = self._run("ValueError('Not expected.')")
    self.assertEqual(status, 1)
    self.assertIn('Traceback', said)

  def test_a_word_that_is_no_flag_is_refused(self):
    self.assertEqual(
      self._run('None', 'stray'),
      (1, "Arguments must be flags like --name=value, found 'stray'.\n"),
    )

  def test_a_value_error_is_the_users_where_that_is_said(self):
    with self.assertRaisesWithLiteralMatch(command_line.UserError, 'x'):
      with command_line.user_errors():
        raise ValueError('x')


if __name__ == '__main__':
  absltest.main()

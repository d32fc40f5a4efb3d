# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import math
import os
import re
import subprocess
import sys
import tempfile

from absl.testing import absltest
from absl.testing import parameterized

from tests import binary_runner
import tff_autotune_secagg as autotune
from tff_autotune_secagg import _private_table
from tff_autotune_secagg import planner
from tff_autotune_secagg.numerics.tuning import modulus_problems

_PLANNER = 'tff_autotune_secagg.planner'
_FOLDER = os.path.dirname(os.path.dirname(__file__))


class RowsTest(parameterized.TestCase):
  @parameterized.parameters(*autotune.Rounding)
  def test_bits_meet_the_target_and_bytes_follow(self, rounding):
    for row in planner.rows(10**6, 100, [0.1, 1e-3], rounding):
      self.assertLessEqual(row['predicted_nmse'], row['target_nmse'])
      self.assertEqual(row['modulus'], 2 ** row['bits'])
      payload = 8 * row['bytes_per_client'] / row['bits']
      self.assertBetween(payload, 10**6, 1.06 * 10**6)
      self.assertEqual(row['bytes_as_floats'], 4 * 10**6)
      self.assertAlmostEqual(
        row['share_of_floats'],
        row['bytes_per_client'] / row['bytes_as_floats'],
      )

  def test_half_a_bit_per_doubling_against_a_whole_one(self):
    few, many = (planner.rows(5000, n, [0.01])[0] for n in (16, 1024))
    self.assertEqual(many['bits'] - few['bits'], 3)
    self.assertEqual(
      many['bits_without_wrapping'] - few['bits_without_wrapping'], 6
    )

  def test_one_client_has_no_headroom_to_save(self):
    row = planner.rows(5000, 1, [0.01])[0]
    self.assertEqual(row['bits'], row['bits_without_wrapping'])

  def test_small_models_cost_as_much_as_1024_values(self):
    small, large = (planner.rows(size, 10, [0.01])[0] for size in (3, 1024))
    self.assertEqual(small['bytes_per_client'], large['bytes_per_client'])

  def test_smallest_modulus_is_the_least_that_is_not_refused(self):
    for num_clients in (1, 10, 1000):
      modulus = planner.smallest_modulus(num_clients)
      self.assertLessEqual(
        autotune.predicted_nmse(num_clients=num_clients, modulus=modulus),
        modulus_problems.MAX_PREDICTED_NMSE,
      )

  def test_a_prediction_is_worth_half_a_bit_per_halving(self):
    for target in (0.01, 1e-3):
      plain, predicted = (
        planner.rows(5000, 100, [target], prediction_gain=gain)[0]
        for gain in (1.0, 1 / 16)
      )
      self.assertEqual(plain['bits'] - predicted['bits'], 2)
      self.assertLessEqual(predicted['predicted_nmse'], target)
      # What a range needs does not change, nor do clients.
      name = 'bits_without_wrapping'
      self.assertEqual(plain[name], predicted[name])

  def test_uneven_clients_cost_more_than_even_ones(self):
    for row in planner.rows(5000, 10, [0.1, 0.001]):
      self.assertLess(row['nmse_of_even_clients'], row['predicted_nmse'])
      self.assertGreater(
        row['nmse_of_uneven_clients'], 1.3 * row['predicted_nmse']
      )

  def test_table_shows_every_row(self):
    found = planner.rows(5000, 10, [0.1, 0.01])
    lines = planner.format_table(found).splitlines()
    self.assertLen(lines, 4)
    for line, row in zip(lines[2:], found):
      self.assertEqual(
        line.split()[:3],
        [f'{row["target_nmse"]:g}', str(row['bits']), str(row['modulus'])],
      )

  def test_private_table_has_a_line_for_each_multiplier(self):
    row = dict(
      noise_multiplier=1.0,
      bits=7,
      bytes_per_client=925_000,
      noise_to_signal=math.inf,
      epsilons=[0.5, 12.25],
    )
    lines = _private_table.format_rows([row, row], [1, 10]).splitlines()
    self.assertLen(lines, 4)
    self.assertEqual(
      [line.split() for line in lines[2:]],
      [['1', '7', '925,000', 'inf', '0.5', '12.2']] * 2,
    )
    self.assertIn('T=10', lines[0])
    self.assertLen({len(line) for line in lines}, 1)
    self.assertNotIn('sampled', lines[0])

  def test_private_table_of_samples_has_what_is_sent_of_each_value(self):
    row = dict(
      noise_multiplier=1.0,
      bits=7,
      bytes_per_client=92_500,
      sampled_fraction=0.1,
      bits_per_value=0.7,
      bytes_with_keys=118_673,
      noise_to_signal=100.0,
      epsilons=[0.5],
    )
    heads, _, line = _private_table.format_rows([row], [1]).splitlines()
    self.assertEqual(
      heads.split()[:7],
      ['z', 'bits', 'bytes', 'sampled', 'bits/value', 'with', 'keys'],
    )
    self.assertEqual(
      line.split(), ['1', '7', '92,500', '0.1', '0.7', '118,673', '100', '0.5']
    )


class BinaryTest(absltest.TestCase):
  def test_refuses_a_modulus_with_one_that_would_do(self):
    with tempfile.TemporaryFile('w+') as output:
      status = subprocess.run(
        [
          sys.executable,
          '-m',
          'tff_autotune_secagg.planner',
          '--num_values=5000',
          '--num_clients=1000',
          '--targets=0.1',
          '--modulus=16',
        ],
        cwd=_FOLDER,
        stdout=output,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=300,
      ).returncode
      output.seek(0)
      text = output.read()
    self.assertEqual(status, 1, text)
    self.assertIn('5,000 values, 1,000 clients', text)
    found = re.search(
      r'^`modulus` 16 is too small for `num_clients` 1000: the predicted error'
      r' is 1 of the squared norm of the sum, above 0\.5\. Raise'
      r' `modulus` to (\d+) or more, or lower `num_clients`\.',
      text,
      re.MULTILINE,
    )
    self.assertIsNotNone(found, text)
    self.assertEqual(int(found[1]), planner.smallest_modulus(1000))

  def test_numbers_out_of_range_are_refused_before_the_table(self):
    for given, message in (
      (
        '--targets=0.1,2',
        '`targets` must be a finite number above 0',
      ),
      ('--targets=nan', '`targets` must be a finite number above 0'),
      ('--modulus=1', '`modulus` must be an int of at least 2 and at most'),
      (
        '--prediction_gain=0',
        '`prediction_gain` must be a finite number above 0 and at most 1',
      ),
    ):
      with self.subTest(given):
        output = binary_runner.run_as_main(_PLANNER, given)
        self.assertStartsWith(output.stderr, message)
        self.assertEqual((output.status, output.stdout), (1, ''))

  def test_one_client_has_no_private_round(self):
    output = binary_runner.run_as_main(
      _PLANNER, '--noise_multiplier=1', '--num_values=10', '--num_clients=1'
    )
    self.assertStartsWith(
      output.stderr, '`num_clients` must be an int of at least 2, found 1'
    )
    self.assertEqual((output.status, output.stdout), (1, ''))

  def test_flags_that_a_plan_does_not_read_are_refused(self):
    private = ('--noise_multiplier=1', '--num_values=10', '--num_clients=10')
    for given, found in (
      ('--modulus=16', '`--modulus=16`'),
      ('--targets=0.1,0.2', "`--targets=['0.1', '0.2']`"),
      ('--dither', '`--dither=True`'),
      ('--prediction_gain=0.5', '`--prediction_gain=0.5`'),
    ):
      with self.subTest(given):
        output = binary_runner.run_as_main(_PLANNER, *private, given)
        name = found.partition('=')[0] + '`'
        self.assertEqual(
          output.stderr,
          f'{name} must be left out beside `--noise_multiplier`, found {found}:'
          ' private rounds have their own modulus and noise.\n',
        )
        self.assertEqual((output.status, output.stdout), (1, ''))
    for given in (
      '--min_clients=5',
      '--num_rounds=7',
      '--delta=1e-05',
      '--alignment=0.5',
      '--excess_error=0.05',
    ):
      with self.subTest(given):
        output = binary_runner.run_as_main(_PLANNER, given)
        self.assertRegex(
          output.stderr,
          rf'^`{given.partition("=")[0]}` must be given with'
          r' `--noise_multiplier`, found .* alone: it is of private'
          r' rounds\.\n$',
        )
        self.assertEqual((output.status, output.stdout), (1, ''))


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
from absl.testing import parameterized

from experiments.convergence import figure
from experiments.convergence import table


def _run(aggregator, seed, excesses, **config):
  """Rows of a run of as many evaluations, ten rounds from each to the next."""
  settings = dict(aggregator=aggregator, seed=seed, dataset='digits', **config)
  settings.setdefault('num_rounds', 10 * len(excesses))
  return [
    dict(
      run=f'{aggregator}-{seed}',
      config=settings,
      round=10 * number,
      excess_loss=excess,
      nmse=0.1 * seed,
      bits_per_coordinate=8,
      bytes_per_client=100,
      round_bytes=1000,
    )
    for number, excess in enumerate(excesses, 1)
  ]


class RoundsToTest(parameterized.TestCase):
  @parameterized.parameters(
    (1e-2, 10.0),
    (1e-3, 15.0),
    (1e-4, 20.0),
    (1e-6, 30.0),
    (1e-7, None),
  )
  def test_interpolates_logarithms(self, target, wanted):
    rows = _run('plain_mean', 1, [1e-2, 1e-4, 1e-6])
    found = table.rounds_to(rows, target)
    if wanted is None:
      self.assertIsNone(found)
    else:
      self.assertAlmostEqual(found, wanted, delta=1e-9)


class TableTest(parameterized.TestCase):
  def test_means_are_geometric(self):
    rows = _run('autotuned', 1, [1.0, 1e-4]) + _run('autotuned', 4, [1.0, 1e-6])
    rows += _run('kashin', 1, [1.0, 1e-1])
    found, other = table.by_aggregator(rows, [1e-2, 1e-5])
    self.assertAlmostEqual(found['excess_loss'], 1e-5)
    self.assertAlmostEqual(found['nmse'], 0.2)
    self.assertEqual(found['repeats'], 2)
    low, high = found['interval']
    self.assertAlmostEqual(low * high, 1e-10)
    self.assertLess(low, 1e-6)
    # One seed needs half of ten rounds for 1e-2, the other a third; only one
    # reaches 1e-5.
    self.assertAlmostEqual(found['rounds_to'][0], 10 + (5 + 10 / 3) / 2)
    self.assertIsNone(found['rounds_to'][1])
    self.assertEqual(other['rounds_to'], [None, None])
    text = table.format_table([found, other], [1e-2, 1e-5])
    self.assertRegex(text, r'\| 14, 0.0014, 0.014 +\| - +\|')

  def test_runs_that_cannot_be_compared_are_refused(self):
    rows = _run('autotuned', 1, [1.0, 0.1])
    with self.assertRaisesRegex(ValueError, 'must be of runs with one num_r'):
      table.by_aggregator(rows + _run('kashin', 1, [1.0]), [0.1])
    short = _run('autotuned', 1, [1.0], num_rounds=20)
    with self.assertRaisesRegex(ValueError, 'to round 10 of 20: let it fin'):
      table.by_aggregator(short, [0.1])

  @parameterized.parameters(
    ('plain_mean', 'plain_mean'),
    ('secure_aggregator', 'secure_aggregator, clipping'),
    ('autotuned:modulus=32,zeroing=false,clipping=false', 'autotuned, 5 bits'),
    (
      'fixed_range:bits=12,clip_range={max/4},rotate=true',
      'fixed_range, 12 bits, known range, rotated',
    ),
    (
      'autotuned:modulus=16,clipping=false,decoding=centred',
      'autotuned, 4 bits, decoding=centred',
    ),
  )
  def test_label(self, text, wanted):
    self.assertEqual(table.label(text), wanted)


class FigureTest(absltest.TestCase):
  def test_draws_each_aggregator_over_rounds_and_bytes(self):
    rows = _run('plain_mean', 1, [1.0, 1e-4]) + _run(
      'plain_mean', 2, [1.0, 1e-6]
    )
    rows += _run('autotuned:modulus=256', 1, [1.0, 1e-3])
    drawn = figure.draw(rows, 'Title')
    for axes, factor in zip(drawn.axes, (1, 100, 1000)):
      lines = {line.get_label(): line for line in axes.lines}
      self.assertEqual(
        list(lines), ['plain_mean', 'autotuned, 8 bits, clipping']
      )
      found = lines['plain_mean'].get_xydata()
      self.assertEqual(found[:, 0].tolist(), [10 * factor, 20 * factor])
      self.assertAlmostEqual(found[1, 1], 1e-5)


if __name__ == '__main__':
  absltest.main()

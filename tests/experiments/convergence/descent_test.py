# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import dataclasses

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from experiments.convergence import descent
from experiments.convergence import settings

_CONFIG = settings.Config(
  'digits',
  'plain_mean',
  **{**settings.SMOKE, 'num_rounds': 25, 'eval_every': 10},
  dirichlet_concentration=0.1,
  smoke=True,
)


class DescentTest(parameterized.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.problem = descent.load(_CONFIG)

  def _rows(self, aggregator):
    config = dataclasses.replace(_CONFIG, aggregator=aggregator)
    mean = descent.build(config, self.problem)
    return list(descent.run(config, self.problem, mean))

  def test_plain_mean_is_gradient_descent(self):
    rows = self._rows('plain_mean')
    self.assertEqual([row['round'] for row in rows], [1, 10, 20, 25])
    weights = np.zeros(self.problem.dim)
    for _ in range(25):
      gradients = self.problem.gradients(weights).clients
      weights -= _CONFIG.learning_rate * self.problem.mean(gradients)
    excess = self.problem.loss(weights) - self.problem.least_loss
    self.assertAlmostEqual(rows[-1]['excess_loss'] / excess, 1, delta=1e-4)
    for row in rows:
      self.assertLess(row['nmse'], 1e-11)
      self.assertGreater(row['cancellation'], 1 / _CONFIG.num_clients)
    self.assertGreater(rows[-1]['cancellation'], rows[0]['cancellation'])

  def test_counts_bytes(self):
    (*_, row) = self._rows('fixed_range:bits=8,clip_range=1')
    self.assertEqual(row['bytes_per_client'], 6 * 9)
    self.assertEqual(row['download_bytes_per_client'], 4 * 6 * 9)
    # Secure sums need keys, others do not.
    self.assertGreater(row['round_bytes'], 5 * 6 * 9)
    (*_, plain) = self._rows('plain_mean')
    self.assertEqual(plain['round_bytes'], 2 * 4 * 6 * 9)

  def test_known_range_holds_all_updates(self):
    rows = self._rows('fixed_range:bits=24,clip_range={max},rotate=true')
    # Where it clipped, the error would be of the order of 1.
    self.assertLess(rows[0]['nmse'], 1e-2)

  @parameterized.parameters(
    (dict(num_rounds=0), '`num_rounds` must be an int of at least 1, found 0'),
    (dict(l2=0.0), '`l2` must be a positive float, found 0.0'),
    (dict(num_clients=61), '`num_clients` must be at most `num_examples`, fo'),
    (dict(aggregator='sum'), '`aggregator` must be one of'),
  )
  def test_wrong_settings_are_refused(self, changes, message):
    with self.assertRaisesRegex(ValueError, f'^{message}'):
      dataclasses.replace(_CONFIG, **changes)


if __name__ == '__main__':
  absltest.main()

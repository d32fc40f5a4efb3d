# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from experiments.common import datasets
from experiments.convergence import problem as problems

_SETTINGS = dict(
  num_examples=80,
  num_features=6,
  num_clients=7,
  dirichlet_concentration=0.3,
  l2=0.01,
  seed=1,
)


def _problem(**changes):
  data = datasets.synthetic('digits', num_train=80, num_test=10)
  return problems.Problem(data, **{**_SETTINGS, **changes})


class ProblemTest(parameterized.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.problem = _problem()

  def test_mean_of_clients_gradients_is_the_gradient_of_the_loss(self):
    weights = np.random.default_rng(1).normal(size=self.problem.dim)
    gradients = self.problem.gradients(weights)
    self.assertEqual(gradients.clients.shape, (7, 7 * 9))
    mean = self.problem.mean(gradients.clients)
    self.assertEqual(gradients.loss, self.problem.loss(weights))
    step = 1e-6
    for index in (0, 13, 62):
      ahead, behind = weights.copy(), weights.copy()
      ahead[index] += step
      behind[index] -= step
      slope = (self.problem.loss(ahead) - self.problem.loss(behind)) / 2 / step
      self.assertAlmostEqual(mean[index], slope, delta=1e-8)
      # The negative control: no client's own gradient is that of the loss.
      self.assertGreater(
        np.abs(gradients.clients[:, index] - slope).min(), 1e-6
      )

  def test_weights_are_the_numbers_of_examples(self):
    self.assertEqual(self.problem.sizes.sum(), 80)
    self.assertGreaterEqual(self.problem.sizes.min(), 1)

  def test_at_the_optimum_gradients_cancel_and_are_large(self):
    gradients = self.problem.gradients(self.problem.optimum).clients
    self.assertLess(np.linalg.norm(self.problem.mean(gradients)), 1e-7)
    self.assertGreater(np.linalg.norm(gradients, axis=1).min(), 1e-2)

  @parameterized.parameters(1, 2, 3)
  def test_no_loss_is_below_the_least_one(self, seed):
    rng = np.random.default_rng(seed)
    for size in (1.0, 1e-3):
      offset = size * rng.normal(size=self.problem.dim)
      excess = (
        self.problem.loss(self.problem.optimum + offset)
        - self.problem.least_loss
      )
      # The loss is convex beyond half of l2 times a square.
      self.assertGreater(excess, 0.01 / 2 * np.sum(offset**2) * (1 - 1e-3))

  def test_the_partition_does_not_move_the_optimum(self):
    other = _problem(seed=2, num_clients=3)
    self.assertAlmostEqual(
      other.least_loss, self.problem.least_loss, delta=1e-13
    )

  @parameterized.parameters(
    (dict(num_examples=81), '`num_examples` must be at most the 80 training'),
    (dict(num_features=65), '`num_features` must be at most 64, the comp'),
    (dict(l2=1e-9), 'The least loss must be found to 1e-14, found a bound of'),
  )
  def test_wrong_settings_are_refused(self, changes, message):
    with self.assertRaisesRegex(ValueError, f'^{message}'):
      _problem(**changes)


if __name__ == '__main__':
  absltest.main()

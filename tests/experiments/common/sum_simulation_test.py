# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Clients that are rounded together are rounded as each by itself."""

import functools

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from experiments.common import row_rotation
from experiments.common import sum_simulation
from tests import stat_checks
from tff_autotune_secagg.numerics.rotation import randomized_hadamard
from tff_autotune_secagg.numerics.rounding import modes

_DIM, _CLIENTS = 1024, 8


@functools.lru_cache(maxsize=None)
def _simulation(modulus, is_batched):
  return sum_simulation.SumSimulation(
    modulus=modulus, dim=_DIM, is_batched=is_batched
  )


def _errors(modulus, is_batched, seed, num_rounds):
  """Errors of rounds of the same clients, once the tuner has settled."""
  simulated = _simulation(modulus, is_batched)
  simulated.reset(seed)
  rng = np.random.default_rng(seed)
  rows = sum_simulation.orthogonal_clients(rng, _CLIENTS, _DIM)
  rounds = [simulated.run_round(rows) for _ in range(4 + num_rounds)]
  return np.array([done.nmse for done in rounds[4:]])


class BatchedTest(parameterized.TestCase):
  def test_one_client_is_the_same_bit_for_bit(self):
    results = []
    for is_batched in (False, True):
      simulated = _simulation(64, is_batched)
      simulated.reset(1)
      rows = np.random.default_rng(2).standard_normal([1, _DIM], np.float32)
      results.append([simulated.run_round(rows).result for _ in range(3)])
    np.testing.assert_array_equal(*results)
    # The negative control: the rounding is random.
    self.assertFalse(np.array_equal(results[0][1], results[0][2]))

  @parameterized.parameters(1, 2, 3)
  def test_errors_are_as_large(self, seed):
    num_rounds = 16
    together = _errors(64, True, seed, num_rounds)
    # Of normal coordinates a share of sqrt(2 / dim) of a mean square varies;
    # rows of both have as many rounds.
    stddev = np.mean(together) * np.sqrt(2 / _DIM)
    allowed = (
      stat_checks.Z * np.sqrt(2) * stat_checks.mean_error(stddev, num_rounds)
    )
    apart = np.mean(_errors(64, False, seed, num_rounds))
    self.assertLess(abs(np.mean(together) - apart), allowed)
    # The negative control: a fifth more residues have less error.
    other = np.mean(_errors(77, True, seed, num_rounds))
    self.assertGreater(abs(other - apart), allowed)

  def test_clients_of_zeros_and_broken_ones_add_nothing(self):
    rows = np.ones([4, _DIM], np.float32)
    rows[1] = 0.0
    rows[2, 7] = np.nan
    true_sum = rows[[0, 3]].sum(axis=0)
    simulated = sum_simulation.SumSimulation(
      modulus=2**16, dim=_DIM, seed=1, is_batched=True
    )
    for _ in range(4):
      done = simulated.run_round(rows, true_sum)
    self.assertLess(done.nmse, 1e-6)

  def test_wrong_settings_are_refused(self):
    for options, message in (
      (dict(dim=64, rounding=modes.Rounding.DITHER), 'with stochastic round'),
      (dict(dim=60), 'a multiple of 16 coordinates .*, found 60'),
    ):
      with self.assertRaisesRegex(ValueError, f'^`is_batched` must.*{message}'):
        sum_simulation.SumSimulation(modulus=16, is_batched=True, **options)


class RowRotationTest(parameterized.TestCase):
  @parameterized.product(dim=[5, 40], num_rotations=[1, 2])
  def test_rotates_each_row(self, dim, num_rotations):
    rows = np.random.default_rng(3).standard_normal([3, dim], np.float32)
    seed = tf.constant([4, 5], tf.int64)
    found = row_rotation.rotate(tf.constant(rows), seed, num_rotations)
    wanted = [
      randomized_hadamard.rotate(tf.constant(row), seed, num_rotations)
      for row in rows
    ]
    np.testing.assert_allclose(found, np.array(wanted), atol=1e-5)

  def test_a_shorter_vector_is_padded_first(self):
    rows = 3.0 * np.random.default_rng(1).standard_normal([2, 40], np.float32)
    errors = []
    for min_dim in (1, 1024):
      simulated = sum_simulation.SumSimulation(
        modulus=2**10, dim=40, num_rotations=1, min_dim=min_dim, seed=1
      )
      for _ in range(4):
        done = simulated.run_round(rows)
      self.assertEqual(done.result.shape, (40,))
      errors.append(done.nmse)
    # Of the noise a 25th is in the coordinates that are kept.
    self.assertLess(errors[1], 0.2 * errors[0])


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The planner's error at a gain is that of simulated, predicted sums."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from experiments.common import sum_simulation
from tests import stat_checks
import tff_autotune_secagg as autotune

_DIM, _CLIENTS, _MODULUS = 2048, 20, 64
_FIRST, _ROUNDS = 16, 32
_MEMORY = 0.6


def _history(own, seed):
  """Returns errors, gains and size uncertainties of settled rounds.

  The clients share a vector. `own` is the part of a sum's variance that is new
  in each round. The gain is that of a prediction made here.
  """
  rng = np.random.default_rng([seed, int(100 * own)])
  common = rng.standard_normal(_DIM)
  simulated = sum_simulation.SumSimulation(
    modulus=_MODULUS,
    dim=_DIM,
    seed=seed,
    num_rotations=1,
    is_batched=True,
    predict_sum=True,
  )
  past = np.zeros(_DIM)
  found = []
  for number in range(_FIRST + _ROUNDS):
    rows = (
      np.sqrt(own) * sum_simulation.orthogonal_clients(rng, _CLIENTS, _DIM)
      + np.sqrt(1 - own) * common / _CLIENTS
    )
    total = rows.sum(axis=0)
    _, uncertainty = simulated.tuner.size_forecast(simulated.state)
    done = simulated.run_round(rows, total)
    if number >= _FIRST:
      rho = total @ past / np.linalg.norm(total) / np.linalg.norm(past)
      found.append((done.nmse, 1 - rho**2, float(uncertainty)))
    past = _MEMORY * past + done.result
  return np.transpose(found)


class RotationTest(absltest.TestCase):
  def test_sums_that_are_not_rotated_are_not_predicted(self):
    with self.assertRaisesWithLiteralMatch(
      ValueError,
      '`num_rotations` must be at least 1 with `predict_sum`, found 0.',
    ):
      sum_simulation.SumSimulation(modulus=64, dim=16, predict_sum=True)


class PlannerTest(parameterized.TestCase):
  @parameterized.product(own=[0.1, 0.4], seed=[1, 2])
  def test_predicts_the_error_of_predicted_sums(self, own, seed):
    errors, gains, uncertainties = _history(own, seed)
    uncertainty = np.mean(uncertainties)

    def planned(gain):
      return autotune.predicted_nmse(
        num_clients=_CLIENTS,
        modulus=_MODULUS,
        size_uncertainty=uncertainty,
        prediction_gain=gain,
      )

    # A mean square of so many coordinates scatters by sqrt(2 / dim), and by
    # twice as much in ln as the size that its bins were made for.
    scatter = np.hypot(np.sqrt(2 / _DIM), 2 * uncertainty)
    allowed = stat_checks.Z * stat_checks.mean_error(scatter, _ROUNDS)
    mean = np.mean(errors)
    gain = np.mean(gains)
    self.assertBetween(gain, own, 2 * own)
    self.assertLess(abs(mean / planned(gain) - 1), allowed)
    # The negative controls: half the gain, and a server that does not predict.
    self.assertGreater(abs(mean / planned(gain / 2) - 1), allowed)
    self.assertGreater(abs(mean / planned(1.0) - 1), allowed)


if __name__ == '__main__':
  absltest.main()

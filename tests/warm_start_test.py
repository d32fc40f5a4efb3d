# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import collections
import math

from absl.testing import absltest
import numpy as np

from experiments.common import sum_simulation
from tff_autotune_secagg import warm_start
from tff_autotune_secagg.numerics.tuning import wrapped_normal_tuner

_DIM = 4096
_SIZE = 37.0


def _nested(tuner_state):
  """As in the state of a learning process, which has more beside it."""
  inner = collections.OrderedDict(round=3, tuner=tuner_state)
  return dict(model=[np.zeros(2)], aggregator=[dict(value=dict(inner=inner))])


def _clients(seed):
  rng = np.random.default_rng(seed)
  return _SIZE * sum_simulation.orthogonal_clients(rng, 10, _DIM)


class LearnedSizeTest(absltest.TestCase):
  def test_is_the_size_of_the_sums_so_far(self):
    simulation = sum_simulation.SumSimulation(modulus=256, dim=_DIM)
    for seed in range(5):
      simulation.run_round(_clients(seed))
    found = warm_start.learned_size(_nested(simulation.state))
    # Five sums of 4,096 coordinates tell their deviation to 0.5 %.
    self.assertLess(abs(math.log(found / _SIZE)), 5 * 0.005)

  def test_gives_the_first_round_of_the_next_training_half_of_its_sum(self):
    simulation = sum_simulation.SumSimulation(modulus=256, dim=_DIM)
    cold = simulation.run_round(_clients(0)).nmse
    size = warm_start.learned_size(_nested(simulation.state))
    warm = sum_simulation.SumSimulation(
      modulus=256,
      dim=_DIM,
      tuner=wrapped_normal_tuner.WrappedNormalTuner(
        modulus=256, expected_size=size
      ),
    ).run_round(_clients(1))
    self.assertTrue(warm.calibrating)
    self.assertLess(warm.nmse, 0.6)
    self.assertGreater(cold, 0.75)

  def test_a_state_without_a_size_is_refused(self):
    tuner = wrapped_normal_tuner.WrappedNormalTuner(modulus=256)
    with self.assertRaisesRegex(ValueError, 'leave `expected_size` out'):
      warm_start.learned_size(_nested(tuner.initial_state()))
    paper = wrapped_normal_tuner.WrappedNormalTuner(
      modulus=256, wrap_probability=0.01
    )
    for state in (_nested(paper.initial_state()), {}, 1.0):
      with self.assertRaisesRegex(ValueError, '`state` must hold the forecast'):
        warm_start.learned_size(state)


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What is computed without TFF is what TFF computes."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from experiments.common import aggregator_factories
from experiments.common import sum_simulation
from experiments.convergence import means
from experiments.convergence import quantile
from experiments.convergence import sums
import tff_autotune_secagg as autotune
from tff_autotune_secagg import simulation
from tff_autotune_secagg.numerics import seeds
from tff_autotune_secagg.numerics.rounding import modes

_CLIENTS, _DIM, _SEED = 6, 40, 3
_ROUNDS = 5
# Some times the range that TFF begins with, once multiplied with weights.
_WEIGHTS = np.array([300.0, 5.0, 40.0, 1.0, 700.0, 90.0])


def setUpModule():
  simulation.set_local_context()


def tearDownModule():
  simulation.close()


def _values(round_num):
  """Updates of norms of about 6, which rounds change a little."""
  of_all, of_round = (
    np.random.default_rng(seed).normal(size=[_CLIENTS, _DIM])
    for seed in (7, [7, round_num])
  )
  return np.float32(of_all + 0.2 * of_round)


def _tff_rounds(text, weighted=True, num_rounds=_ROUNDS):
  """What TFF's process of an aggregator gives out in each round."""
  built = aggregator_factories.build(
    text, aggregator_factories.Round(_CLIENTS, (_DIM,), _SEED, weighted)
  )
  types = [tff.TensorType(np.float32, [_DIM])]
  if weighted:
    types.append(tff.TensorType(np.float32))
  process = built.factory.create(*types)
  state = process.initialize()
  for round_num in range(num_rounds):
    arguments = [list(_values(round_num))]
    if weighted:
      arguments.append([np.float32(w) for w in _WEIGHTS])
    output = process.next(state, *arguments)
    state = output.state
    yield output


def _mean(text):
  return means.Mean(text, means.Cohort(_CLIENTS, _DIM, _SEED))


@pytest.mark.slow
class AsTffTest(absltest.TestCase):
  def test_secure_aggregator_with_zeroing_and_clipping(self):
    mean = _mean('secure_aggregator')
    unclipped = _mean('secure_aggregator:clipping=false')
    for num, output in enumerate(_tff_rounds('secure_aggregator')):
      found = mean(_values(num), _WEIGHTS)
      # TFF takes logarithms and weights in float32.
      np.testing.assert_allclose(found, output.result, rtol=1e-4, atol=1e-6)
      # The negative control: norms of 6 are clipped to little more than 1.
      other = unclipped(_values(num), _WEIGHTS)
      self.assertGreater(np.abs(other - output.result).max(), 0.1)

  def test_fixed_range_that_adapts(self):
    text = 'fixed_range:bits=16,clip_range=auto'
    mean = _mean(text)
    num_levels = 2 * (((2**16 - 1) // _CLIENTS + 1) // 2) + 1
    slow = quantile.AdaptiveLimit(50.0, 0.95, 0.5, multiplier=2.0)
    other = sums.FixedRangeSum(slow, num_levels, np.random.default_rng(1))
    for num, output in enumerate(_tff_rounds(text)):
      values = _values(num)
      # Each client's error is below a step, once here and once there.
      step = float(output.measurements['mean_value']['bin_size'])
      allowed = 2 * _CLIENTS * step / _WEIGHTS.sum()
      found = mean(values, _WEIGHTS)
      self.assertLess(np.abs(found - output.result).max(), allowed)
      weighted = values * np.float32(_WEIGHTS)[:, np.newaxis]
      control = other(weighted) / _WEIGHTS.sum()
    # The negative control: a range that adapts more slowly still clips.
    self.assertGreater(np.abs(control - output.result).max(), allowed)

  def test_ddp_secure_aggregator(self):
    text = 'ddp_secure_aggregator:bits=14,zeroing=false'
    rng = np.random.default_rng(1)
    mean = sums.RotatedSum(sums.DdpSum(14, rng), 64, rng)
    limit = quantile.AdaptiveLimit(0.1, 0.5, 0.2)
    for num, output in enumerate(_tff_rounds(text, weighted=False)):
      scale = sums.DdpSum(14, rng).scale(limit.limit, _CLIENTS, 64)
      measured = output.measurements['mean_value']
      self.assertAlmostEqual(
        float(measured['l2_clip']), limit.limit, delta=1e-5
      )
      limit.update(np.linalg.norm(_values(num), axis=1))
      # Each coordinate's error has a variance of at most a quarter of a step
      # squared for each client, here and there; rotations keep norms.
      stddev = np.sqrt(2 * _CLIENTS / 4) / scale / _CLIENTS
      found = mean(_values(num)) / _CLIENTS
      error = np.linalg.norm(found - output.result)
      self.assertLess(error, 2 * stddev * np.sqrt(64))
      # The negative control: that is far below what there is to find.
      self.assertGreater(np.linalg.norm(found), 100 * error)

  def test_autotuned_with_dither_and_a_prediction(self):
    text = 'autotuned:modulus=256,rounding=dither,zeroing=false,clipping=false'
    text += ',prediction=true'
    simulated = sum_simulation.SumSimulation(
      modulus=256,
      dim=_DIM,
      min_dim=1024,
      rounding=modes.Rounding.DITHER,
      num_rotations=1,
      predict_sum=True,
    )
    rotation = seeds.initial_state(_SEED, seeds.ROTATION_STREAM)
    dither = seeds.initial_state(_SEED, seeds.DITHER_STREAM)
    for num, output in enumerate(_tff_rounds(text, num_rounds=4)):
      rows = _values(num) * np.float32(_WEIGHTS)[:, np.newaxis]
      shared = [
        tf.random.experimental.stateless_fold_in(seeds.round_seed(rotation), 0),
        seeds.round_seed(dither),
      ]
      done = simulated.run_round(rows, shared_seeds=np.array(shared))
      found = done.result / _WEIGHTS.sum()
      np.testing.assert_allclose(found, output.result, rtol=1e-5, atol=1e-6)
      rotation = seeds.next_state(rotation)
      dither = seeds.next_state(dither)
    # The negative control: it is no float sum, which is equal, too.
    self.assertGreater(done.nmse, 1e-7)
    measured = autotune.round_measurements(output.measurements)
    self.assertLess(float(measured['prediction_gain']), 0.5)


class MeanTest(parameterized.TestCase):
  @parameterized.parameters(
    ('plain_mean', 1e-6),
    ('secure_aggregator:zeroing=false,clipping=false', 1e-5),
    ('rotated_secure_sum', 1e-5),
    ('fixed_range:bits=20,clip_range=auto', 0.02),
    ('fixed_range:bits=20,clip_range=9,rotate=true', 0.01),
    # It clips half of the clients.
    ('ddp_secure_aggregator:bits=20,zeroing=false', 0.4),
    ('rotated_quantization:bits=16', 1e-4),
    ('autotuned:modulus=65536,zeroing=false,clipping=false', 1e-3),
    (
      'autotuned:modulus=4096,zeroing=false,clipping=false,prediction=true',
      1e-2,
    ),
  )
  def test_finds_the_weighted_mean(self, text, error):
    rng = np.random.default_rng(2)
    values = 0.01 * rng.normal(size=[_CLIENTS, _DIM])
    weights = 1.0 + np.arange(_CLIENTS)
    wanted = weights @ values / weights.sum()
    mean = _mean(text)
    for _ in range(3):
      found = mean(values, weights)
    found_error = np.linalg.norm(found - wanted) / np.linalg.norm(wanted)
    self.assertLess(found_error, error)
    # The negative control: without weights it is another mean.
    other = np.linalg.norm(values.mean(axis=0) - wanted)
    self.assertGreater(other / np.linalg.norm(wanted), 0.4)

  @parameterized.parameters(
    ('kashin', '`aggregator` must be one of plain_mean, autotuned, .*kashin'),
    (
      'ddp_secure_aggregator:noise_multiplier=1',
      '`noise_multiplier` of ddp_secure_aggregator must be 0 here, found 1.0',
    ),
    (
      'fixed_range:clip_range=1,rotate=true,sampled_fraction=0.5',
      '`sampled_fraction` of fixed_range must be 1 here, found 0.5',
    ),
    ('fixed_range:bits=2,clip_range=1', '`bits` of the aggregator .*fixed_r'),
  )
  def test_what_is_not_known_is_refused(self, text, message):
    with self.assertRaisesRegex(ValueError, f'^{message}'):
      _mean(text)

  def test_a_level_sum_is_unbiased(self):
    rng = np.random.default_rng(4)
    rows = rng.uniform(-1, 1, size=[_CLIENTS, _DIM]).astype(np.float32)
    repeats = 2000
    level_sum = sums.FixedRangeSum(1.0, 3, rng)
    local_sum = sums.LocalRangeSum(3, rng)
    for found_by in (level_sum, local_sum):
      found = np.mean([found_by(rows) for _ in range(repeats)], axis=0)
      error = np.mean(found - rows.sum(axis=0, dtype=float))
      # A step is 1 at most, and its rounding has a variance of a fourth.
      allowed = 5 * np.sqrt(_CLIENTS / 4 / repeats / _DIM)
      self.assertLess(abs(error), allowed)
      # The negative control: one client of all is rounded down.
      self.assertGreater(abs(error - 0.5), allowed)


if __name__ == '__main__':
  absltest.main()

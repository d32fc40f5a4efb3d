# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the stage between rotation and noise, without TFF."""

import collections

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests import stat_checks
from tff_autotune_secagg.numerics.rotation import block_sample
from tff_autotune_secagg.stages import rotate
from tff_autotune_secagg.stages import sample
from tff_autotune_secagg.stages import share_noise
from tff_autotune_secagg.stages import stage

_DIM = 4096
_CLIENTS = 4
_ROUNDS = 24
_MULTIPLIER = 0.1


class StageTest(parameterized.TestCase):
  def _made(self, dim=4096, fraction=0.25, dtype=tf.float32, seed=1):
    specs = [tf.TensorSpec([dim], dtype)]
    return sample.SampleStage(specs, sampled_fraction=fraction, seed=seed)

  @parameterized.parameters(tf.float32, tf.float64)
  def test_hands_on_so_many_coordinates(self, dtype):
    for fraction, num in ((0.5, 2048), (0.25, 1024), (0.01, 1024)):
      made = self._made(fraction=fraction, dtype=dtype)
      self.assertEqual(made.out_specs, [tf.TensorSpec([num], dtype)])

  def test_each_round_draws_anew_and_decodes_by_its_own_seed(self):
    made = self._made()
    state = made.initial_state()
    vector = tf.ones([4096])
    places = []
    for number in range(2):
      (taken,), signals = made.encode([vector], made.parameters(state))
      (back,), state, measured = made.decode([taken], signals, state)
      # Blocks of four: what is drawn comes back four times as large.
      np.testing.assert_allclose(back[back > 0], 4.0, rtol=1e-6)
      self.assertEqual(np.count_nonzero(back), 1024)
      self.assertEqual(int(state['round']), number + 1)
      self.assertEqual(float(measured['sampling_to_signal']), 3.0)
      places.append(np.flatnonzero(back))
    self.assertGreater(np.count_nonzero(places[0] != places[1]), 500)

  def test_seed_is_not_that_of_the_rotation(self):
    of_rotation = rotate.RotateStage(
      [tf.TensorSpec([4096])], num_rotations=1, min_dim=1, seed=1
    ).initial_state()
    found = self._made().initial_state()
    self.assertNotEqual(
      list(of_rotation['seed'].numpy()), list(found['seed'].numpy())
    )
    drawn = [self._made(seed=None).initial_state()['seed'] for _ in range(2)]
    self.assertNotEqual(*(list(seed.numpy()) for seed in drawn))

  def test_another_fraction_is_refused_by_name(self):
    state = stage.initial_state(self._made(fraction=0.5), ())
    with self.assertRaisesRegex(
      tf.errors.InvalidArgumentError,
      r'The state was written with `sampled_fraction` 0\.5, but this'
      r' distributed_dp_aggregator has `sampled_fraction` 0\.25: start from',
    ):
      stage.unnest_state(self._made(), state)


def _run_rounds(vector, *, sampled_fraction, seed):
  """Rounds of rotation, sample and noise, of clients that are all alike.

  Returns:
    The sums of `_ROUNDS` rounds, [_ROUNDS, _DIM], and the noise over the signal
    that each of them measured, [_ROUNDS].
  """
  specs, stages = [tf.TensorSpec([_DIM], tf.float32)], []
  for stage_class, options in (
    (rotate.RotateStage, dict(num_rotations=1, min_dim=1024, seed=seed)),
    (sample.SampleStage, dict(sampled_fraction=sampled_fraction, seed=seed)),
    (
      share_noise.ShareNoiseStage,
      dict(
        noise_multiplier=_MULTIPLIER,
        min_clients=_CLIENTS,
        max_norm=1.0,
        modulus=2**20,
        client_seed_fn=None,
        sampled_from=_DIM,
      ),
    ),
  ):
    stages.append(stage_class(specs, **options))
    specs = stages[-1].out_specs

  def encode(parameters):
    leaves = [vector]
    for made, told in zip(stages, parameters):
      leaves, _ = made.encode(leaves, told)
    return leaves[0]

  def one_round(number):
    states = [made.initial_state() for made in stages]
    for state in states[:2]:
      state['round'] = number
    parameters = [m.parameters(s) for m, s in zip(stages, states)]
    sent = tf.map_fn(lambda _: encode(parameters), tf.range(_CLIENTS))
    leaves = [tf.math.floormod(tf.reduce_sum(sent, axis=0), 2**20)]
    signals = collections.OrderedDict(num_clients=tf.constant(_CLIENTS))
    measured = collections.OrderedDict()
    for made, state in reversed(list(zip(stages, states))):
      leaves, _, found = made.decode(
        leaves, signals if made.signal_limits else (), state
      )
      measured.update(found)
    return _CLIENTS * leaves[0], measured['noise_to_signal']

  @tf.function
  def all_rounds():
    return tf.map_fn(
      one_round,
      tf.range(_ROUNDS, dtype=tf.int64),
      fn_output_signature=(tf.float32, tf.float32),
    )

  return [found.numpy() for found in all_rounds()]


class ErrorTest(parameterized.TestCase):
  @parameterized.parameters((0.25, 1), (0.25, 2), (0.3, 3))
  def test_is_that_of_the_central_gaussian_and_what_is_left_out(
    self, fraction, seed
  ):
    rng = np.random.default_rng(seed)
    vector = rng.normal(size=_DIM)
    # No sample is so much longer that the clip norm trims it.
    vector *= 0.85 / np.linalg.norm(vector)
    sums, ratios = _run_rounds(
      tf.constant(vector, tf.float32), sampled_fraction=fraction, seed=seed
    )
    wanted = _CLIENTS * vector
    energies = np.sum((sums - wanted) ** 2, axis=1)
    sizes = np.array(
      [
        len(block)
        for block in np.array_split(
          np.arange(_DIM), block_sample.size(fraction, _DIM)
        )
      ]
    )
    noise = _DIM * _MULTIPLIER**2
    left_out = (np.sum(sizes**2) / _DIM - 1.0) * np.sum(wanted**2)
    error = stat_checks.mean_error(np.std(energies, ddof=1), _ROUNDS)
    # Ten standard errors are less than the smallest defect, either term's loss.
    self.assertLess(10.0 * error, min(noise, left_out))
    self.assertTrue(
      stat_checks.is_near(np.mean(energies), noise + left_out, error)
    )
    # The mean of the rounds is the sum, along itself.
    along = sums @ wanted / np.sum(wanted**2)
    error = stat_checks.mean_error(np.std(along, ddof=1), _ROUNDS)
    self.assertTrue(stat_checks.is_near(np.mean(along), 1.0, error))
    # Noise of the whole vector over the sum, not that of what was sent.
    expected = noise / np.sum(wanted**2)
    self.assertBetween(np.median(ratios) / expected, 0.8, 1.25)


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""A membership attack on whole rounds, from the update to the server's mean.

All stages of the composition in one graph, as thousands of rounds through TFF's
runtime take hours. The attacker knows all updates and the rotations, chose one
update longer than the clip norm, and asks whether it was 0: the neighbours of
the guarantee. With less noise than is stated the attack shows more than is
claimed, which is the control.

Where a sample of the coordinates is sent, the attacker knows that too, before
the update is chosen: all of it is in the coordinates that are sent, so that it
is longest behind the sample. The round's number stays the same for that.
"""

import collections
import functools
import math
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import pytest
from scipy import stats
import tensorflow as tf

from tff_autotune_secagg.numerics.privacy import accounting
from tff_autotune_secagg.numerics.privacy import clip_bit
from tff_autotune_secagg.numerics.privacy import distributed_noise
from tff_autotune_secagg.numerics.rotation import block_sample
from tff_autotune_secagg.stages import clip
from tff_autotune_secagg.stages import flatten
from tff_autotune_secagg.stages import rotate
from tff_autotune_secagg.stages import sample
from tff_autotune_secagg.stages import share_noise
from tff_autotune_secagg.stages import wire

_NUM_CLIENTS = 5
_DIM = 12
_SAMPLED = 2  # Of 16 coordinates.
_ROUNDS = 3000
_MODULUS = 64
_MULTIPLIER = 1.0
_COUNT_STDDEV = 2.0
_CLIP_NORM = 0.1  # Also the first one if it adapts.
_DELTA = 1e-2
_CONFIDENCE = 1.0 - 1e-6  # Of the lower bound, in all: the best of several.


class _Rounds:
  """Rounds of the composition, with the noise of `multiplier`.

  If `samples`, with a sample of the coordinates; clients limit what they send
  to `max_norm`.
  """

  def __init__(self, *, adapts, multiplier, samples=False, max_norm=1.0):
    self._client_seed = None
    # As many as are rotated: none of what was chosen is cut off.
    self.dim = 16 if samples else _DIM
    self._samples = samples
    if adapts:
      max_norm = clip_bit.joint_clip_norm(1.0, multiplier, _COUNT_STDDEV)
    builders = [
      (flatten.FlattenStage, {}),
      (
        clip.ClipStage,
        dict(
          l2_norm_clip=None if adapts else _CLIP_NORM,
          noise_multiplier=multiplier,
          count_stddev=_COUNT_STDDEV,
        ),
      ),
      (rotate.RotateStage, dict(num_rotations=1, min_dim=16, seed=7)),
      *(
        [(sample.SampleStage, dict(sampled_fraction=_SAMPLED / 16, seed=7))]
        if samples
        else []
      ),
      (
        share_noise.ShareNoiseStage,
        dict(
          noise_multiplier=multiplier,
          min_clients=_NUM_CLIENTS,
          max_norm=max_norm,
          modulus=_MODULUS,
          client_seed_fn=lambda: self._client_seed,
          allow_guessable_noise=True,  # The attack is to be repeatable.
        ),
      ),
      (wire.WireStage, dict(modulus=_MODULUS, in_modulus=_MODULUS)),
    ]
    self._stages, specs = [], [tf.TensorSpec([self.dim], tf.float32)]
    with mock.patch.object(block_sample, 'MIN_SAMPLE', 1):
      for stage_class, options in builders:
        self._stages.append(stage_class(specs, **options))
        specs = self._stages[-1].out_specs
    self._num_sent = specs[0].shape[0]
    self._states = [made.initial_state() for made in self._stages]

  def canary(self, generator):
    """A direction that the attacker knows to be sent, of length 1."""
    if not self._samples:
      direction = generator.normal(size=self.dim)
    else:
      sent = [tf.ones([_SAMPLED])]
      for index in (3, 2):  # The sample and the rotation, back to front.
        sent, _, _ = self._stages[index].decode(sent, (), self._states[index])
      direction = sent[0].numpy()
    return direction / np.linalg.norm(direction)

  def _one_round(self, number, updates, seed):
    """The server's mean, from the initial state but for the round's number."""
    states = [dict(state) for state in self._states]
    if not self._samples:
      states[2]['round'] = number
    parameters = [m.parameters(s) for m, s in zip(self._stages, states)]
    total = tf.zeros([self._num_sent], tf.int32)
    for client in range(_NUM_CLIENTS):
      self._client_seed = tf.stack([number, 100 * seed + client])
      leaves = [updates[client]]
      for made, told in zip(self._stages, parameters):
        leaves, _ = made.encode(leaves, told)
      total += leaves[0]
    leaves = [tf.math.floormod(total, _MODULUS)]
    signals = collections.OrderedDict(num_clients=tf.constant(_NUM_CLIENTS))
    for made, state in reversed(list(zip(self._stages, states))):
      leaves, _, _ = made.decode(
        leaves, signals if made.signal_limits else (), state
      )
    return leaves[0]

  @tf.function
  def _means(self, updates, seed):
    return tf.map_fn(
      lambda number: self._one_round(number, updates, seed),
      tf.range(_ROUNDS, dtype=tf.int64),
      fn_output_signature=tf.float32,
    )

  def means(self, updates, seed):
    """The means of `_ROUNDS` rounds of these updates, [_ROUNDS, _DIM]."""
    updates = tf.constant(updates, tf.float32)
    return self._means(updates, tf.constant(seed, tf.int64)).numpy()


@functools.lru_cache(maxsize=None)
def _rounds(adapts, multiplier, **options):
  """`_Rounds`, traced once for all seeds."""
  return _Rounds(adapts=adapts, multiplier=multiplier, **options)


def _epsilon_shown(rounds, seed):
  """Lower bound on epsilon from the attack, with `_CONFIDENCE`."""
  generator = np.random.default_rng(seed)
  canary = rounds.canary(generator)
  others = generator.normal(size=[_NUM_CLIENTS - 1, rounds.dim]) * 0.02
  absent, present = (
    rounds.means(np.vstack([update, others]), 2 * seed + in_or_out) @ canary
    for in_or_out, update in enumerate((0.0 * canary, 5.0 * canary))
  )
  thresholds = np.quantile(present, np.linspace(0.0, 0.95, 20))
  level = (1.0 - _CONFIDENCE) / (2 * len(thresholds))
  best = -math.inf
  for threshold in thresholds:
    hits, alarms = np.sum(present >= threshold), np.sum(absent >= threshold)
    # Clopper and Pearson's bounds.
    least = stats.beta.ppf(level, hits, _ROUNDS - hits + 1)
    most = stats.beta.isf(level, alarms + 1, _ROUNDS - alarms)
    if least > _DELTA:
      best = max(best, math.log((least - _DELTA) / most))
  return best


def _epsilon_claimed():
  multiplier = distributed_noise.effective_noise_multiplier(
    _MULTIPLIER, _NUM_CLIENTS
  )
  return accounting.gaussian_epsilon(_DELTA, 1.0 / multiplier)


@pytest.mark.slow
class AuditTest(parameterized.TestCase):
  @parameterized.parameters((1, False), (2, True))
  def test_attack_shows_less_than_is_claimed(self, seed, adapts):
    rounds = _rounds(adapts, _MULTIPLIER)
    shown = _epsilon_shown(rounds, seed)
    self.assertLess(shown, _epsilon_claimed())
    # What 3,000 rounds can show at this confidence: about 1.0 of 2.7.
    self.assertGreater(shown, 0.25 * _epsilon_claimed())

  @parameterized.parameters(False, True)
  def test_control_a_third_of_the_noise_is_found_out(self, adapts):
    rounds = _rounds(adapts, _MULTIPLIER / 3.0)
    self.assertGreater(_epsilon_shown(rounds, 1), _epsilon_claimed())

  def test_attack_on_a_known_sample_shows_less_than_is_claimed(self):
    shown = _epsilon_shown(_rounds(False, _MULTIPLIER, samples=True), 3)
    self.assertLess(shown, _epsilon_claimed())
    self.assertGreater(shown, 0.25 * _epsilon_claimed())

  def test_control_a_clip_before_the_sample_is_found_out(self):
    # What was clipped to 1 is so much longer behind the sample. The same noise.
    longer = math.sqrt(16 / _SAMPLED)
    rounds = _rounds(False, _MULTIPLIER / longer, samples=True, max_norm=longer)
    self.assertGreater(_epsilon_shown(rounds, 1), _epsilon_claimed())


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""A membership attack on rounds of noised sums: what it proves of epsilon.

The attacker knows all updates and asks whether one of them, as long as clipping
allows, was 0. That is the worst case of the neighbours that the guarantee is
for, so that the attack comes near the claim, and a mechanism with less noise
than it states is found out.
"""

import math

from absl.testing import absltest
from absl.testing import parameterized
import dp_accounting
import numpy as np
from scipy import stats
import tensorflow as tf

from tff_autotune_secagg.numerics.privacy import discrete_gaussian
from tff_autotune_secagg.numerics.privacy import distributed_noise
from tff_autotune_secagg.numerics.privacy import grid_clipping
from tff_autotune_secagg.numerics.rounding import quantization

_NUM_CLIENTS = 5
_DIM = 8
_ROUNDS = 100_000
_MODULUS = 64
_MULTIPLIER = 1.0
_DELTA = 1e-5
# Of the lower bound, in all: it is the best of several.
_CONFIDENCE = 1.0 - 1e-6


def _rounds(canary, others, *, shares, seed):
  """Sums modulo k of `_ROUNDS` rounds of the same updates, read as bins."""
  limit = distributed_noise.max_squared_grid_norm(_MULTIPLIER, shares)
  total = tf.zeros([_ROUNDS * _DIM], tf.int32)
  for client, update in enumerate([canary] + others):
    points, _, _ = grid_clipping.clip_to_grid(
      tf.constant(update, tf.float32),
      tf.constant(1.0),
      tf.constant([seed, client], tf.int64),
      squared_grid_norm=limit,
    )
    noise_seed = tf.constant([seed, 100 + client], tf.int64)
    words = discrete_gaussian.random_words(_ROUNDS * _DIM, noise_seed)
    points = tf.tile(points, [_ROUNDS])
    drawn = discrete_gaussian.sample(points, words, noise_seed)
    total += quantization.reduce_modulo(drawn, _MODULUS)
  total = quantization.reduce_modulo(total, _MODULUS)
  bins = quantization.centre(total, _MODULUS).numpy()
  return np.reshape(bins, [_ROUNDS, _DIM])


def _epsilon_shown(*, shares, seed):
  """Lower bound on epsilon from the attack, with `_CONFIDENCE`."""
  generator = np.random.default_rng(seed)
  canary = generator.normal(size=_DIM)
  others = list(generator.normal(size=[_NUM_CLIENTS - 1, _DIM]) * 0.1)
  absent, present = (
    _rounds(update, others, shares=shares, seed=seed + in_or_out)
    for in_or_out, update in enumerate((0.0 * canary, 10.0 * canary))
  )
  thresholds = np.quantile(present @ canary, 1.0 - np.logspace(-3, 0, 30))
  level = (1.0 - _CONFIDENCE) / (2 * len(thresholds))
  best = -math.inf
  for threshold in thresholds:
    hits = np.sum(present @ canary >= threshold)
    alarms = np.sum(absent @ canary >= threshold)
    # Clopper and Pearson's bounds.
    least = stats.beta.ppf(level, hits, _ROUNDS - hits + 1)
    most = stats.beta.isf(level, alarms + 1, _ROUNDS - alarms)
    if least > _DELTA:
      best = max(best, math.log((least - _DELTA) / most))
  return best


def _epsilon_claimed():
  accountant = dp_accounting.pld.PLDAccountant()
  accountant.compose(
    dp_accounting.GaussianDpEvent(
      distributed_noise.effective_noise_multiplier(_MULTIPLIER, _NUM_CLIENTS)
    )
  )
  return accountant.get_epsilon(_DELTA)


class AuditTest(parameterized.TestCase):
  @parameterized.parameters(1, 2, 3)
  def test_attack_shows_less_than_is_claimed(self, seed):
    shown = _epsilon_shown(shares=_NUM_CLIENTS, seed=seed)
    claimed = _epsilon_claimed()
    self.assertLess(shown, claimed)
    self.assertGreater(shown, 0.4 * claimed)

  @parameterized.parameters(1, 2, 3)
  def test_control_noise_meant_for_more_clients_is_found_out(self, seed):
    """Bins for 45 shares where 5 send: a third of the noise."""
    shown = _epsilon_shown(shares=9 * _NUM_CLIENTS, seed=seed)
    self.assertGreater(shown, _epsilon_claimed())


if __name__ == '__main__':
  absltest.main()

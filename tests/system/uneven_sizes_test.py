# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sums whose size varies or is extreme, through the public factories."""

import functools

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow_federated as tff

from tests import factory_conformance
from tests import last_round_tuner
import tff_autotune_secagg as autotune

setUpModule = factory_conformance.set_up_context

_DIM = 1024
_VALUE_TYPE = tff.TensorType(np.float32, [_DIM])


@functools.lru_cache(maxsize=None)
def _mean_process():
  """The process of a weighted mean, compiled once.

  Four bits: the largest sum that the ladder reads grows with the modulus.
  """
  factory = autotune.SecureMeanFactory(
    autotune.AutotunedSecureSumFactory(modulus=16, seed=1)
  )
  return factory.create(_VALUE_TYPE, tff.TensorType(np.float32))


def _nmse(found, wanted):
  return np.sum((found - wanted) ** 2) / np.sum(np.square(wanted))


class SumTest(absltest.TestCase):
  def _mean_error(self, factory, sizes):
    process = factory.create(_VALUE_TYPE)
    state, rng, errors = process.initialize(), np.random.default_rng(1), []
    for size in sizes:
      values = np.float32(size * rng.standard_normal([10, _DIM]))
      output = process.next(state, list(values))
      state = output.state
      errors.append(_nmse(output.result, values.sum(axis=0, dtype=np.float64)))
    return np.mean(errors[8:])

  def test_noise_around_a_level_costs_a_third_of_the_old_rule(self):
    sizes = np.exp(0.4 * np.random.default_rng(5).standard_normal(32))
    new = autotune.AutotunedSecureSumFactory(modulus=256, seed=1)
    old = autotune.HadamardRotationFactory(
      autotune.QuantizeModFactory(
        autotune.ExactModularSumFactory(modulus=256),
        tuner=last_round_tuner.LastRoundTuner(modulus=256),
      ),
      seed=1,
    )
    self.assertLess(
      self._mean_error(new, sizes), self._mean_error(old, sizes) / 3
    )


class MeanTest(parameterized.TestCase):
  @parameterized.named_parameters(
    # (standard deviation of an update, weight of each client)
    ('a_million_examples', 0.05, 1e6),
    ('large_weights', 0.5, 1e5),
    ('larger_weights', 0.5, 1e7),
    ('small_weights', 0.05, 1e-11),
  )
  def test_weighted_sums_of_any_size_have_a_mean(self, stddev, weight):
    process, num_clients = _mean_process(), 3
    state, rng = process.initialize(), np.random.default_rng(2)
    weights = [np.float32(weight)] * num_clients
    for _ in range(5):
      values = np.float32(stddev * rng.standard_normal([num_clients, _DIM]))
      output = process.next(state, list(values), weights)
      state = output.state
      error = _nmse(output.result, values.mean(axis=0, dtype=np.float64))
      self.assertLess(error, 1.2)
    self.assertLess(error, 0.25)

  def test_weights_too_small_to_be_summed_are_rejected(self):
    process = _mean_process()
    values = [np.ones([_DIM], np.float32)] * 3
    weights = [np.float32(1e-13), np.float32(0.0), np.float32(1.0)]
    output = process.next(process.initialize(), values, weights)
    self.assertEqual(output.measurements['rejected_clients'], 1)
    self.assertEqual(output.measurements['weight_sum'], 1.0)


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `norm_limits` against the composition that TFF keeps private."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow_federated as tff

from tests import factory_conformance
from tff_autotune_secagg.factories import norm_limits

_NAMES = ('zeroing_norm', 'zeroed_count', 'clipping_norm', 'clipped_count')

setUpModule = factory_conformance.set_up_context


def _secure_mean():
  """The mean inside `tff.learning.secure_aggregator`, of a constant range."""
  return tff.aggregators.MeanFactory(
    tff.aggregators.SecureSumFactory(100.0),
    tff.aggregators.SecureSumFactory(100.0, 0.0),
  )


def _entries(measured):
  """Limits and counts by their names, as TFF nests them."""
  found = []
  for name, entry in dict(measured or {}).items():
    if isinstance(entry, dict):
      found += _entries(entry)
    elif name in _NAMES:
      found.append((name, float(entry)))
  return found


def _limits_of(process, clients_by_round):
  """The `_entries` of each round."""
  state, found = process.initialize(), []
  for clients in clients_by_round:
    weights = [1.0] * len(clients)
    output = process.next(state, list(np.float32(clients)), weights)
    state = output.state
    found.append(_entries(output.measurements))
  return found


class LimitedTest(parameterized.TestCase):
  @parameterized.product(zeroing=[False, True], clipping=[False, True])
  def test_limits_are_those_of_the_secure_aggregator(self, zeroing, clipping):
    value_type = tff.TensorType(np.float32, [3])
    weight_type = tff.TensorType(np.float32)
    options = dict(zeroing=zeroing, clipping=clipping)
    rng = np.random.default_rng(1)
    clients = rng.normal(size=[4, 5, 3])
    clients[:, 0] *= 30.0  # Zeroed or clipped now and then.
    found, wanted = (
      _limits_of(factory.create(value_type, weight_type), clients)
      for factory in (
        norm_limits.limited(_secure_mean(), **options),
        tff.learning.secure_aggregator(**options),
      )
    )
    for of_round, expected in zip(found, wanted):
      self.assertEqual([n for n, _ in of_round], [n for n, _ in expected])
      np.testing.assert_allclose(
        [v for _, v in of_round], [v for _, v in expected], rtol=1e-5
      )
    self.assertLen(found[0], 2 * (zeroing + clipping))
    if zeroing or clipping:
      # Limits move, or the rounds would not tell one quantile from another.
      self.assertNotEqual(found[0], found[-1])

  def test_without_limits_the_factory_is_as_it_was(self):
    factory = _secure_mean()
    self.assertIs(
      norm_limits.limited(factory, zeroing=False, clipping=False), factory
    )

  def test_sends_only_sums(self):
    factory = norm_limits.limited(_secure_mean(), zeroing=True, clipping=True)
    process = factory.create(
      tff.to_type([(np.float32, [2]), (np.float32, [])]),
      tff.TensorType(np.float32),
    )
    tff.test.assert_not_contains_unsecure_aggregation(process.next)


if __name__ == '__main__':
  absltest.main()

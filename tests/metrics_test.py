# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `metrics`, on the measurements of every combination of switches."""

import collections
import itertools
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow_federated as tff

from tff_autotune_secagg import aggregators
from tff_autotune_secagg import metrics

_FLOAT = tff.TensorType(np.float32)
# What the sum inside of all wrappers reports, here with numbers of its own.
_OF_THE_SUM = collections.OrderedDict(
  bits_per_coordinate=8, num_clients=5, rejected_clients=0
)
_OF_THE_MEAN = {'weight_sum', 'rejected_clients'}
_OF_ZEROING = {'zeroing_norm', 'zeroed_count'}
_OF_CLIPPING = {'clipping_norm', 'clipped_count'}


class _Sum(tff.aggregators.UnweightedAggregationFactory):
  """A double of the autotuned sum that is quick to create."""

  def create(self, value_type):
    @tff.federated_computation
    def init_fn():
      return tff.federated_value((), tff.SERVER)

    @tff.federated_computation(
      init_fn.type_signature.result, tff.FederatedType(value_type, tff.CLIENTS)
    )
    def next_fn(state, value):
      measured = {k: np.int32(v) for k, v in _OF_THE_SUM.items()}
      measured = collections.OrderedDict(measured, inner=())
      return tff.templates.MeasuredProcessOutput(
        state,
        tff.federated_sum(value),
        tff.federated_value(measured, tff.SERVER),
      )

    return tff.templates.AggregationProcess(init_fn, next_fn)


def _value(value_type, path):
  """A value of the type: each leaf is its path, an empty structure is ()."""
  if isinstance(value_type, tff.TensorType):
    return '/'.join(path)
  members = tff.structure.iter_elements(value_type)
  named = [(name, _value(member, (*path, name))) for name, member in members]
  return collections.OrderedDict(named) if named else ()


class MeasurementsTest(parameterized.TestCase):
  @parameterized.parameters(
    *itertools.product((False, True), (False, True), (False, True))
  )
  def test_has_one_level_whatever_the_switches(
    self, zeroing, clipping, weighted
  ):
    with mock.patch.object(
      aggregators, 'AutotunedSecureSumFactory', lambda **options: _Sum()
    ):
      factory = aggregators.autotuned_secure_aggregator(
        zeroing=zeroing, clipping=clipping, weighted=weighted
      )
    value_type = tff.TensorType(np.float32, [2])
    process = factory.create(value_type, *([_FLOAT] if weighted else []))
    measured_type = process.next.type_signature.result.measurements.member
    measured = _value(measured_type, ())
    expected = set(_OF_THE_SUM) | _OF_THE_MEAN
    expected |= _OF_ZEROING if zeroing else set()
    expected |= _OF_CLIPPING if clipping else set()
    for given in (
      measured,
      {'aggregator': measured, 'client_work': {'train': {'loss': 0.5}}},
    ):
      found = metrics.round_measurements(given)
      self.assertEqual(set(found), expected)
      for name, path in found.items():
        self.assertEqual(path.rpartition('/')[2], name)
      # A client that the mean rejects adds zeros to the sum.
      self.assertNotIn('value', found['rejected_clients'])
      self.assertIn('value', found['bits_per_coordinate'])

  def test_keeps_the_values(self):
    self.assertEqual(metrics.round_measurements(_OF_THE_SUM), _OF_THE_SUM)
    array = np.arange(3)
    found = metrics.round_measurements(
      {'a': {'bits_per_coordinate': 8, 'b': array}}
    )
    self.assertIs(found['b'], array)

  @parameterized.named_parameters(
    ('of_others', {'aggregator': {'mean_weight': (), 'norm': 2.0}}, "['norm']"),
    ('nothing', {}, 'none'),
  )
  def test_rejects_measurements(self, given, found):
    with self.assertRaisesWithLiteralMatch(
      ValueError,
      '`metrics` must hold the measurements of an aggregator of this package,'
      f' found {found}. Pass `output.metrics` of a learning process or'
      ' `output.measurements` of an aggregation process.',
    ):
      metrics.round_measurements(given)

  def test_rejects_what_is_no_mapping(self):
    with self.assertRaisesWithLiteralMatch(
      TypeError,
      '`metrics` must be a mapping, `output.metrics` of a learning process or'
      ' `output.measurements` of an aggregation process, found 3 (int).',
    ):
      metrics.round_measurements(3)


if __name__ == '__main__':
  absltest.main()

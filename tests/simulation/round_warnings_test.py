# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `round_warnings`, on outputs of rounds that never were."""

import types
from unittest import mock

from absl import logging
from absl.testing import absltest
import numpy as np

from tff_autotune_secagg.simulation import round_warnings


def _measured(bits, is_too_small=True):
  return {
    'modulus_too_small': np.bool_(is_too_small),
    'bits_per_coordinate': np.int32(bits),
    'num_clients': np.int32(100),
    'inner': (),
  }


def _output(**fields):
  return types.SimpleNamespace(**fields)


class RoundWarningsTest(absltest.TestCase):
  def _told(self, *results):
    """What is logged of these results, one after the other."""
    warning = round_warnings.RoundWarnings()
    with self.assertLogs(level='WARNING') as logs:
      for result in results:
        warning.look_at(result)
    return [record.getMessage() for record in logs.records]

  def test_warns_of_each_number_of_bits_once(self):
    first = _output(measurements=_measured(3))
    second = _output(
      metrics={'aggregator': {'zeroing': {'value': _measured(6)}}}
    )
    told = self._told(first, second, first, second)
    self.assertLen(told, 2)
    self.assertStartsWith(
      told[0],
      'A modulus of 3 bits is too small for the 100 clients of this round'
      ' (measurement `modulus_too_small`)',
    )
    # Nobody means more than 32 bits.
    self.assertEndsWith(told[0], ' 8 bits are `modulus=2**8`.')
    self.assertNotIn('2**8', told[1])

  def test_warns_once_of_rounds_whose_clients_are_all_zeroed(self):
    def zeroed(count, num_clients):
      measured = dict(_measured(8, False), num_clients=np.int32(num_clients))
      zeroing = {'zeroed_count': np.int32(count), 'value': measured}
      return _output(metrics={'aggregator': {'zeroing': zeroing}})

    told = self._told(zeroed(1, 4), zeroed(0, 0), zeroed(5, 0), zeroed(5, 0))
    self.assertLen(told, 1)
    self.assertStartsWith(
      told[0], 'Zeroing has left nothing of a round: 5 clients have a coordina'
    )

  def test_warns_once_of_noised_sums_that_wrap(self):
    def private(is_too_small, refused=False):
      measured = dict(
        _measured(6, is_too_small),
        refused=np.bool_(refused),
        smallest_modulus=np.int32(129),
      )
      return _output(metrics={'aggregator': measured})

    told = self._told(private(False), private(True), private(True))
    self.assertLen(told, 1)
    self.assertStartsWith(
      told[0],
      'A modulus of 6 bits is too small for the noised sum of the 100 clients'
      ' of this round (measurement `modulus_too_small`)',
    )
    self.assertIn('It would take 8 bits.', told[0])
    self.assertIn('`expected_clients=100`', told[0])
    self.assertEndsWith(told[0], 'from `plan_distributed_dp_modulus`.')

  def test_warns_of_refused_rounds_once(self):
    def private(refused):
      measured = {'refused': np.bool_(refused), 'num_clients': np.int32(3)}
      return _output(metrics={'aggregator': measured})

    told = self._told(private(False), private(True), private(True))
    self.assertLen(told, 1)
    self.assertStartsWith(
      told[0], 'A round of 3 clients has fewer than `min_clients` (measurement'
    )

  def test_says_nothing_of_other_results(self):
    with mock.patch.object(logging, 'warning') as log:
      warning = round_warnings.RoundWarnings()
      for result in (
        np.int32(1),
        None,
        [1, 2],
        {'measurements': _measured(3)},
        _output(measurements=()),
        _output(measurements=_measured(8, False)),
        _output(metrics={'aggregator': {'mean_value': ()}}),
        # A user's own metrics.
        _output(metrics={'train': {'refused': 3, 'modulus_too_small': [1, 2]}}),
      ):
        warning.look_at(result)
    log.assert_not_called()


if __name__ == '__main__':
  absltest.main()

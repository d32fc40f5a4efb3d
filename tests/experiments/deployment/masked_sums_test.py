# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `masked_sums`, against Python's integers."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from experiments.common import masking_protocol
from experiments.deployment import masked_sums

_NUM_CLIENTS = 5


def _clients(largest, length, seed):
  rng = np.random.default_rng(seed)
  return [
    rng.integers(0, largest, length, np.int64, endpoint=True)
    for _ in range(_NUM_CLIENTS)
  ]


def _sum(vectors, dropped, threshold=3):
  return masked_sums.sums(
    [masked_sums.Vector(*vector) for vector in vectors],
    threshold=threshold,
    dropped=dropped,
  )


class MaskedSumsTest(parameterized.TestCase):
  @parameterized.product(dropped=[set(), {0, 3}], seed=[1, 2, 3])
  def test_are_the_survivors_sums(self, dropped, seed):
    wide = _NUM_CLIENTS * 2**40 + 1
    vectors = [
      (_clients(255, 20, seed), 256),
      (_clients(2**40, 1, seed), wide),
      (_clients(249, 3, seed), 250),
      (_clients(255, 4, seed + 9), 256),
      (_clients(2**40, 2, seed + 9), wide),
      (_clients(2**32 - 1, 2, seed), 2**32),
    ]
    found = _sum(vectors, dropped)
    alive = [i for i in range(_NUM_CLIENTS) if i not in dropped]
    for total, (values, modulus) in zip(found, vectors):
      wanted = [
        sum(int(values[i][j]) for i in alive) % modulus
        for j in range(len(values[0]))
      ]
      self.assertEqual(total.tolist(), wanted)
      # Negative control: those who vanished are not in it.
      if dropped:
        everybody = np.sum(values, axis=0) % modulus
        self.assertNotEqual(everybody.tolist(), wanted)

  def test_the_largest_values_do_not_overflow(self):
    largest = 2**61
    modulus = _NUM_CLIENTS * largest + 1
    values = [np.array([largest])] * _NUM_CLIENTS
    (total,) = _sum([(values, modulus)], set())
    self.assertEqual(total.tolist(), [_NUM_CLIENTS * largest])

  def test_what_vanished_clients_have_is_not_read(self):
    values = _clients(10, 2, 1)
    values[2] = np.array([10**6, -1])
    (total,) = _sum([(values, 256)], {2})
    wanted = np.sum([v for i, v in enumerate(values) if i != 2], axis=0)
    self.assertEqual(total.tolist(), wanted.tolist())

  def test_too_few_survivors_unmask_nothing(self):
    with self.assertRaisesWithLiteralMatch(
      masked_sums.BelowThresholdError,
      'At least 4 clients must survive, found 3 of 5.',
    ):
      _sum([(_clients(1, 1, 1), 2)], {0, 1}, threshold=4)

  @parameterized.parameters(
    (
      256,
      256,
      '`values` must be below the modulus 256, found 256 of client 1.',
    ),
    (-1, 256, '`values` must be below the modulus 256, found 1844674407370955'),
    (0, 1, '`modulus` must be in 2 .. 18446744069414584320, found 1.'),
  )
  def test_refuses_what_is_no_residue(self, value, modulus, message):
    values = [np.array([0])] * _NUM_CLIENTS
    values[1] = np.array([value])
    with self.assertRaises(ValueError) as caught:
      _sum([(values, modulus)], set())
    self.assertStartsWith(str(caught.exception), message)

  def test_the_two_numbers_are_coprime_and_fit_the_masks(self):
    one, other = masked_sums._HALVES
    self.assertEqual(np.gcd(one, other), 1)
    self.assertLessEqual(max(one, other), masking_protocol.MAX_MODULUS)


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import math

from absl.testing import absltest
from absl.testing import parameterized
import dp_accounting

import tff_autotune_secagg as autotune
from tff_autotune_secagg import distributed_dp_planning
from tff_autotune_secagg.numerics import mask_keys
from tff_autotune_secagg.numerics.privacy import discrete_gaussian
from tff_autotune_secagg.numerics.rotation import block_sample

_ROUNDS = dict(noise_multiplier=2.0, min_clients=100, num_rounds=10)
_PLAN = dict(
  num_values=10**6,
  num_clients=100,
  min_clients=70,
  noise_multipliers=[1.0, 4.0],
  num_rounds=[1, 10],
  delta=1e-6,
  alignment=0.3,
)


class AccountingTest(parameterized.TestCase):
  def test_event_is_that_of_all_clients_but_one(self):
    event = autotune.distributed_dp_event(dim=10**6, **_ROUNDS)
    self.assertIsInstance(event, dp_accounting.SelfComposedDpEvent)
    self.assertEqual(event.count, 10)
    self.assertAlmostEqual(event.event.noise_multiplier, 2.0 * math.sqrt(0.99))

  def test_epsilon_is_between_the_gaussian_and_an_accountant_s_bound(self):
    found = autotune.distributed_dp_epsilon(dim=10**6, delta=1e-5, **_ROUNDS)
    event = autotune.distributed_dp_event(dim=10**6, **_ROUNDS)
    accountant = dp_accounting.rdp.RdpAccountant()
    accountant.compose(event)
    bound = accountant.get_epsilon(1e-5)
    self.assertLess(found, bound)
    self.assertGreater(found, 0.8 * bound)
    with_bound = autotune.distributed_dp_epsilon(
      dim=10**6,
      delta=1e-5,
      gaussian_epsilon_fn=accountant.get_epsilon,
      **_ROUNDS,
    )
    self.assertGreater(with_bound, bound)
    self.assertLess(with_bound, 1.001 * bound)

  def test_two_clients_add_what_the_theorem_says(self):
    rounds = dict(noise_multiplier=1.0, min_clients=2, num_rounds=1)
    small, large = (
      autotune.distributed_dp_epsilon(dim=dim, delta=1e-5, **rounds)
      for dim in (1000, 2**20 - 1)
    )
    # 0.033 in epsilon, and half of that in the logarithm of delta.
    self.assertBetween(large - small, 0.033, 0.042)

  @parameterized.parameters(
    (-1.0, ValueError, r'-1\.0 \(float\)'),
    (math.nan, ValueError, r'nan \(float\)'),
    ('1', TypeError, r"'1' \(str\)"),
    (None, TypeError, r'None \(NoneType\)'),
  )
  def test_what_is_no_epsilon_is_refused(self, epsilon, error, found):
    with self.assertRaisesRegex(
      error,
      '^`gaussian_epsilon_fn` must return a number of at least 0, found'
      f' {found} at ',
    ):
      autotune.distributed_dp_epsilon(
        dim=100, delta=1e-5, gaussian_epsilon_fn=lambda _: epsilon, **_ROUNDS
      )

  def test_an_accountant_may_find_infinity(self):
    found = autotune.distributed_dp_epsilon(
      dim=100, delta=1e-5, gaussian_epsilon_fn=lambda _: math.inf, **_ROUNDS
    )
    self.assertEqual(found, math.inf)


class ShortRoundsTest(parameterized.TestCase):
  """Rounds whose sums were unmasked with too few honest shares."""

  _PLAN = dict(noise_multiplier=2.0, min_clients=70, dim=10**5, delta=1e-6)

  def _epsilon(self, num_rounds, num_short_rounds=None):
    return autotune.distributed_dp_epsilon(
      num_rounds=num_rounds, num_short_rounds=num_short_rounds, **self._PLAN
    )

  def test_one_costs_what_its_shares_leave_of_the_noise(self):
    self.assertAlmostEqual(self._epsilon(1), 2.3, delta=0.05)
    for shares, expected in ((10, 7.2), (2, 28.0)):
      found = self._epsilon(0, {shares: 1})
      self.assertAlmostEqual(found, expected, delta=0.02 * expected)
      # A training that was planned for so many clients, at their noise.
      alike = autotune.distributed_dp_epsilon(
        **dict(
          self._PLAN,
          noise_multiplier=2.0 * math.sqrt(shares / 70),
          min_clients=shares,
          num_rounds=1,
        )
      )
      self.assertAlmostEqual(found / alike, 1.0, delta=1e-9)

  def test_rounds_compose(self):
    """Divergences of Renyi add up, so a bound by them holds for all."""
    found = self._epsilon(5, {10: 2, 35: 1})
    event = autotune.distributed_dp_event(
      noise_multiplier=2.0,
      min_clients=70,
      num_rounds=5,
      dim=10**5,
      num_short_rounds={10: 2, 35: 1},
    )
    multipliers = [(e.event.noise_multiplier, e.count) for e in event.events]
    expected = [
      (2.0 * math.sqrt(m / 70 * (1 - 1 / m)), count)
      for m, count in ((70, 5), (10, 2), (35, 1))
    ]
    for pair, wanted in zip(multipliers, expected):
      self.assertAlmostEqual(pair[0], wanted[0])
      self.assertEqual(pair[1], wanted[1])
    accountant = dp_accounting.pld.PLDAccountant()
    accountant.compose(event)
    self.assertAlmostEqual(
      found / accountant.get_epsilon(1e-6), 1.0, delta=2e-3
    )
    self.assertGreater(found, self._epsilon(5, {10: 2}))
    self.assertGreater(self._epsilon(5, {10: 2}), self._epsilon(5))
    self.assertEqual(self._epsilon(5, {}), self._epsilon(5))

  def test_the_client_s_own_share_alone_hides_nothing(self):
    self.assertEqual(self._epsilon(1, {1: 1}), math.inf)

  @parameterized.parameters(
    ({70: 1}, ValueError, r'shares in num_short_rounds` .* most 69, found 70'),
    ({0: 1}, ValueError, r'shares in num_short_rounds` .* least 1 .*found 0'),
    ({True: 1}, TypeError, r'shares in num_short_rounds` .*found True'),
    ({10: 0}, ValueError, r'rounds in num_short_rounds` .* least 1 .*found 0'),
    ({10: 1.5}, TypeError, r'rounds in num_short_rounds` .*found 1\.5'),
  )
  def test_other_members_are_refused(self, num_short_rounds, error, message):
    with self.assertRaisesRegex(error, message):
      self._epsilon(1, num_short_rounds)

  def test_an_event_of_a_single_share_is_refused(self):
    with self.assertRaisesRegex(ValueError, r'shares .* least 2 .*found 1'):
      autotune.distributed_dp_event(
        noise_multiplier=2.0,
        min_clients=70,
        num_rounds=5,
        dim=10**5,
        num_short_rounds={1: 1},
      )


class PlanModulusTest(parameterized.TestCase):
  @parameterized.parameters((10, 64), (100, 128), (1000, 512), (10_000, 2048))
  def test_noise_alone(self, num_clients, modulus):
    found = autotune.plan_distributed_dp_modulus(
      num_clients=num_clients,
      noise_multiplier=1.0,
      min_clients=num_clients,
      dim=2**20 - 1,
      alignment=0.0,
    )
    self.assertEqual(found, modulus)

  def test_more_clients_and_more_alignment_need_more(self):
    options = dict(noise_multiplier=1.0, min_clients=100, dim=2**16)
    found = [
      autotune.plan_distributed_dp_modulus(
        num_clients=num_clients, alignment=alignment, **options
      )
      for num_clients, alignment in ((100, 0.0), (400, 0.0), (400, 1.0))
    ]
    self.assertEqual(found, [128, 256, 512])

  @parameterized.parameters(
    (10, 2**20, 64), (100, 2**20, 128), (1000, 2**20, 512)
  )
  def test_planned_one_is_that_of_the_noise(self, min_clients, dim, modulus):
    found = distributed_dp_planning.smallest_modulus(
      num_clients=min_clients,
      noise_multiplier=1.0,
      min_clients=min_clients,
      dim=2**20,
      alignment=1.0,
    )
    self.assertEqual(found, modulus)

  def test_no_modulus_is_an_error(self):
    with self.assertRaisesWithLiteralMatch(
      ValueError,
      '`noise_multiplier` 0.1 is too small for 4000000 clients: their sum needs'
      ' a modulus of 31 bits, more than 30. Raise `noise_multiplier`.',
    ):
      distributed_dp_planning.smallest_modulus(
        num_clients=4_000_000,
        noise_multiplier=0.1,
        min_clients=10_000,
        dim=1,
        alignment=1.0,
      )

  def test_a_sample_has_room_for_its_longer_coordinates(self):
    options = dict(
      num_clients=100, noise_multiplier=1.0, min_clients=100, dim=2**16 - 1
    )
    stddev = float(discrete_gaussian.STDDEV_BINS)
    for fraction, alignment in ((1.0, 1.0), (1 / 16, 1.0), (1 / 64, 0.5)):
      found = autotune.plan_distributed_dp_modulus(
        alignment=alignment, sampled_fraction=fraction, **options
      )
      # k = 8 s sqrt(n) sqrt(1 + kappa^2 n^2 / (m z^2)).
      spread = 1.0 + (alignment * 100) ** 2 / (fraction * 2**16)
      self.assertEqual(
        found,
        2 ** math.ceil(math.log2(8 * stddev * 10 * math.sqrt(spread))),
      )
    # Control: the plan for all coordinates has too little room.
    whole = autotune.plan_distributed_dp_modulus(**options)
    self.assertLess(
      whole,
      autotune.plan_distributed_dp_modulus(sampled_fraction=1 / 64, **options),
    )


class PlanSampledFractionTest(parameterized.TestCase):
  @parameterized.parameters(
    (4, 0.05, 0.83),
    (10, 0.05, 0.67),
    (30, 0.05, 0.40),
    (100, 0.05, 0.17),
    (1000, 0.05, 0.020),
    (4, 0.1, 0.71),
    (100, 0.1, 0.091),
    (1000, 0.1, 0.010),
  )
  def test_is_what_the_noise_over_the_signal_allows(self, ratio, excess, share):
    # 100 clients, 2**20 coordinates.
    alignment = 2**10 / 100 / math.sqrt(ratio) * 0.1
    found = autotune.plan_sampled_fraction(
      num_clients=100,
      noise_multiplier=0.1,
      dim=2**20 - 1,
      alignment=alignment,
      excess_error=excess,
    )
    self.assertAlmostEqual(found, 1.0 / (1.0 + excess * ratio))
    self.assertAlmostEqual(found, share, delta=0.005)

  def test_the_error_that_was_asked_for_is_that_of_the_sample(self):
    options = dict(num_clients=50, noise_multiplier=1.0, alignment=0.5)
    dim = 2**18
    for excess in (0.02, 0.05, 0.2):
      fraction = autotune.plan_sampled_fraction(
        dim=dim - 1, excess_error=excess, **options
      )
      num = block_sample.size(fraction, dim)
      added = block_sample.error_to_signal(num, dim) * 25.0**2 / dim
      # Blocks that are not all equal add up to a fourth of the signal.
      self.assertBetween(added, 0.999 * excess, excess + 0.25 * 25**2 / dim)

  def test_no_fewer_than_1024_coordinates(self):
    found = autotune.plan_sampled_fraction(
      num_clients=10, noise_multiplier=10.0, dim=2**16 - 1, alignment=1e-9
    )
    self.assertEqual(found, 1 / 64)
    found = autotune.plan_sampled_fraction(
      num_clients=10, noise_multiplier=10.0, dim=5, alignment=1e-9
    )
    self.assertEqual(found, 1.0)


class RowsTest(parameterized.TestCase):
  def test_rows_hold_what_the_package_says(self):
    first, second = distributed_dp_planning.rows(**_PLAN)
    self.assertEqual((first['modulus'], first['bits']), (128, 7))
    # Padding is at most 6 %.
    self.assertBetween(first['bytes_per_client'], 875_000, 927_500)
    expected = autotune.distributed_dp_epsilon(
      noise_multiplier=4.0,
      min_clients=70,
      num_rounds=10,
      dim=10**6,
      delta=1e-6,
    )
    self.assertEqual(second['epsilons'][1], expected)
    self.assertAlmostEqual(
      second['noise_to_signal'], 16 * 10**6 * 100 / 70 / 900
    )

  @parameterized.parameters(
    (100, 0.5, 1.0, 1.9), (100, 2.0, 0.3, 0.015), (1000, 1.0, 1.0, 8.1)
  )
  def test_rows_of_samples(self, num_clients, multiplier, alignment, bits):
    (row,) = distributed_dp_planning.rows(
      num_values=2**20 - 1,
      num_clients=num_clients,
      min_clients=num_clients,
      noise_multipliers=[multiplier],
      num_rounds=[1],
      delta=1e-6,
      alignment=alignment,
      excess_error=0.1,
    )
    self.assertAlmostEqual(row['bits_per_value'], bits, delta=0.03 * bits)
    self.assertAlmostEqual(
      row['bytes_per_client'],
      row['bits'] * row['sampled_fraction'] * 2**20 / 8,
      delta=2 * row['bits'],
    )
    self.assertEqual(
      row['bytes_with_keys'] - row['bytes_per_client'],
      mask_keys.num_bytes(num_clients),
    )

  def test_nothing_to_see_is_infinite_noise(self):
    (row,) = distributed_dp_planning.rows(
      **dict(_PLAN, alignment=0.0, noise_multipliers=[1.0])
    )
    self.assertEqual(row['noise_to_signal'], math.inf)


if __name__ == '__main__':
  absltest.main()

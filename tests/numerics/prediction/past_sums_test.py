# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tff_autotune_secagg.numerics.prediction import past_sums

_DIM = 5


def _after(rounds, state=None):
  """Returns the state after rounds of (sum, clients)."""
  if state is None:
    state = past_sums.initial_state(_DIM)
  for total, num_clients in rounds:
    state = past_sums.update(
      state, tf.constant(total), tf.constant(num_clients), tf.constant(True)
    )
  return state


def _rounds(num, dtype=np.float32):
  rng = np.random.default_rng(num)
  cohorts = rng.integers(1, 100, size=num)
  return [(rng.normal(size=_DIM).astype(dtype), int(n)) for n in cohorts]


class PastSumsTest(parameterized.TestCase):
  def test_nothing_is_expected_at_first(self):
    found = past_sums.predict(past_sums.initial_state(_DIM), tf.constant(7))
    np.testing.assert_array_equal(found, np.zeros(_DIM, np.float32))

  def test_after_one_round_it_is_that_sum(self):
    (one,) = _rounds(1)
    found = past_sums.predict(_after([one]), tf.constant(one[1]))
    np.testing.assert_allclose(found, one[0], rtol=1e-6)

  @parameterized.parameters(np.float32, np.float64)
  def test_is_the_forgetful_mean_of_contributions(self, dtype):
    rounds = _rounds(6, dtype)
    weights = 0.6 ** np.arange(6)[::-1]
    total = sum(w * np.float64(x) for w, (x, _) in zip(weights, rounds))
    clients = sum(w * n for w, (_, n) in zip(weights, rounds))
    for num_clients in (0, 1, 1000):
      found = past_sums.predict(_after(rounds), tf.constant(num_clients))
      self.assertEqual(found.dtype, tf.float32)
      wanted = num_clients * total / clients
      np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)

  @parameterized.parameters(
    (dict(), True),
    (dict(calibrating=True), False),
    (dict(blind=True), False),
    (dict(zero_sum=True), False),
    (dict(sum_stddev=0.0), False),  # It could not be told from rounding.
  )
  def test_what_was_decoded_to_nothing_was_not_read(self, changed, expected):
    measured = dict(
      calibrating=False, blind=False, zero_sum=False, sum_stddev=1.0
    )
    measured = {n: tf.constant(x) for n, x in {**measured, **changed}.items()}
    self.assertEqual(bool(past_sums.is_read(measured)), expected)

  def test_a_round_that_was_not_read_changes_nothing(self):
    state = _after(_rounds(3))
    (total, num_clients), _ = _rounds(2)
    after = past_sums.update(
      state, tf.constant(total), tf.constant(num_clients), tf.constant(False)
    )
    tf.nest.map_structure(np.testing.assert_array_equal, after, state)
    # The negative control.
    after = _after([(total, num_clients)], state)
    self.assertTrue(np.any(after['total'] != state['total']))

  @parameterized.parameters(np.nan, np.inf, 1e300)
  def test_what_float32_cannot_hold_is_forgotten(self, value):
    broken = np.ones(_DIM)
    broken[2] = value
    state = _after([*_rounds(2, np.float64), (broken, 3)])
    found = past_sums.predict(state, tf.constant(9))
    np.testing.assert_array_equal(found, np.zeros(_DIM, np.float32))
    # And is not for ever.
    (one,) = _rounds(1)
    found = past_sums.predict(_after([one], state), tf.constant(one[1]))
    np.testing.assert_allclose(found, one[0], rtol=1e-6)


if __name__ == '__main__':
  absltest.main()

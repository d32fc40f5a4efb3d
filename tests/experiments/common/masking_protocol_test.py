# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The package's residues under a real masking protocol.

What a client of the package hands to the secure sum survives pairwise masking
in Z_k: the unmasked sum is TFF's, and a masked vector alone looks uniform.
"""

import functools

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from experiments.common import masking_protocol
from tests import factory_conformance
from tests import stat_checks
from tff_autotune_secagg.factories import modular_sum
from tff_autotune_secagg.numerics.reading import stripes
from tff_autotune_secagg.numerics.rotation import randomized_hadamard
from tff_autotune_secagg.numerics.rounding import quantization

setUpModule = factory_conformance.set_up_context

_DIM = 6000
_NUM_CLIENTS = 7
_THRESHOLD = 4
_MODULI = (2**8, 2**20, 3, 257, 3 * 2**28)
# Cells of the chi-square test; fewer where the modulus has fewer residues.
_CELLS = 64


@functools.lru_cache(maxsize=None)
def _encoded(modulus):
  """Residues of seven clients, by the package's own rotation and encoder."""
  rng = np.random.default_rng(modulus)
  spread = max(modulus, 16) / 8 / np.sqrt(_NUM_CLIENTS)  # Bins.
  bins = tf.ones([stripes.NUM_STRIPES])
  residues = []
  for index in range(_NUM_CLIENTS):
    vector = tf.constant(spread * rng.normal(size=_DIM), tf.float32)
    rotated = randomized_hadamard.rotate(vector, tf.constant([1, 2], tf.int64))
    seed = tf.constant([modulus, index], tf.int64)
    encoded = quantization.encode(rotated, bins, seed, modulus=modulus)
    residues.append(encoded.numpy())
  return residues


@functools.lru_cache(maxsize=None)
def _run(modulus, dropped=()):
  random = np.random.default_rng([modulus, *dropped])
  return masking_protocol.run(
    _encoded(modulus), modulus, _THRESHOLD, dropped, random.bytes
  )


def _uniformity(residues, modulus):
  """Chi-square statistic against uniform residues, and its tolerance."""
  cells = min(modulus, _CELLS)
  counts = np.bincount(residues * cells // modulus, minlength=cells)
  # Cells hold whole residues, so that some are larger where k is no multiple.
  edges = -(-np.arange(cells + 1) * modulus // cells)
  expected = np.diff(edges) * (residues.size / modulus)
  statistic = stat_checks.chi_square_statistic(counts, expected)
  return statistic, stat_checks.chi_square_tolerance(cells - 1)


class MaskedSumTest(parameterized.TestCase):
  @parameterized.parameters(*_MODULI)
  def test_unmasked_sum_is_the_modular_sum_of_tff_bit_for_bit(self, modulus):
    residues = _encoded(modulus)
    outcome = _run(modulus)
    factory = modular_sum.ExactModularSumFactory(modulus=modulus)
    process = factory.create(tff.TensorType(np.int32, residues[0].shape))
    output = process.next(process.initialize(), residues)
    np.testing.assert_array_equal(outcome.total, output.result)

  @parameterized.product(modulus=_MODULI, dropped=((2,), (1, 4, 7)))
  def test_masks_of_lost_clients_are_recovered(self, modulus, dropped):
    residues = _encoded(modulus)
    outcome = _run(modulus, dropped)
    left = [r for i, r in enumerate(residues, 1) if i not in dropped]
    expected = np.sum(np.array(left, np.int64), axis=0) % modulus
    np.testing.assert_array_equal(outcome.total, expected)
    self.assertNotIn(dropped[0], outcome.masked)

  def test_too_few_survivors_are_refused(self):
    with self.assertRaisesWithLiteralMatch(
      ValueError, 'At least 4 clients must survive, found 3.'
    ):
      _run(3, (1, 2, 3, 4))


class MaskedVectorTest(parameterized.TestCase):
  @parameterized.parameters(*_MODULI)
  def test_masked_vectors_look_uniform_and_unmasked_ones_do_not(self, modulus):
    outcome = _run(modulus, (2,))
    for index, masked in outcome.masked.items():
      statistic, tolerance = _uniformity(masked, modulus)
      self.assertLess(statistic, tolerance)
      # The negative control: the same vector before it was masked.
      plain = _encoded(modulus)[index - 1]
      if modulus == 3:
        # Two bins of spread modulo 3 are nearly uniform as they are: no test
        # of 6000 entries could tell. Zeros can.
        plain = np.zeros_like(plain)
      statistic, tolerance = _uniformity(plain.astype(np.int64), modulus)
      self.assertGreater(statistic, 2 * tolerance)

  def test_masked_vectors_say_nothing_of_the_plain_ones(self):
    modulus = 2**8
    for index, masked in _run(modulus).masked.items():
      plain = quantization.centre(
        tf.constant(_encoded(modulus)[index - 1]), modulus
      ).numpy()
      found = np.corrcoef(plain, masked)[0, 1]
      limit = stat_checks.Z * stat_checks.correlation_error(plain.size)
      self.assertLess(abs(found), limit)

  def test_the_sum_without_unmasking_looks_uniform(self):
    modulus = 2**8
    outcome = _run(modulus)
    total = sum(outcome.masked.values()) % modulus
    statistic, tolerance = _uniformity(total, modulus)
    self.assertLess(statistic, tolerance)


class PartsTest(parameterized.TestCase):
  def test_prime_is_prime(self):
    # Fermat's test with twenty bases.
    for base in range(2, 22):
      self.assertEqual(
        pow(base, masking_protocol.PRIME - 1, masking_protocol.PRIME), 1
      )

  def test_any_threshold_of_shares_joins_and_one_less_does_not(self):
    random = np.random.default_rng(1)
    secret = random.bytes(32)
    shares = masking_protocol.split_secret(secret, 6, 3, random.bytes)
    shares = dict(enumerate(shares, 1))
    for chosen in ((1, 2, 3), (2, 4, 6), (1, 5, 6), (1, 2, 3, 4, 5, 6)):
      part = {x: shares[x] for x in chosen}
      self.assertEqual(masking_protocol.join_shares(part), secret)
    self.assertNotEqual(
      masking_protocol.join_shares({1: shares[1], 2: shares[2]}), secret
    )

  @parameterized.parameters(2, 3, 2**8, 257, 3 * 2**28, 2**30)
  def test_masks_are_uniform_and_repeat(self, modulus):
    found = masking_protocol.mask(b'k' * 32, 20000, modulus)
    statistic, tolerance = _uniformity(found, modulus)
    self.assertLess(statistic, tolerance)
    again = masking_protocol.mask(b'k' * 32, 100, modulus)
    np.testing.assert_array_equal(found[:100], again)
    self.assertTrue(
      np.any(found != masking_protocol.mask(b'l' * 32, 20000, modulus))
    )

  @parameterized.parameters(2, 3, 2**8, 257, 3 * 2**28, 2**30)
  def test_packing_takes_ceil_log2_bits_and_is_undone(self, modulus):
    residues = np.random.default_rng(2).integers(0, modulus, size=1001)
    packed = masking_protocol.pack(residues, modulus)
    bits = int(np.ceil(np.log2(modulus)))
    self.assertLen(packed, -(-1001 * bits // 8))
    np.testing.assert_array_equal(
      masking_protocol.unpack(packed, 1001, modulus), residues
    )

  def test_a_client_answers_once(self):
    random = np.random.default_rng(3)
    clients = {
      i: masking_protocol.Client(i, np.zeros(4), 8, 2, random.bytes)
      for i in (1, 2)
    }
    advertised = {i: c.advertise() for i, c in clients.items()}
    shared = {i: c.share(advertised) for i, c in clients.items()}
    clients[1].masked_input({i: shared[i][1] for i in clients})
    self.assertLen(clients[1].unmask({1, 2}), 2)
    self.assertEmpty(clients[1].unmask({1, 2}))


if __name__ == '__main__':
  absltest.main()

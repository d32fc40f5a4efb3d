# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the count of a masking protocol's bytes."""

from absl.testing import absltest

from experiments.common import traffic
from experiments.protocol_cost import cost
from experiments.protocol_cost import settings


class ProtocolCostTest(absltest.TestCase):
  def test_rows_are_measured_and_computed(self):
    config = settings.Config(
      num_clients=(4,), dim=64, bits=(8, 16), dims=(1024,)
    )
    rows = list(cost.run(config))
    by_key = {
      (row['num_clients'], row['bits'], row['scheme']): row for row in rows
    }
    self.assertLen(rows, 2 * 2 * 3)
    tuned = by_key[4, 8, 'autotuned']
    self.assertEqual(tuned['source'], 'measured')
    self.assertEqual(tuned['bits_on_wire'], 8)
    self.assertEqual(tuned['vector_bytes'], 1024)
    # A sum of four values of 8 bits has 10.
    self.assertEqual(by_key[4, 8, 'headroom']['bits_on_wire'], 10)
    self.assertLen(cost.format_table(rows).splitlines(), 2 + len(rows) // 2)

  def test_measured_overhead_is_the_computed_one(self):
    config = settings.Config(dim=16)
    for num_clients in (2, 3, 9, 17):
      found = cost.measure(num_clients, 256, config)
      self.assertEqual(found['other'], traffic.key_bytes(num_clients))

  def test_the_protocol_is_as_large_as_the_one_it_is_after(self):
    # Its paper counts keys and shares of 32 bytes, without tags.
    config = settings.Config(num_clients=(), bits=(16,))
    quoted = [row for row in cost.run(config) if row['quoted_expansion']]
    self.assertLen(quoted, 2)
    for row in quoted:
      self.assertBetween(row['expansion'] - row['quoted_expansion'], 0, 0.03)


if __name__ == '__main__':
  absltest.main()

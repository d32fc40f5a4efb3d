# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `packed_rows`."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tff_autotune_secagg.numerics.privacy import discrete_gaussian
from tff_autotune_secagg.numerics.privacy import packed_rows


def _size_in_a_graph(make):
  with tf.Graph().as_default() as graph:
    make()
  return graph.as_graph_def().ByteSize()


class PackedRowsTest(parameterized.TestCase):
  @parameterized.product(order=[0, 1, 6], bits=[1, 20, 63, 64])
  def test_gives_back_every_bit(self, order, bits):
    rng = np.random.default_rng(order + bits)
    lowest = -(2**63) if bits == 64 else 0
    highest = 2 ** min(bits, 63) - 1
    rows = rng.integers(lowest, highest, (3, 50), np.int64, endpoint=True)
    rows[0, :4] = (lowest, highest, highest, lowest)
    packed = packed_rows.pack(rows, order=order, bits=bits)
    found = packed_rows.unpack(packed)
    self.assertEqual(found.dtype, tf.int64)
    np.testing.assert_array_equal(found, rows)
    in_graph = tf.function(lambda: packed_rows.unpack(packed))
    np.testing.assert_array_equal(in_graph(), rows)

  def test_leaves_its_argument_alone(self):
    rows = np.arange(12, dtype=np.int64).reshape([3, 4]) ** 3
    kept = rows.copy()
    packed_rows.pack(rows, order=2)
    np.testing.assert_array_equal(rows, kept)

  def test_smooth_rows_are_small_and_others_are_not(self):
    x = np.linspace(0, 1, 4096)
    smooth = (2.0**40 * np.stack([np.exp(-x), np.sin(x)])).astype(np.int64)
    packed = packed_rows.pack(smooth, order=3)
    self.assertLess(len(packed.compressed), smooth.nbytes / 6)
    # Negative control.
    noise = np.random.default_rng(1).integers(2**40, size=smooth.shape)
    packed = packed_rows.pack(noise, order=3)
    self.assertGreater(len(packed.compressed), smooth.nbytes / 2)


class TableOfTheSamplerTest(absltest.TestCase):
  def test_is_the_alias_table_bit_for_bit(self):
    table = discrete_gaussian.alias_table()
    entries = discrete_gaussian._entries()
    low_bits = discrete_gaussian._low_bits()
    self.assertEqual(entries.dtype, tf.int32)
    np.testing.assert_array_equal(entries, table.entries)
    np.testing.assert_array_equal(low_bits, table.low_bits)

  def test_is_small_in_a_graph(self):
    def draw():
      words = discrete_gaussian.random_words(100, tf.constant([1, 2]))
      discrete_gaussian.sample(tf.fill([100], 9), words, tf.constant([1, 2]))

    self.assertLess(_size_in_a_graph(draw), 200_000)
    # Negative control: as it was drawn from before.
    table = discrete_gaussian.alias_table()
    unpacked = _size_in_a_graph(lambda: [tf.constant(t) for t in table])
    self.assertGreater(unpacked, 1_500_000)


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tff_autotune_secagg.numerics.reading import stripes


class ViewTest(parameterized.TestCase):
  @parameterized.parameters((), (1,), (15,), (16,), (17,), (3, 11), (2, 0))
  def test_stripes_and_back(self, *shape):
    x = tf.reshape(tf.range(float(np.prod(shape))), shape)
    rows = stripes.to_stripes(x)
    self.assertEqual(rows.shape[1], stripes.NUM_STRIPES)
    back = stripes.from_stripes(rows, x.shape)
    np.testing.assert_array_equal(back, x)

  @parameterized.parameters(0, 1, 16, 37, 1000)
  def test_counts_are_those_of_the_flat_index(self, size):
    expected = np.bincount(np.arange(size) % 16, minlength=16)
    np.testing.assert_array_equal(stripes.stripe_counts(size), expected)

  def test_widening_keeps_every_stripe_in_its_columns(self):
    for num_rows in (1, 7, 64, 96, 640):
      rows = tf.reshape(tf.range(num_rows * 16), [num_rows, 16])
      wide, repeats = stripes.widen(rows)
      self.assertEqual(wide.shape, [num_rows // repeats, 16 * repeats])
      of_column = np.tile(np.arange(16), repeats)
      np.testing.assert_array_equal(
        wide.numpy() % 16, np.tile(of_column, [num_rows // repeats, 1])
      )


class BinSizesTest(absltest.TestCase):
  def test_ladder_is_told_from_equal_bins_at_every_size(self):
    for rung in (0, stripes.LOWEST_RUNG, stripes.HIGHEST_RUNG):
      self.assertTrue(stripes.is_ladder(stripes.ladder(tf.constant(rung))))
    for size in (1e-30, 1.0, 1e30):
      level = stripes.level(tf.constant(size))
      self.assertEqual(level.shape, [stripes.NUM_STRIPES])
      self.assertFalse(stripes.is_ladder(level))

  def test_what_is_no_scalar_of_its_kind_is_refused(self):
    with self.assertRaisesRegex(
      TypeError, r'^`bin_size` must be a scalar, found a tensor of shape \(2,\)'
    ):
      stripes.level([1.0, 2.0])
    for rung in (0.5, [1, 2]):
      with self.assertRaisesRegex(
        TypeError, '^`rung` must be an int32 scalar, found '
      ):
        stripes.ladder(rung)

  def test_ladder_covers_thirteen_decades_by_factors_of_eight(self):
    ladder = stripes.ladder(tf.constant(0)).numpy()
    self.assertEqual(ladder.dtype, np.float32)
    np.testing.assert_allclose(ladder[1:] / ladder[:-1], 8.0, rtol=1e-6)
    self.assertGreater(ladder[-1] / ladder[0], 1e13)

  def test_a_moved_ladder_overlaps_the_one_before(self):
    ladders = [
      stripes.ladder(tf.constant(rung)).numpy()
      for rung in range(
        stripes.LOWEST_RUNG, stripes.HIGHEST_RUNG, stripes.RUNGS_AT_ONCE
      )
    ]
    for lower, upper in zip(ladders, ladders[1:]):
      # A sum must show on several stripes to be read.
      np.testing.assert_allclose(lower[-4:], upper[:4], rtol=1e-6)

  def test_the_ends_of_the_ladder_are_within_float32(self):
    lowest = stripes.ladder(tf.constant(stripes.LOWEST_RUNG)).numpy()
    highest = stripes.ladder(tf.constant(stripes.HIGHEST_RUNG)).numpy()
    tiny, largest = np.finfo(np.float32).tiny, np.finfo(np.float32).max
    self.assertBetween(lowest[0], tiny, 64 * tiny)
    self.assertBetween(highest[-1], largest / 64, largest)


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
import numpy as np

from experiments.common import seeds


class SeedsTest(absltest.TestCase):
  def test_streams_and_positions_differ(self):
    draws = {
      seeds.integer(seed, stream, *position)
      for seed in (0, 1)
      for stream in seeds.Stream
      for position in ((), (0,), (1,), (0, 0), (0, 1), (1, 0))
    }
    self.assertLen(draws, 2 * len(seeds.Stream) * 6)

  def test_same_arguments_give_the_same_numbers(self):
    first = seeds.generator(3, seeds.Stream.BATCHES, 1, 2).random(5)
    again = seeds.generator(3, seeds.Stream.BATCHES, 1, 2).random(5)
    np.testing.assert_array_equal(first, again)


if __name__ == '__main__':
  absltest.main()

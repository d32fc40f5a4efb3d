# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from experiments.common import partitions


def _labels(size):
  return (np.arange(size) % 10).astype(np.int32)


class PartitionTest(parameterized.TestCase):
  @parameterized.parameters(1, 7, 30, 1000)
  def test_iid_deals_every_example_once_in_even_sizes(self, num_clients):
    parts = partitions.partition_iid(_labels(1000), num_clients, seed=0)
    self.assertLen(parts, num_clients)
    np.testing.assert_array_equal(
      np.sort(np.concatenate(parts)), np.arange(1000)
    )
    sizes = [len(p) for p in parts]
    self.assertLessEqual(max(sizes) - min(sizes), 1)

  @parameterized.product(
    num_clients=(1, 7, 100), concentration=(0.01, 0.3, 1000.0)
  )
  def test_dirichlet_deals_every_example_once_and_none_goes_empty(
    self, num_clients, concentration
  ):
    parts = partitions.partition_dirichlet(
      _labels(1000), num_clients, 0, concentration
    )
    np.testing.assert_array_equal(
      np.sort(np.concatenate(parts)), np.arange(1000)
    )
    self.assertGreater(min(len(p) for p in parts), 0)

  def test_dirichlet_is_more_uneven_for_smaller_concentration(self):
    def classes_per_client(concentration):
      parts = partitions.partition_dirichlet(
        _labels(5000), 20, 0, concentration
      )
      return np.mean([len(set(_labels(5000)[p])) for p in parts])

    self.assertLess(classes_per_client(0.05), 6)
    self.assertGreater(classes_per_client(100.0), 9.9)

  def test_partitions_follow_the_seed(self):
    for split in (
      partitions.partition_iid,
      lambda *args: partitions.partition_dirichlet(*args, 0.3),
    ):
      first, again, other = (split(_labels(200), 5, s) for s in (1, 1, 2))
      for a, b in zip(first, again):
        np.testing.assert_array_equal(a, b)
      self.assertFalse(all(np.array_equal(a, b) for a, b in zip(first, other)))

  def test_too_many_clients_are_refused(self):
    with self.assertRaisesRegex(
      ValueError,
      '^`num_clients` must be from 1 to the 10 training examples, found 11[.]$',
    ):
      partitions.partition_iid(_labels(10), 11, seed=0)


if __name__ == '__main__':
  absltest.main()

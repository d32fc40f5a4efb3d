# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from experiments.common import client_data
from experiments.common import datasets


class ClientDatasetTest(parameterized.TestCase):
  def _batches(self, round_num, client=0, **kwargs):
    data = datasets.synthetic('cifar10', num_train=30, num_test=5)
    dataset = client_data.client_dataset(
      data,
      np.arange(3, 20),
      batch_size=5,
      seed=1,
      round_num=round_num,
      client=client,
      **{'num_epochs': 1, **kwargs},
    )
    self.assertEqual(dataset.element_spec, client_data.element_spec(data))
    return data, [(x, y) for x, y in dataset.as_numpy_iterator()]

  def test_each_epoch_holds_each_example_once_in_its_own_order(self):
    data, batches = self._batches(1, num_epochs=2)
    self.assertEqual([len(y) for _, y in batches], [5, 5, 5, 2] * 2)
    wanted = sorted(i.tobytes() for i in data.train_images[3:20])
    first = [i.tobytes() for x, _ in batches[:4] for i in x]
    second = [i.tobytes() for x, _ in batches[4:] for i in x]
    self.assertEqual(sorted(first), wanted)
    self.assertEqual(sorted(second), wanted)
    self.assertNotEqual(first, second)

  @parameterized.parameters(False, True)
  def test_same_round_repeats_and_other_rounds_differ(self, augment):
    first, again, other_round, other_client = (
      np.concatenate(
        [x for x, _ in self._batches(*position, augment=augment)[1]]
      )
      for position in ((1, 0), (1, 0), (2, 0), (1, 1))
    )
    np.testing.assert_array_equal(first, again)
    self.assertFalse(np.array_equal(first, other_round))
    self.assertFalse(np.array_equal(first, other_client))


if __name__ == '__main__':
  absltest.main()

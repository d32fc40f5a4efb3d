# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import dataclasses

from absl.testing import absltest
import numpy as np
import tensorflow_federated as tff

from experiments.benchmark import memory
from tests import factory_conformance

setUpModule = factory_conformance.set_up_context


class StateTest(absltest.TestCase):
  def test_a_prediction_takes_a_float_for_each_value_and_one_for_clients(self):
    config = memory.Config(dim=5000)
    states, files = [], []
    for aggregator in ('autotuned', 'autotuned_predicted'):
      config = dataclasses.replace(config, aggregator=aggregator)
      process = memory.build(config).create(tff.TensorType(np.float32, [5000]))
      state = process.initialize()
      states.append(memory.state_bytes(state))
      folder = self.create_tempdir().full_path
      files.append(memory.checkpoint_bytes(state, folder))
    # docs/prediction.md has these numbers.
    self.assertEqual(states[1] - states[0], 4 * 5000 + 4)
    self.assertLess(states[0], 1000)
    # TFF writes a graph and an index beside the numbers.
    self.assertBetween(files[1] - files[0], 4 * 5000, 4 * 5000 + 8000)


if __name__ == '__main__':
  absltest.main()

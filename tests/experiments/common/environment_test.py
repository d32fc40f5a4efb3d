# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import json
import os

from absl.testing import absltest

from experiments.common import environment


class EnvironmentTest(absltest.TestCase):
  def test_names_versions_but_not_the_host(self):
    found = environment.describe()
    self.assertEqual(found['tensorflow_federated'], '0.87.0')
    self.assertNotIn(os.uname().nodename, json.dumps(found))
    for key in (
      'package',
      'tensorflow',
      'tensorflow_model_optimization',
      'numpy',
      'python',
      'commit',
      'machine',
      'processor_features',  # Every x86-64 that can run TensorFlow has AVX.
    ):
      self.assertNotEmpty(found[key])


if __name__ == '__main__':
  absltest.main()

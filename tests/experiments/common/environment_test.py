# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import json
import os
import shutil
import subprocess
from unittest import mock

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

  def test_the_commit_is_the_projects_own(self):
    if shutil.which('git') is None:
      self.skipTest('There is no git, and no commit is recorded.')
    repository = self.create_tempdir().full_path
    project = os.path.join(repository, 'unpacked')
    os.mkdir(project)

    def git(*arguments):
      subprocess.run(
        ['git', '-c', 'user.name=a', '-c', 'user.email=a@b', *arguments],
        cwd=repository,
        check=True,
        capture_output=True,
      )

    git('init')
    git('commit', '--allow-empty', '--message=Not ours')
    with mock.patch.object(environment, '_PROJECT', project):
      self.assertEqual(environment._commit(), 'unknown')
      # As in a hook of that repository.
      places = dict(GIT_DIR=f'{repository}/.git', GIT_WORK_TREE=project)
      with mock.patch.dict(os.environ, places):
        self.assertEqual(environment._commit(), 'unknown')
    # The negative control.
    with mock.patch.object(environment, '_PROJECT', repository):
      self.assertRegex(environment._commit(), '^[0-9a-f]{40}$')


if __name__ == '__main__':
  absltest.main()

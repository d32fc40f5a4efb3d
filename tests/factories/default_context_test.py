# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what is said where TFF's own default context is the current one."""

from unittest import mock

from absl import logging
from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow_federated as tff

import tff_autotune_secagg as autotune
from tff_autotune_secagg import simulation

_SENTENCE = (
  "Secure sums do not run in TFF's default context, which is the current one."
  ' Before the first round, call'
  ' `tff_autotune_secagg.simulation.set_local_context()` (a simulation without'
  ' cryptography).'
)
_NATIVE = tff.backends.native


def _context_without_compiler():
  return tff.framework.SyncExecutionContext(
    executor_fn=tff.framework.local_cpp_executor_factory()
  )


def _local_context():
  simulation.set_local_context()
  return tff.framework.get_context_stack().current


class DefaultContextTest(parameterized.TestCase):
  def _sentences(self, context):
    """What one `create` logs in a context, whatever was logged before."""
    with mock.patch.object(logging, 'log_first_n') as log:
      with tff.framework.get_context_stack().install(context):
        autotune.FlattenFactory(tff.aggregators.SumFactory()).create(
          tff.TensorType(np.float32, [3])
        )
        self.assertIs(tff.framework.get_context_stack().current, context)
    return [call.args for call in log.call_args_list]

  def test_tffs_own_is_told(self):
    # Private names of TFF's tell its context: should they change, this fails.
    context = _NATIVE.create_sync_local_cpp_execution_context()
    self.assertEqual(
      self._sentences(context), [(logging.WARNING, _SENTENCE, 1)]
    )

  @parameterized.named_parameters(
    ('ours', _local_context),
    (
      'of_the_test_backend',
      tff.backends.test.create_sync_test_cpp_execution_context,
    ),
    ('asynchronous', _NATIVE.create_async_local_cpp_execution_context),
    ('without_compiler', _context_without_compiler),
  )
  def test_others_are_not(self, create):
    self.addCleanup(simulation.close)
    self.assertEmpty(self._sentences(create()))


if __name__ == '__main__':
  absltest.main()

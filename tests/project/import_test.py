# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""The import of the package changes nothing outside it, in a fresh Python."""

import ast

from absl.testing import absltest

from tests import fresh_python

_CODE = """
import logging
import os
import threading
import warnings

from absl import logging as absl_logging
import tensorflow as tf
import tensorflow_federated as tff

STACK = tff.framework.get_context_stack()

def of_context(context):
  return id(context), sorted(vars(context)), context.invoke.__func__

def in_new_thread():
  found = []
  thread = threading.Thread(
    target=lambda: found.append(of_context(STACK.current))
  )
  thread.start()
  thread.join()
  return found

def of_logger(logger):
  return logger.level, logger.handlers[:], logger.filters[:], logger.disabled

LOGGERS = logging.getLogger(), tf.get_logger(), absl_logging.get_absl_logger()

def seen():
  return {
    'contexts': [of_context(context) for context in STACK._stack],
    'context of new threads': in_new_thread(),
    'loggers': [of_logger(logger) for logger in LOGGERS],
    'absl': (
      absl_logging.get_verbosity(),
      absl_logging.get_absl_handler().level,
    ),
    'environment': dict(os.environ),
    'warnings': list(warnings.filters),
  }

def changed_by(function):
  before = seen()
  function()
  after = seen()
  return sorted(name for name in before if before[name] != after[name])

def use_every_name():
  import tff_autotune_secagg as autotune
  for name in autotune.__all__:
    getattr(autotune, name)
  for folder in autotune.programs, autotune.simulation:
    for name in folder.__all__:
      getattr(folder, name)

def patch_context_of_new_threads():
  thread = threading.Thread(
    target=lambda: setattr(STACK.current, 'invoke', STACK.current.invoke)
  )
  thread.start()
  thread.join()

def set_a_context():
  STACK.set_default_context(
    tff.backends.native.create_sync_local_cpp_execution_context()
  )

print([
  changed_by(use_every_name),
  # Negative controls: each is seen.
  changed_by(set_a_context),
  changed_by(patch_context_of_new_threads),
  changed_by(lambda: tf.get_logger().addFilter(lambda record: True)),
  changed_by(lambda: absl_logging.set_verbosity(absl_logging.DEBUG)),
  changed_by(lambda: os.environ.update(TF_CPP_MIN_LOG_LEVEL='9')),
  changed_by(lambda: warnings.simplefilter('ignore')),
])
"""


class ImportTest(absltest.TestCase):
  def test_it_changes_nothing_outside(self):
    output = fresh_python.run('-c', _CODE)
    self.assertEqual(output.status, 0, output.stderr[-2000:])
    own, *controls = ast.literal_eval(output.stdout)
    self.assertEmpty(own)
    self.assertEqual(
      controls,
      [
        ['contexts'],
        ['context of new threads'],
        ['loggers'],
        ['absl', 'loggers'],
        ['environment'],
        ['warnings'],
      ],
    )


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""What `absltest.main` would do and pytest does not."""

import gc
import os
import signal

from absl import flags

# Before any test imports TensorFlow: its start-up notices (drivers, processor)
# would bury pytest's own lines.
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')

# Nor is there garbage to find while they import.
gc.set_threshold(1_000_000, 20, 20)


def pytest_configure():
  """Lets tests read absl flags, as `absltest.TestCase.create_tempdir` does."""
  if not flags.FLAGS.is_parsed():
    flags.FLAGS.mark_as_parsed()


def pytest_collection_finish():
  """Takes the million objects of the imports out of every garbage collection.

  And lets a graph grow for longer before Python looks for garbage in it. That
  is a tenth of the suite's processor time.
  """
  gc.collect()
  gc.freeze()
  gc.set_threshold(100_000, 20, 20)


def pytest_collection_modifyitems(items):
  """Drops `test_session`, a method of `tf.test.TestCase` that is no test."""
  items[:] = [item for item in items if item.name != 'test_session']


def pytest_sessionfinish(session):
  """Keeps what ends the processes of `pytest -n` from raising anywhere.

  execnet sends SIGINT to a process that takes longer than five seconds to end,
  which after so many tests is what Python's garbage collector takes. It raised
  KeyboardInterrupt in a callback of JAX, and pytest warned of that.
  """
  if hasattr(session.config, 'workerinput'):
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def pytest_unconfigure():
  """Collects what is left while the modules that it needs are still there.

  At Python's end, `__del__` of TensorFlow's functions and of TFF's executors
  finds none, and many tracebacks would bury pytest's last lines.
  """
  gc.unfreeze()
  gc.collect()

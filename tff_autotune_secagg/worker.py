# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Starts a worker for `simulation.set_remote_context` on this machine.

The command::

    python -m tff_autotune_secagg.worker --port=8000

The worker serves until Ctrl-C or SIGTERM ends it. If another program listens on
the port, another worker included, the command ends with exit status 1. Anybody
who can reach the port can run computations on it: use a network that you trust.
"""

from collections.abc import Sequence
import os
import sys

from absl import flags

from tff_autotune_secagg import _checks
from tff_autotune_secagg import _command


def define_flags() -> None:
  """Defines the flags of `main`."""
  flags.DEFINE_integer(
    'port',
    None,
    'TCP port to serve on.',
    lower_bound=1,
    upper_bound=_checks.MAX_PORT,
  )
  flags.DEFINE_integer(
    'max_concurrent_clients',
    None,
    'How many clients are computed at the same time; no limit unless given.',
    lower_bound=1,
  )
  flags.mark_flag_as_required('port')


def _load_quietly():
  """Loads TFF, which takes seconds, without TensorFlow's notices.

  The worker itself gets the environment as it was: its errors should be heard.
  """
  name = 'TF_CPP_MIN_LOG_LEVEL'
  given = os.environ.get(name)
  os.environ.setdefault(name, '3')
  from tff_autotune_secagg import simulation
  from tff_autotune_secagg.simulation import worker_process

  if given is None:
    del os.environ[name]
  return simulation, worker_process


def main(argv: Sequence[str]) -> None:
  """Becomes the worker that the flags describe."""
  if len(argv) > 1:
    sys.exit(f'Only flags such as --port=8000 are taken, found {argv[1:]!r}.')
  simulation, worker_process = _load_quietly()
  port = flags.FLAGS.port
  command = simulation.worker_command(
    port, max_concurrent_clients=flags.FLAGS.max_concurrent_clients
  )
  try:
    worker_process.check_port(port)
  except OSError as error:
    sys.exit(
      f'`--port` must be one that this worker can have to itself, found {port}:'
      f' {error.strerror}. Take another port, or end what listens there.'
    )
  print(f'Serving on port {port}; Ctrl-C ends it.', flush=True)
  # Becomes the worker, so that a signal or a service manager reaches it.
  os.execv(command[0], command)


if __name__ == '__main__':
  define_flags()
  _command.run(main, ('port', 'max_concurrent_clients'))

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the worker's command line; how it serves is in `simulation/`."""

import os
import socket
import subprocess
import types
from unittest import mock

from absl import flags
from absl.testing import absltest
from absl.testing import parameterized
import portpicker

from tests.simulation import processes
from tff_autotune_secagg import simulation
from tff_autotune_secagg import worker


class PortTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self._port = portpicker.pick_unused_port()

  def _run(self):
    """Returns the exit status and the program that the process would become."""
    # Flags defined here would be required of every binary in this process.
    given = types.SimpleNamespace(port=self._port, max_concurrent_clients=None)
    with (
      mock.patch.object(flags, 'FLAGS', given),
      mock.patch.object(os, 'execv') as execv,
    ):
      try:
        status = worker.main(['worker']) or 0
      except SystemExit as e:
        status = e.code
    return status, [call.args[1] for call in execv.call_args_list]

  def _assert_refused(self):
    # `sys.exit` prints a text and makes it the status 1.
    self.assertEqual(
      self._run(),
      (
        '`--port` must be one that this worker can have to itself, found'
        f' {self._port}: Address already in use. Take another port, or end what'
        ' listens there.',
        [],
      ),
    )

  @parameterized.named_parameters(
    ('on_all_interfaces', socket.AF_INET6, '::', socket.SO_REUSEADDR),
    ('on_loopback', socket.AF_INET, '127.0.0.1', socket.SO_REUSEADDR),
    ('that_shares', socket.AF_INET6, '::', socket.SO_REUSEPORT),
  )
  def test_another_server_is_refused(self, family, address, option):
    with socket.socket(family, socket.SOCK_STREAM) as server:
      server.setsockopt(socket.SOL_SOCKET, option, 1)
      server.bind((address, self._port))
      server.listen()
      self._assert_refused()

  def test_what_is_no_flag_is_refused_in_a_line(self):
    with self.assertRaisesRegex(SystemExit, r"^Only flags .* found \['8000'\]"):
      worker.main(['worker', '8000'])

  def test_another_worker_is_refused_while_it_serves(self):
    command = simulation.worker_command(self._port)
    # A free port is served, by this very command.
    self.assertEqual(self._run(), (0, [command]))
    other = subprocess.Popen(
      command,
      stdin=subprocess.DEVNULL,
      stdout=subprocess.DEVNULL,
      stderr=subprocess.DEVNULL,
    )
    try:
      self.assertTrue(
        processes.wait_for(lambda: processes.is_port_taken(self._port))
      )
      self._assert_refused()
    finally:
      other.kill()
      other.wait()
    self.assertEqual(self._run(), (0, [command]))


if __name__ == '__main__':
  absltest.main()

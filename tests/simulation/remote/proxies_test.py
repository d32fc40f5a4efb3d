# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0

import os
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized

from tff_autotune_secagg.simulation.remote import proxies

_PROXY = 'http://user:secret@proxy:3128'


class ProxiesTest(parameterized.TestCase):
  @parameterized.parameters(
    '127.0.0.1:1', '127.9.9.9:1', '[::1]:1', 'LOCALHOST:1'
  )
  def test_is_this_machine(self, address):
    self.assertTrue(proxies.is_this_machine(address))

  @parameterized.parameters('10.0.0.1:1', '[fe80::1]:1', 'localhost.a.org:1')
  def test_is_another_machine(self, address):
    self.assertFalse(proxies.is_this_machine(address))

  def _hint(self, *addresses, **environment):
    with mock.patch.dict(os.environ, environment, clear=True):
      return proxies.hint(addresses)

  def test_names_the_variable_and_who_is_behind(self):
    self.assertEqual(
      self._hint(
        'a:1', '127.0.0.1:1', '10.0.0.1:1', http_proxy=_PROXY, no_proxy='b'
      ),
      ' The environment variable `http_proxy` has gRPC look for a, 10.0.0.1'
      ' behind a proxy: if that is wrong, unset it or set `no_proxy` to what is'
      ' to be reached without.',
    )

  # As gRPC 1.74 was seen to read them.
  @parameterized.parameters(
    dict(),
    dict(HTTP_PROXY=_PROXY),
    dict(http_proxy=''),
    dict(http_proxy=_PROXY, grpc_proxy=''),
    dict(http_proxy=_PROXY, no_proxy='x, 10.0.0.7'),
    dict(http_proxy=_PROXY, no_proxy='0.7'),
    dict(http_proxy=_PROXY, no_proxy='10.0.0.0/24'),
    dict(http_proxy=_PROXY, no_grpc_proxy='10.0.0.7', no_proxy='x'),
  )
  def test_says_nothing_where_there_is_no_proxy(self, **environment):
    self.assertEqual(self._hint('10.0.0.7:8000', **environment), '')

  @parameterized.parameters(
    (dict(http_proxy=_PROXY, https_proxy=_PROXY), 'https_proxy', 'no_proxy'),
    (dict(grpc_proxy=_PROXY, no_proxy='*'), 'grpc_proxy', 'no_proxy'),
    (
      dict(http_proxy=_PROXY, no_proxy='10.0.0.7', no_grpc_proxy=''),
      'http_proxy',
      'no_grpc_proxy',
    ),
    (dict(http_proxy=_PROXY, no_proxy='10.1.0.0/16'), 'http_proxy', 'no_proxy'),
  )
  def test_names_the_variables_that_count(self, environment, proxy, exceptions):
    found = self._hint('10.0.0.7:8000', **environment)
    self.assertIn(f'variable `{proxy}` has', found)
    self.assertIn(f'set `{exceptions}` to', found)


if __name__ == '__main__':
  absltest.main()

# Copyright 2026 The tff_autotune_secagg Authors.
# SPDX-License-Identifier: Apache-2.0
"""Proxies between here and the workers, which gRPC takes from the environment.

A proxy for the web mostly refuses what gRPC asks of it, and a worker that
nobody reaches looks like one that does not run.
"""

from __future__ import annotations

from collections.abc import Iterable
import ipaddress
import os
from typing import Optional

# Of each, gRPC takes the first that is set.
_PROXIES = ('grpc_proxy', 'https_proxy', 'http_proxy')
_EXCEPTIONS = ('no_grpc_proxy', 'no_proxy')


def _host(address: str) -> str:
  return address.rpartition(':')[0].strip('[]')


def is_this_machine(address: str) -> bool:
  """Whether an address 'host:port' names this machine, for any machine.

  Args:
    address: of a worker.
  """
  host = _host(address)
  try:
    return ipaddress.ip_address(host).is_loopback
  except ValueError:
    return host.lower() == 'localhost'


def hint(addresses: Iterable[str]) -> str:
  """Returns what to add to "no answer" where a proxy may be the reason.

  Args:
    addresses: of the workers that do not answer.
  """
  variable = _first_set(_PROXIES)
  exceptions = _first_set(_EXCEPTIONS) or _EXCEPTIONS[-1]
  if not os.environ.get(variable or ''):
    return ''
  listed = os.environ.get(exceptions, '').split(',')
  hosts = [
    _host(address)
    for address in addresses
    if not is_this_machine(address)
    and not any(_covers(entry.strip(), _host(address)) for entry in listed)
  ]
  if not hosts:
    return ''
  # Not the proxy's address, which may hold a password.
  return (
    f' The environment variable `{variable}` has gRPC look for'
    f' {", ".join(hosts)} behind a proxy: if that is wrong, unset it or set'
    f' `{exceptions}` to what is to be reached without.'
  )


def _covers(entry: str, host: str) -> bool:
  """Whether an entry, the end of a name or a network, excepts a host."""
  try:
    return ipaddress.ip_address(host) in ipaddress.ip_network(entry)
  except ValueError:
    return bool(entry) and host.lower().endswith(entry.lower())


def _first_set(variables: Iterable[str]) -> Optional[str]:
  return next((name for name in variables if name in os.environ), None)
